import { toggleNotifications, useNotifying, type Notifying } from "../state/notifications";
import { IconButton, type IconName } from "../ui";

const LOOK: Record<Exclude<Notifying, "unavailable">, { icon: IconName; label: string }> = {
  off: { icon: "bell-off", label: "Notify me when a decision is needed" },
  on: { icon: "bell", label: "Notifications are on; turn them off" },
  blocked: { icon: "bell-off", label: "Your browser blocks notifications; try again" },
};

export function Bell() {
  const notifying = useNotifying((state) => state.notifying);
  if (notifying === "unavailable") return null;
  const { icon, label } = LOOK[notifying];
  return <IconButton icon={icon} label={label} aria-pressed={notifying === "on"} onClick={() => void toggleNotifications()} />;
}

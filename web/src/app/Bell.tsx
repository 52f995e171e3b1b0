import { toggleNotifications, useNotifying, type Notifying } from "../state/notifications";
import { IconButton, type IconName } from "../ui";

const LOOK: Record<Exclude<Notifying, "unavailable">, { icon: IconName; label: string }> = {
  off: { icon: "bell-off", label: "Notify me when a decision waits" },
  on: { icon: "bell", label: "You are notified when a decision waits; stop that" },
  blocked: { icon: "bell-off", label: "The browser does not allow notifications; try again" },
};

export function Bell() {
  const notifying = useNotifying((state) => state.notifying);
  if (notifying === "unavailable") return null;
  const { icon, label } = LOOK[notifying];
  return <IconButton icon={icon} label={label} aria-pressed={notifying === "on"} onClick={() => void toggleNotifications()} />;
}

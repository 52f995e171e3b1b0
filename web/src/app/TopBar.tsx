import { Link } from "@tanstack/react-router";

import { signOut } from "../api/auth";
import { forgetAttachments } from "../attachments";
import { forgetDrafts } from "../state/drafts";
import { queries, useApprovals } from "../state/queries";
import { nextTheme, setTheme, useTheme, type Theme } from "../state/theme";
import { buttonClass, Icon, IconButton, Tooltip, type IconName } from "../ui";
import buttonStyles from "../ui/Button.module.css";
import { Bell } from "./Bell";
import { ConnectionBadge } from "./ConnectionBadge";
import styles from "./TopBar.module.css";

const THEME_LOOK: Record<Theme, { icon: IconName; label: string }> = {
  system: { icon: "monitor", label: "System theme" },
  light: { icon: "sun", label: "Light theme" },
  dark: { icon: "moon", label: "Dark theme" },
};

export function TopBar({ onMenu, onHelp }: { onMenu: () => void; onHelp: () => void }) {
  return (
    <header className={styles.bar}>
      <IconButton icon="menu" label="Threads" className={styles.menu ?? ""} onClick={onMenu} />
      <ConnectionBadge />
      <span className={styles.space} />
      <InboxLink />
      <Bell />
      <ThemeSwitch />
      <IconButton icon="info" label="Keyboard shortcuts" onClick={onHelp} />
      <IconButton icon="signout" label="Sign out" onClick={leave} />
    </header>
  );
}

function leave(): void {
  forgetDrafts();
  forgetAttachments();
  queries.clear();
  signOut();
}

function InboxLink() {
  const waiting = useApprovals("pending").data?.length ?? 0;
  const label = waiting === 0 ? "Inbox: nothing to decide" : `Inbox: ${waiting} to decide`;
  return (
    <Tooltip text={label}>
      <Link to="/inbox" aria-label={label} className={buttonClass("ghost", "normal", buttonStyles.square)}>
        <Icon name="inbox" />
        {waiting > 0 && <span className={styles.count}>{waiting}</span>}
      </Link>
    </Tooltip>
  );
}

function ThemeSwitch() {
  const theme = useTheme((state) => state.theme);
  const { icon, label } = THEME_LOOK[theme];
  return <IconButton icon={icon} label={`${label}; change theme`} onClick={() => setTheme(nextTheme(theme))} />;
}

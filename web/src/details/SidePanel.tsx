import { useEffect, useId, useRef, type ReactNode } from "react";

import { classes, Icon, IconButton, type IconName } from "../ui";
import styles from "./Details.module.css";

export interface SidePanelProps {
  icon: IconName;
  title: string;
  onClose: () => void;
  /** Over the screen and not beside it, where that would break what is read into other lines. */
  over?: boolean;
  children: ReactNode;
}

/** Beside a screen, or over it where there is no room; Escape closes it and gives the focus back. */
export function SidePanel({ icon, title, onClose, over = false, children }: SidePanelProps) {
  const panel = useRef<HTMLElement>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <aside
      ref={panel}
      className={classes(styles.panel, over && styles.over)}
      tabIndex={-1}
      aria-labelledby={heading}
      onKeyDown={(event) => event.key === "Escape" && (event.stopPropagation(), onClose())}
    >
      <header className={styles.head}>
        <Icon name={icon} />
        <h2 id={heading} className={styles.title} dir="auto">
          {title}
        </h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      {children}
    </aside>
  );
}

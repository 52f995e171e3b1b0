import type { ReactNode } from "react";

import styles from "./Badge.module.css";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import { lookOf, type Tone } from "./status";

export interface BadgeProps {
  tone?: Tone;
  icon?: IconName;
  children: ReactNode;
}

export function Badge({ tone = "calm", icon, children }: BadgeProps) {
  return (
    <span className={classes(styles.badge, styles[tone])}>
      {icon && <Icon name={icon} size={12} />}
      {children}
    </span>
  );
}

/** A status in words, with its colour and drawing; a word that nobody knows is shown as it is. */
export function StatusBadge({ status }: { status: string | null | undefined }) {
  const { tone, icon, words } = lookOf(status);
  return (
    <Badge tone={tone} icon={icon}>
      {words}
    </Badge>
  );
}

/** The drawing of a status alone, with its words for those who do not see it. */
export function StatusIcon({ status, size = 14 }: { status: string | null | undefined; size?: number }) {
  const { tone, icon, words } = lookOf(status);
  return <Icon name={icon} size={size} label={words} className={styles[`${tone}-text`]} />;
}

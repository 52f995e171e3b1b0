import type { ReactNode } from "react";

import styles from "./EmptyState.module.css";
import { Icon, type IconName } from "./Icon";

export interface EmptyStateProps {
  icon: IconName;
  title: string;
  children?: ReactNode;
}

/** Nothing to show, why, and what to do about it. */
export function EmptyState({ icon, title, children }: EmptyStateProps) {
  return (
    <div className={styles.empty}>
      <Icon name={icon} size={24} className={styles.icon} />
      <h2 className={styles.title}>{title}</h2>
      {children}
    </div>
  );
}

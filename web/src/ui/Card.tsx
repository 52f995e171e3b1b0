import type { HTMLAttributes } from "react";

import styles from "./Card.module.css";
import { classes } from "./classes";

export interface CardProps extends HTMLAttributes<HTMLElement> {
  tone?: "plain" | "warn" | "bad";
}

export function Card({ tone = "plain", className, ...rest }: CardProps) {
  return <div role="group" {...rest} className={classes(styles.card, tone !== "plain" && styles[tone], className)} />;
}

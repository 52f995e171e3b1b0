import type { ButtonHTMLAttributes, ReactNode } from "react";

import styles from "./Button.module.css";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import { Spinner } from "./Spinner";
import { Tooltip } from "./Tooltip";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "ghost";
  size?: "normal" | "small";
  icon?: IconName;
  busy?: boolean;
}

export function Button({ kind = "plain", size = "normal", icon, busy = false, children, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-busy={busy || undefined}
      disabled={rest.disabled || busy}
      className={buttonClass(kind, size, className)}
    >
      {busy ? <Spinner /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** The same looks for a link. */
export function buttonClass(kind: NonNullable<ButtonProps["kind"]> = "plain", size: ButtonProps["size"] = "normal", more?: string): string {
  return classes(styles.button, kind !== "plain" && styles[kind], size === "small" && styles.small, more);
}

export interface IconButtonProps extends Omit<ButtonProps, "icon" | "busy"> {
  icon: IconName;
  label: string;
  children?: ReactNode;
}

/** A button that is a drawing alone; its label is its tooltip, too. */
export function IconButton({ icon, label, kind = "ghost", size = "normal", className, children, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button type="button" {...rest} aria-label={label} className={buttonClass(kind, size, classes(styles.square, className))}>
        <Icon name={icon} />
        {children}
      </button>
    </Tooltip>
  );
}

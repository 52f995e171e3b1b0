import { Tooltip as Radix } from "radix-ui";
import type { ReactElement } from "react";

import styles from "./Tooltip.module.css";

export const TooltipProvider = Radix.Provider;

/** Words about its only child, on hover and on focus. Never the only place where they stand. */
export function Tooltip({ text, children }: { text: string; children: ReactElement }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles.tooltip} sideOffset={4} collisionPadding={8}>
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

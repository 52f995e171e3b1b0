import type { ReactNode } from "react";

import { IconButton } from "./Button";
import { classes } from "./classes";
import styles from "./CodeBlock.module.css";
import { copyText } from "./copy";

export interface CodeBlockProps {
  /** What is copied, and shown unless there are children. */
  text: string;
  label: string;
  wrap?: boolean;
  children?: ReactNode;
}

/** Code or output in a box of its own that scrolls, so that long lines never widen the page. */
export function CodeBlock({ text, label, wrap = false, children }: CodeBlockProps) {
  return (
    <div className={styles.block}>
      <pre className={classes(styles.code, wrap && styles.wrap)} tabIndex={0} role="group" aria-label={label} dir="auto">
        {children ?? text}
      </pre>
      <IconButton icon="copy" label="Copy" size="small" className={styles.copy} onClick={() => void copyText(text)} />
    </div>
  );
}

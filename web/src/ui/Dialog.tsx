import { useId, useLayoutEffect, useRef, type ReactNode } from "react";

import { IconButton } from "./Button";
import { classes } from "./classes";
import styles from "./Dialog.module.css";

export interface DialogProps {
  title: string;
  onClose: () => void;
  narrow?: boolean;
  children: ReactNode;
}

/**
 * A window over the page, open while it is rendered. The browser's own dialog keeps the focus and
 * answers Escape; libraries that do so write style elements, which the page's policy forbids.
 */
export function Dialog({ title, onClose, narrow = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Before it is taken out of the page: only a dialog that is closed there gives the focus back.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // A browser begins at the first button, which closes and shows its tooltip; one comes to read, or to fill in.
    dialog?.querySelector<HTMLElement>("[data-begin]")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      className={classes(styles.dialog, narrow && styles.narrow)}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        // A tooltip that is open takes Escape for itself, and the browser then closes nothing.
        event.stopPropagation();
        onClose();
      }}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <header className={styles.head}>
        <h2 id={heading}>{title}</h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      <div className={styles.body} tabIndex={-1}>
        {children}
      </div>
    </dialog>
  );
}

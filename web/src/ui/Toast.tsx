import { create } from "zustand";

import { IconButton } from "./Button";
import { Icon } from "./Icon";
import styles from "./Toast.module.css";

interface Toast {
  id: number;
  tone: "good" | "bad";
  text: string;
}

const SHOWN_MS = 8_000;
const useToasts = create<{ toasts: Toast[]; next: number }>(() => ({ toasts: [], next: 1 }));

/** Say something that belongs to no place on the page. */
export function toast(text: string, tone: Toast["tone"] = "bad"): void {
  const { next: id, toasts } = useToasts.getState();
  useToasts.setState({ next: id + 1, toasts: [...toasts.slice(-3), { id, tone, text }] });
  setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  useToasts.setState(({ toasts }) => ({ toasts: toasts.filter((one) => one.id !== id) }));
}

export function Toasts() {
  const toasts = useToasts((state) => state.toasts);
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {toasts.map(({ id, tone, text }) => (
        <div key={id} className={styles.toast}>
          <Icon name={tone === "bad" ? "alert" : "check"} className={styles[tone]} />
          <span className={styles.words} dir="auto">
            {text}
          </span>
          <IconButton icon="close" label="Dismiss" size="small" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}

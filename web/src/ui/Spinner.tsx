import styles from "./Spinner.module.css";

/** Something is under way; the words beside it say what. */
export function Spinner({ label }: { label?: string }) {
  return <span className={styles.spinner} {...(label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label })} />;
}

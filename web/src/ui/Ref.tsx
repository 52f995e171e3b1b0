import { IconButton } from "./Button";
import { copyText } from "./copy";
import styles from "./Ref.module.css";

/** A ref, an id or a hash, in full for those who copy it and on one line for those who look. */
export function Ref({ value, name }: { value: string; name: string }) {
  return (
    <span className={styles.ref}>
      <code className={styles.text} title={value}>
        {value}
      </code>
      <IconButton icon="copy" label={`Copy ${name}`} size="small" onClick={() => void copyText(value)} />
    </span>
  );
}

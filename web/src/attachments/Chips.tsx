import { Icon, IconButton, Spinner, Verbatim } from "../ui";
import { sizeWords, type Attachment } from "./attachment";
import styles from "./Attachments.module.css";

/** What goes with the message, each with a way to leave it out. */
export function Chips({ attachments, onRemove }: { attachments: Attachment[]; onRemove: (id: string) => void }) {
  if (attachments.length === 0) return null;
  return (
    <ul className={styles.chips} aria-label="Attachments">
      {attachments.map((one) => (
        <li key={one.id} className={styles.chip} data-phase={one.phase}>
          <Mark phase={one.phase} />
          <span className={styles.name} dir="auto">
            <Verbatim text={one.name} line />
          </span>
          <span className={styles.size}>{one.message ?? sizeWords(one.bytes)}</span>
          <IconButton icon="close" size="small" label={`Remove ${one.name}`} onClick={() => onRemove(one.id)} />
        </li>
      ))}
    </ul>
  );
}

function Mark({ phase }: { phase: Attachment["phase"] }) {
  if (phase === "storing") return <Spinner label="Uploading" />;
  return phase === "failed" ? <Icon name="alert" size={14} label="Not uploaded" /> : <Icon name="attach" size={14} />;
}

/** What a message named, of which the state knows the refs alone. */
export function NamedRefs({ refs }: { refs: string[] }) {
  return (
    <ul className={styles.chips} aria-label="Attachments">
      {refs.map((ref, at) => (
        <li key={at} className={styles.chip} title={ref}>
          <Icon name="attach" size={14} label="Attachment" />
          <code className={styles.name}>{ref}</code>
        </li>
      ))}
    </ul>
  );
}

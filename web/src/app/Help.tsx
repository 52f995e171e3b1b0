import { Dialog } from "../ui";
import styles from "./Help.module.css";
import type { Shortcut } from "./shortcuts";

const IN_COMPOSER = [
  { keys: "Enter", does: "Send" },
  { keys: "Shift+Enter", does: "Begin a new line" },
];

export function Help({ shortcuts, onClose }: { shortcuts: Shortcut[]; onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} narrow>
      <dl className={styles.keys}>
        {[...shortcuts, ...IN_COMPOSER].map(({ keys, does }) => (
          <Row key={keys} keys={keys} does={does} />
        ))}
      </dl>
    </Dialog>
  );
}

function Row({ keys, does }: { keys: string; does: string }) {
  return (
    <>
      <dt>
        <kbd>{keys}</kbd>
      </dt>
      <dd>{does}</dd>
    </>
  );
}

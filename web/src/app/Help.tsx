import { Dialog } from "../ui";
import styles from "./Help.module.css";
import type { Shortcut } from "./shortcuts";

const IN_COMPOSER = [
  { keys: "Enter", does: "Send" },
  { keys: "Shift+Enter", does: "Start a new line" },
];

const ON_CARD = [
  { keys: "A", does: "On an approval: approve" },
  { keys: "D", does: "On an approval: deny, with a reason" },
];

const ON_TIMELINE = [
  { keys: "← →", does: "On the timeline: previous or next fact" },
  { keys: "Shift+← →", does: "On the timeline: previous or next turn boundary" },
  { keys: "Home End", does: "On the timeline: first fact; back to live" },
  { keys: "+ - 0", does: "On the timeline: zoom in, zoom out, fit all" },
];

const ON_GRAPH = [
  { keys: "← → ↑ ↓", does: "On the graph: move to the nearest node" },
  { keys: "Enter Space", does: "On the graph: open the node; collapse or expand it" },
];

export function Help({ shortcuts, onClose }: { shortcuts: Shortcut[]; onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} narrow>
      <dl className={styles.keys}>
        {[...shortcuts, ...IN_COMPOSER, ...ON_CARD, ...ON_TIMELINE, ...ON_GRAPH].map(({ keys, does }) => (
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

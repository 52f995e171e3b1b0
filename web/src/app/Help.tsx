import { Dialog } from "../ui";
import styles from "./Help.module.css";
import type { Shortcut } from "./shortcuts";

const IN_COMPOSER = [
  { keys: "Enter", does: "Send" },
  { keys: "Shift+Enter", does: "Begin a new line" },
];

const ON_CARD = [
  { keys: "A", does: "On an approval: approve it" },
  { keys: "D", does: "On an approval: deny it, with a reason" },
];

const ON_TIMELINE = [
  { keys: "← →", does: "On the timeline: one fact back, one on" },
  { keys: "Shift+← →", does: "On the timeline: to where a turn begins or ends" },
  { keys: "Home End", does: "On the timeline: the first fact; back to live" },
  { keys: "+ - 0", does: "On the timeline: closer, wider, all of it" },
];

const ON_GRAPH = [
  { keys: "← → ↑ ↓", does: "On the graph: to the node that is nearest" },
  { keys: "Enter Space", does: "On the graph: open a node; fold it" },
];

export function Help({ shortcuts, onClose }: { shortcuts: Shortcut[]; onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} narrow>
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

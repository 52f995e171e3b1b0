import { StatusIcon, VirtualList } from "../../ui";
import { spentOn } from "./BoxView";
import type { Forest, Item } from "./forest";
import styles from "./Outline.module.css";

const ROW_HEIGHT = 32;

/** The calls of a group, each a click away. */
export function GroupDetails({ group, items, onChoose }: { group: Item; items: Forest["items"]; onChoose: (id: string) => void }) {
  const nodes = group.childIds.flatMap((id) => items.get(id)?.node ?? []);
  return (
    <VirtualList
      items={nodes}
      keyOf={({ nodeId }) => nodeId}
      estimate={() => ROW_HEIGHT}
      label="Tool calls"
      render={(node) => (
        <button type="button" className={styles.call} onClick={() => onChoose(node.nodeId)}>
          <StatusIcon status={node.status} />
          <span className={styles.name} dir="auto">
            {node.title}
          </span>
          <span className={styles.measure}>{spentOn(node)}</span>
        </button>
      )}
    />
  );
}

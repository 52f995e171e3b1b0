import { Handle, Position, type NodeProps } from "@xyflow/react";
import { memo, type MouseEvent } from "react";

import type { GraphNode } from "../../api/generated/projection";
import { classes, durationWords, Icon, lookOf, StatusIcon } from "../../ui";
import type { Box, BoxData } from "./flow";
import styles from "./Graph.module.css";
import { kindOf } from "./kinds";

/** One node or group on the canvas. */
export const BoxView = memo(function BoxView({ data }: NodeProps<Box>) {
  const { item, active, chosen } = data;
  const tone = item.node === null ? "calm" : lookOf(item.node.status).tone;
  return (
    <div className={classes(styles.box, styles[tone], item.node === null && styles.group, data.open !== null && styles.foldable, active && styles.active, chosen && styles.chosen)}>
      <Handle id="in" type="target" position={Position.Left} isConnectable={false} />
      <Handle id="out" type="source" position={Position.Right} isConnectable={false} />
      <Handle id="back" type="target" position={Position.Right} isConnectable={false} />
      {item.node === null ? <GroupWords data={data} /> : <NodeWords node={item.node} />}
      {data.open !== null && <Fold data={data} />}
    </div>
  );
});

function NodeWords({ node }: { node: GraphNode }) {
  const { icon, words } = kindOf(node.nodeType);
  const spent = spentOn(node);
  return (
    <>
      <Icon name={icon} size={14} className={styles.kind} />
      <span className={styles.words}>
        <span className={styles.name} dir="auto" title={node.title}>
          {node.title}
        </span>
        <span className={styles.under}>
          {words}
          {spent !== null && ` · ${spent}`}
        </span>
      </span>
      <StatusIcon status={node.status} />
    </>
  );
}

function GroupWords({ data: { item, counts } }: { data: BoxData }) {
  return (
    <>
      <Icon name="tool" size={14} className={styles.kind} />
      <span className={styles.words}>
        <span className={styles.name}>{item.childIds.length} tool calls</span>
        <span className={styles.under} title={counts}>
          {counts}
        </span>
      </span>
    </>
  );
}

/** For the pointer alone: on the canvas, Space does the same. */
function Fold({ data: { item, open, onFold } }: { data: BoxData }) {
  const fold = (event: MouseEvent) => {
    event.stopPropagation();
    onFold(item.id);
  };
  return (
    <span className={styles.fold} onClick={fold} title={open ? "Collapse" : "Expand"} data-fold={open ? "open" : "closed"}>
      {open ? "−" : `+${item.inside}`}
    </span>
  );
}

/** Between its first and its last fact, where both say when they were. */
export function spentOn({ startedAt, completedAt }: GraphNode): string | null {
  const spent = startedAt == null || completedAt == null ? NaN : Date.parse(completedAt) - Date.parse(startedAt);
  return Number.isNaN(spent) || spent < 0 ? null : durationWords(spent);
}

import { useVirtualizer } from "@tanstack/react-virtual";
import { useId, useRef, useState, type KeyboardEvent } from "react";

import { classes, Icon, lookOf, StatusIcon } from "../../ui";
import { spentOn } from "./BoxView";
import type { Forest, Item } from "./forest";
import styles from "./Outline.module.css";
import { countWords, kindOf } from "./kinds";
import type { Row } from "./rows";
import type { Shown } from "./useGraph";

const ROW_HEIGHT = 32;

export interface OutlineProps {
  shown: Shown;
  chosenId: string | null;
  onChoose: (id: string) => void;
}

/** The graph in words: a tree, of which only the rows on screen exist. */
export function Outline({ shown, chosenId, onChoose }: OutlineProps) {
  const { rows, forest, onFold } = shown;
  const scroller = useRef<HTMLDivElement>(null);
  const prefix = useId();
  const [activeId, setActiveId] = useState<string | null>(null);
  const at = Math.max(0, rows.findIndex(({ item }) => item.id === activeId));
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => rows[index]?.item.id ?? index,
    overscan: 12,
  });
  const goTo = (index: number) => {
    const row = rows[Math.max(0, Math.min(index, rows.length - 1))];
    setActiveId(row?.item.id ?? null);
    if (row !== undefined) list.scrollToIndex(rows.indexOf(row));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const run = keysOf({ rows, at, goTo, onFold, onChoose })[event.key];
    if (run === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  };
  return (
    <div
      ref={scroller}
      className={styles.outline}
      role="tree"
      aria-label="Graph outline"
      tabIndex={0}
      aria-activedescendant={rows.length === 0 ? undefined : `${prefix}-${at}`}
      onKeyDown={onKeyDown}
    >
      <div className={styles.whole} role="presentation" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index] as Row;
          return (
            <div
              key={key}
              id={`${prefix}-${index}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-posinset={row.place}
              aria-setsize={row.siblings}
              aria-selected={row.item.id === chosenId}
              aria-expanded={row.open ?? undefined}
              className={classes(styles.row, index === at && styles.active)}
              style={{ transform: `translateY(${start}px)`, paddingInlineStart: 8 + Math.min(row.depth, DEEPEST) * 18 }}
              onClick={() => {
                setActiveId(row.item.id);
                onChoose(row.item.id);
              }}
            >
              <Chevron row={row} onFold={onFold} />
              <RowWords item={row.item} forest={forest} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Deeper rows are told by their level and drawn no further in, or nothing of them would be left. */
const DEEPEST = 8;

function Chevron({ row, onFold }: { row: Row; onFold: (id: string) => void }) {
  if (row.open === null) return <span className={styles.chevron} />;
  return (
    <span
      className={classes(styles.chevron, row.open && styles.open)}
      onClick={(event) => {
        event.stopPropagation();
        onFold(row.item.id);
      }}
    >
      <Icon name="chevron" size={14} />
    </span>
  );
}

function RowWords({ item, forest }: { item: Item; forest: Forest }) {
  if (item.node === null) {
    return (
      <>
        <Icon name="tool" size={14} />
        <span className={styles.name}>{item.childIds.length} tool calls</span>
        <span className={styles.measure}>{countWords(item, forest.items)}</span>
      </>
    );
  }
  const { icon, words } = kindOf(item.node.nodeType);
  return (
    <>
      <StatusIcon status={item.node.status} />
      <Icon name={icon} size={14} label={words} className={styles.kind} />
      <span className={styles.name} dir="auto">
        {item.node.title}
      </span>
      <span className={styles.measure}>{spentOn(item.node) ?? lookOf(item.node.status).words}</span>
    </>
  );
}

interface Keyed {
  rows: Row[];
  at: number;
  goTo: (index: number) => void;
  onFold: (id: string) => void;
  onChoose: (id: string) => void;
}

/** The keys of a tree, as screen readers tell people to use them. */
function keysOf({ rows, at, goTo, onFold, onChoose }: Keyed): Record<string, (() => void) | undefined> {
  const row = rows[at];
  if (row === undefined) return {};
  const { id, parentId } = row.item;
  return {
    ArrowDown: () => goTo(at + 1),
    ArrowUp: () => goTo(at - 1),
    Home: () => goTo(0),
    End: () => goTo(rows.length - 1),
    ArrowRight: () => (row.open === false ? onFold(id) : row.open === true && goTo(at + 1)),
    ArrowLeft: () => (row.open === true ? onFold(id) : parentId !== null && goTo(rows.findIndex(({ item }) => item.id === parentId))),
    Enter: () => onChoose(id),
    " ": () => onChoose(id),
  };
}

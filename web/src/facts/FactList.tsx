import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useId, useRef, type KeyboardEvent } from "react";

import type { FactRow } from "../state/moments";
import { classes, Icon } from "../ui";
import { clockWords } from "./clock";
import styles from "./FactList.module.css";
import { iconOf } from "./marks";

export interface FactListProps {
  rows: readonly FactRow[];
  label: string;
  /** The place, among all facts, of the one that is chosen. */
  chosen: number | null;
  onChoose: (row: FactRow) => void;
}

const ROW_PIXELS = 28;
const STEPS: Record<string, number> = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

/** Facts in order, one line each, of which only those on screen exist. */
export function FactList({ rows, label, chosen, onChoose }: FactListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const listId = useId();
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: useCallback(() => scroller.current, []),
    estimateSize: useCallback(() => ROW_PIXELS, []),
    overscan: 10,
  });
  const place = chosen === null ? -1 : placeOf(rows, chosen);
  useEffect(() => {
    if (place >= 0) list.scrollToIndex(place, { align: "auto" });
  }, [place, list]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined || rows.length === 0) return;
    event.preventDefault();
    const from = place >= 0 ? place : rows.length - 1;
    const row = rows[Math.min(Math.max(from + step, 0), rows.length - 1)];
    if (row !== undefined) onChoose(row);
  };
  const drawn = list.getVirtualItems();
  const visible = drawn.some(({ index }) => index === place);
  return (
    <div
      ref={scroller}
      className={styles.list}
      role="listbox"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={visible ? `${listId}-${place}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div className={styles.whole} role="presentation" style={{ height: list.getTotalSize() }}>
        {drawn.map(({ index, start }) => {
          const row = rows[index] as FactRow;
          return (
            <div
              key={row.index}
              id={`${listId}-${index}`}
              role="option"
              aria-selected={row.index === chosen}
              aria-posinset={index + 1}
              aria-setsize={rows.length}
              className={classes(styles.row, row.marks.includes("failure") && styles.failed)}
              style={{ transform: `translateY(${start}px)` }}
              onClick={() => onChoose(row)}
            >
              <Line row={row} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Line({ row }: { row: FactRow }) {
  return (
    <>
      <span className={styles.number}>{row.sequence}</span>
      <Icon name={iconOf(row)} size={14} />
      <code className={styles.class}>{row.eventClass}</code>
      <span className={styles.title} dir="auto">
        {row.title === row.eventClass ? "" : row.title}
      </span>
      <time className={styles.when} dateTime={row.createdAt}>
        {clockWords(row.time)}
      </time>
    </>
  );
}

/** Rows are in order of their place, whether all of them are there or some. */
function placeOf(rows: readonly FactRow[], index: number): number {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const at = rows[middle]?.index ?? 0;
    if (at === index) return middle;
    if (at < index) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

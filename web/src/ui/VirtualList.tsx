import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useLayoutEffect, useRef, useState, type ReactNode } from "react";

import { Button } from "./Button";
import styles from "./VirtualList.module.css";

export interface VirtualListProps<Item> {
  items: Item[];
  keyOf: (item: Item) => string;
  render: (item: Item, index: number) => ReactNode;
  /** The height of a row that was never drawn, in pixels. */
  estimate: (item: Item) => number;
  label: string;
  /** Stay at the end while rows come, unless the reader has scrolled away from it. */
  followEnd?: boolean;
  className?: string | undefined;
}

const NEAR_END = 48;

/** Rows of any height, of which only those on screen exist. */
export function VirtualList<Item>({ items, keyOf, render, estimate, label, followEnd = false, className }: VirtualListProps<Item>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(followEnd);
  // The functions stay the same ones, or every picture would measure every row again.
  const current = useRef({ items, keyOf, estimate });
  current.current = { items, keyOf, estimate };
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: useCallback(() => scroller.current, []),
    estimateSize: useCallback((index: number) => current.current.estimate(current.current.items[index] as Item), []),
    getItemKey: useCallback((index: number) => current.current.keyOf(current.current.items[index] as Item), []),
    overscan: 8,
  });
  const height = list.getTotalSize();
  const toEnd = () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  useLayoutEffect(() => {
    if (followEnd && atEnd) toEnd();
  }, [followEnd, atEnd, height, items]);
  return (
    <div className={styles.frame}>
      <div
        ref={scroller}
        className={styles.scroller}
        tabIndex={0}
        role="region"
        aria-label={label}
        onScroll={({ currentTarget: at }) => followEnd && setAtEnd(at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_END)}
      >
        <div className={`${styles.whole} ${className ?? ""}`} style={{ height }}>
          {list.getVirtualItems().map((row) => (
            <div key={row.key} ref={list.measureElement} data-index={row.index} className={styles.row} style={{ transform: `translateY(${row.start}px)` }}>
              {render(items[row.index] as Item, row.index)}
            </div>
          ))}
        </div>
      </div>
      {followEnd && !atEnd && (
        <Button size="small" icon="down" className={styles.latest} onClick={() => setAtEnd(true)}>
          Latest
        </Button>
      )}
    </div>
  );
}

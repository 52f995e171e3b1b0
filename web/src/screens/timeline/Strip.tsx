import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";

import { clockWords } from "../../facts/clock";
import { MARK_ORDER, MARKS } from "../../facts/marks";
import { axisOf, clamp, densityOf, showing, zoomed, type Axis, type Density, type FactRow, type Range, type Scale, type TimeMachine } from "../../state/moments";
import { classes, Icon } from "../../ui";
import { placeByKey } from "./steps";
import styles from "./Strip.module.css";

export interface StripProps {
  machine: TimeMachine;
  /** With a lane for each kind of mark; else one line for all. */
  lanes?: boolean;
  scale?: Scale;
  /** The part that is shown, where it can be changed; else all of it. */
  range?: Range | null;
  onRange?: (range: Range | null) => void;
  /** The fact under the pointer. */
  onHover?: (row: FactRow | null) => void;
}

const ZOOMS: Record<string, number | null> = { "+": 0.5, "=": 0.5, "-": 2, "0": null };
const COLUMN_PIXELS = 3;

/** All facts on one line: pull, click or step to any of them. */
export function Strip({ machine, lanes = false, scale = "facts", range = null, onRange, onHover }: StripProps) {
  const { facts, index, live, goTo } = machine;
  const { rows } = facts;
  const [element, columns] = useColumns();
  const axis = useMemo(() => axisOf(rows, scale), [rows, scale]);
  const place = index ?? rows.length;
  const shown = shownRange(axis, range, axis.placeOf(Math.min(place, rows.length - 1)));
  const density = useMemo(() => densityOf(rows, axis, shown, columns), [rows, axis, shown.from, shown.to, columns]);
  const indexUnder = ({ clientX, currentTarget }: PointerEvent<HTMLElement>) => {
    const box = currentTarget.getBoundingClientRect();
    return axis.indexAt(shown.from + clamp((clientX - box.left) / box.width, 0, 1) * (shown.to - shown.from));
  };
  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    if (event.button !== 0 || rows.length === 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    goTo(indexUnder(event));
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    if (rows.length === 0) return;
    const under = indexUnder(event);
    onHover?.(rows[under] ?? null);
    if (event.currentTarget.hasPointerCapture(event.pointerId) && under !== index) goTo(under);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = placeByKey(event.key, event.shiftKey, rows, place);
    const zoom = event.ctrlKey || event.metaKey ? undefined : ZOOMS[event.key];
    if (to === undefined && (zoom === undefined || onRange === undefined)) return;
    event.preventDefault();
    if (to !== undefined && to !== place) goTo(to);
    if (zoom !== undefined) onRange?.(zoom === null ? null : zoomed(axis, shown, axis.placeOf(Math.min(place, rows.length - 1)), zoom));
  };
  return (
    <div className={classes(styles.frame, lanes && styles.tall)}>
      {lanes && <LaneNames />}
      <div
        ref={element}
        className={styles.strip}
        role="slider"
        tabIndex={0}
        aria-label="Moment"
        aria-orientation="horizontal"
        aria-valuemin={1}
        aria-valuemax={rows.length + 1}
        aria-valuenow={place + 1}
        aria-valuetext={momentWords(rows[place], live)}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        // Where a pull ends counts: a busy browser leaves out moves, but never its end.
        onPointerUp={onPointerMove}
        onPointerLeave={() => onHover?.(null)}
        onKeyDown={onKeyDown}
      >
        <Drawing density={density} columns={columns} lanes={lanes} />
        <div className={classes(styles.head, live && styles.now)} style={{ left: `${headShare(axis, shown, place, rows.length) * 100}%` }} />
      </div>
    </div>
  );
}

/** What is on screen always has the moment in it. */
function shownRange(axis: Axis, range: Range | null, place: number): Range {
  return range === null ? { from: 0, to: axis.length } : showing(axis, range, place);
}

function headShare(axis: Axis, shown: Range, place: number, count: number): number {
  if (place >= count) return 1;
  return clamp((axis.placeOf(place) - shown.from) / (shown.to - shown.from), 0, 1);
}

function momentWords(row: FactRow | undefined, live: boolean): string {
  if (live || row === undefined) return "Live";
  return `Fact ${row.sequence}, ${row.eventClass}, ${clockWords(row.time)}`;
}

function LaneNames() {
  return (
    <ul className={styles.names} aria-hidden>
      {MARK_ORDER.map((mark) => (
        <li key={mark} className={styles[mark]}>
          <Icon name={MARKS[mark].icon} size={12} />
          <span>{MARKS[mark].words}</span>
        </li>
      ))}
    </ul>
  );
}

const DENSITY = 40;
const LANE = 15;

/** Columns of a drawing that is stretched to its box: heights are percents, widths are columns. */
function Drawing({ density, columns, lanes }: { density: Density; columns: number; lanes: boolean }) {
  const height = lanes ? DENSITY : 100;
  return (
    <svg className={styles.drawing} viewBox={`0 0 ${columns} 100`} preserveAspectRatio="none" aria-hidden>
      <path className={styles.bars} d={barsOf(density, height)} />
      {MARK_ORDER.map((mark, at) => (
        <path key={mark} className={styles[mark]} d={ticksOf(density.marks[mark], lanes ? DENSITY + at * LANE + 4 : 0, lanes ? LANE - 5 : tickHeight(mark))} />
      ))}
    </svg>
  );
}

/** Without lanes only what people look for is marked, at the top. */
function tickHeight(mark: string): number {
  return mark === "failure" || mark === "approval" ? 30 : 0;
}

function barsOf({ counts, most }: Density, height: number): string {
  // A root, so that a burst does not make everything else vanish.
  return counts.map((count, at) => (count === 0 ? "" : bar(at, height - Math.max(4, Math.sqrt(count / most) * (height - 4)), height))).join("");
}

function ticksOf(marked: boolean[], top: number, height: number): string {
  return height === 0 ? "" : marked.map((there, at) => (there ? bar(at, top, top + height) : "")).join("");
}

function bar(at: number, top: number, bottom: number): string {
  return `M${at} ${bottom.toFixed(1)}V${top.toFixed(1)}h.7V${bottom.toFixed(1)}z`;
}

function useColumns(): [React.RefObject<HTMLDivElement | null>, number] {
  const element = useRef<HTMLDivElement>(null);
  const [columns, setColumns] = useState(200);
  useEffect(() => {
    const watched = element.current;
    if (watched === null) return;
    const observer = new ResizeObserver(() => setColumns(clamp(Math.floor(watched.clientWidth / COLUMN_PIXELS), 40, 600)));
    observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  return [element, columns];
}

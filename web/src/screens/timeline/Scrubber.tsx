import { useState } from "react";

import { clockWords, dayWords } from "../../facts/clock";
import { axisOf, zoomed, type FactRow, type Range, type Scale, type TimeMachine } from "../../state/moments";
import { Button, durationWords, IconButton } from "../../ui";
import styles from "./Scrubber.module.css";
import { Strip } from "./Strip";
import { Transport } from "./Transport";

/** The large strip with its lanes: two scales, as close as one likes. */
export function Scrubber({ machine }: { machine: TimeMachine }) {
  const { rows } = machine.facts;
  const [scale, setScale] = useState<Scale>("facts");
  const [range, setRange] = useState<Range | null>(null);
  const [hovered, setHovered] = useState<FactRow | null>(null);
  const zoom = (factor: number) => {
    const axis = axisOf(rows, scale);
    const all = { from: 0, to: axis.length };
    const next = zoomed(axis, range ?? all, axis.placeOf(Math.min(machine.index ?? rows.length - 1, rows.length - 1)), factor);
    setRange(next.to - next.from >= axis.length ? null : next);
  };
  const choose = (next: Scale) => {
    setScale(next);
    setRange(null);
  };
  const named = hovered ?? (machine.index === null ? null : (rows[machine.index] ?? null));
  return (
    <div className={styles.scrubber}>
      <div className={styles.tools}>
        <Transport machine={machine} />
        <span className={styles.space} />
        <select className={styles.scale} aria-label="Scale" value={scale} onChange={(event) => choose(event.target.value as Scale)}>
          <option value="facts">By number</option>
          <option value="time">By time</option>
        </select>
        <IconButton icon="minus" label="Zoom out" size="small" disabled={range === null} onClick={() => zoom(2)} />
        <IconButton icon="plus" label="Zoom in" size="small" onClick={() => zoom(0.5)} />
        <Button size="small" kind="ghost" disabled={range === null} onClick={() => setRange(null)}>
          Fit
        </Button>
      </div>
      <Strip machine={machine} lanes scale={scale} range={range} onRange={setRange} onHover={setHovered} />
      <div className={styles.readout}>
        <span className={styles.named} dir="auto">
          {named === null ? "Live" : [named.sequence, named.eventClass, clockWords(named.time), ...(named.title === named.eventClass ? [] : [named.title])].join(" · ")}
        </span>
        <Extent machine={machine} />
      </div>
    </div>
  );
}

function Extent({ machine: { facts } }: { machine: TimeMachine }) {
  const { rows, complete, cut } = facts;
  const first = rows.find(({ time }) => !Number.isNaN(time));
  const last = rows.findLast(({ time }) => !Number.isNaN(time));
  const took = first === undefined || last === undefined ? "time unknown" : `${dayWords(first.time)}, ${durationWords(Math.max(last.time - first.time, 0))}`;
  return (
    <span className={styles.extent}>
      {rows.length.toLocaleString()} {complete || cut ? "facts" : "facts, loading more"} · {took}
      {cut && " · later facts not listed"}
    </span>
  );
}

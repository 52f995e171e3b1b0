import { useMemo } from "react";

import type { Tool } from "../../api/generated/projection";
import { clockWords } from "../../facts/clock";
import { useFacts } from "../../state/moments";
import { durationWords } from "../../ui";
import { Columns, Lines } from "./charts";
import styles from "./Diagnostics.module.css";
import { factRate, median, toolTimes, turnTimes, upTo } from "./latency";

const TURNS_SHOWN = 60;
const TOOLS_SHOWN = 12;
const RATE_COLUMNS = 80;

export interface LatencyProps {
  threadId: string;
  tools: { [id: string]: Tool };
  until: number | null;
}

/** How long things took, by the clocks of those who wrote the facts. */
export function Latency({ threadId, tools, until }: LatencyProps) {
  const { rows } = useFacts(threadId);
  const shown = useMemo(() => upTo(rows, until), [rows, until]);
  const turns = useMemo(() => turnTimes(shown).slice(-TURNS_SHOWN), [shown]);
  const slowest = useMemo(() => toolTimes(tools), [tools]);
  const rate = useMemo(() => factRate(shown, RATE_COLUMNS), [shown]);
  const turnColumns = (pick: "toStatus" | "toText") => turns.map((turn) => ({ name: `Turn ${turn.number}`, value: turn[pick] }));
  return (
    <section className={styles.section} aria-label="Latency">
      <h2>
        Latency <span className={styles.soft}>computed from fact timestamps</span>
      </h2>
      <div className={styles.charts}>
        <Columns title="Submit to first status" summary={spread(turns.map(({ toStatus }) => toStatus))} values={turnColumns("toStatus")} words={durationWords} ends={turnEnds(turns)} />
        <Columns title="Submit to first text" summary={spread(turns.map(({ toText }) => toText))} values={turnColumns("toText")} words={durationWords} ends={turnEnds(turns)} />
        <Columns
          title="Facts over time"
          summary={rate === null ? "No timestamps." : `${shown.length.toLocaleString()} facts, up to ${Math.max(...rate.counts)} in ${durationWords(rate.width)}`}
          values={(rate?.counts ?? []).map((value, at) => ({ name: clockWords((rate?.begin ?? 0) + at * (rate?.width ?? 0)), value }))}
          words={(value) => `${value} facts`}
          ends={rate === null ? ["", ""] : [clockWords(rate.begin), clockWords(rate.begin + rate.width * RATE_COLUMNS)]}
        />
        <Lines title="Slowest tools" summary={spread(slowest.map(({ took }) => took))} values={slowest.slice(0, TOOLS_SHOWN).map(({ toolCallId, name, took }) => ({ id: toolCallId, name, value: took }))} words={durationWords} />
      </div>
    </section>
  );
}

function turnEnds(turns: { number: number }[]): [string, string] {
  const last = turns.at(-1)?.number;
  return [turns[0] === undefined ? "" : `turn ${turns[0].number}`, last === undefined || turns.length < 2 ? "" : `turn ${last}`];
}

function spread(values: (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  const middle = median(known);
  if (middle === null) return "No data.";
  const unknown = values.length - known.length;
  return `${known.length} measured, median ${durationWords(middle)}, longest ${durationWords(Math.max(...known))}${unknown > 0 ? `, ${unknown} unknown` : ""}`;
}

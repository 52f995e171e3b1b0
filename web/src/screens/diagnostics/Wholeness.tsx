import type { Hydration, ProjectionState } from "../../api/generated/projection";
import { clockWords } from "../../facts/clock";
import { useFacts, useMachine, type FactRow } from "../../state/moments";
import { Badge, Button, type Tone } from "../../ui";
import styles from "./Diagnostics.module.css";
import { gapWords } from "./gaps";
import { upTo } from "./latency";

const MEANS: Record<Hydration["status"], { tone: Tone; words: string }> = {
  idle: { tone: "calm", words: "No facts yet." },
  hydrating: { tone: "warn", words: "Restored from a read model; no facts since." },
  live: { tone: "good", words: "The state is complete up to the cursor." },
  stale: { tone: "warn", words: "Facts are missing, or a shared-state change could not be applied." },
  repairing: { tone: "warn", words: "The source reports that it is repairing the stream." },
  degraded: { tone: "bad", words: "Too many facts arrived after a gap. They are shown, but no text is marked as final." },
};

const REPAIRS = new Set(["stream.gap.detected", "stream.repair.started", "stream.repair.completed", "state.snapshot", "messages.snapshot", "snapshot.updated"]);

export interface WholenessProps {
  threadId: string;
  hydration: Hydration;
  readModel: ProjectionState["readModel"];
  until: number | null;
}

/** Whether the state has everything, what is missing, and what was done about it. */
export function Wholeness({ threadId, hydration, readModel, until }: WholenessProps) {
  const repairs = upTo(useFacts(threadId).rows, until).filter(({ eventClass }) => REPAIRS.has(eventClass));
  const { tone, words } = MEANS[hydration.status] ?? { tone: "calm", words: "Unknown status." };
  return (
    <section className={styles.section} aria-label="Completeness">
      <h2>Gaps and repairs</h2>
      <p className={styles.line}>
        <Badge tone={tone}>{hydration.status}</Badge> {words}
      </p>
      <dl className={styles.figures}>
        <Figure name="Complete up to fact" value={hydration.cursor ?? "unknown"} />
        <Figure name="Facts received" value={hydration.received} />
        <Figure name="Facts applied" value={hydration.eventCount} />
        <Figure name="Repeated" value={hydration.repeated} />
        <Figure name="Held after a gap" value={hydration.held} />
        <Figure name="Late" value={hydration.late} />
        <Figure name="Dropped" value={hydration.dropped} />
        <Figure name="Restored from" value={readModel.eventCursor == null ? "nothing" : `a read model at fact ${readModel.eventCursor}`} />
      </dl>
      {hydration.gaps.length > 0 && <p>Missing: {hydration.gaps.map(gapWords).join(", ")}</p>}
      {hydration.reasons.length > 0 && <p>Reason: {hydration.reasons.join(", ")}</p>}
      {hydration.ignored.length > 0 && <p className={styles.soft}>Ignored: {hydration.ignored.join(", ")}</p>}
      {repairs.length === 0 ? (
        <p className={styles.soft}>No gaps or repairs.</p>
      ) : (
        <ul className={styles.rows}>
          {repairs.map((row) => (
            <Repair key={row.index} row={row} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Repair({ row }: { row: FactRow }) {
  const { goTo } = useMachine();
  return (
    <li className={styles.line}>
      <Button size="small" kind="ghost" icon="clock" onClick={() => goTo(row.index)}>
        Go to fact {row.sequence}
      </Button>
      <code>{row.eventClass}</code>
      <span className={styles.soft}>{clockWords(row.time)}</span>
    </li>
  );
}

export function Figure({ name, value }: { name: string; value: string | number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{typeof value === "number" ? value.toLocaleString() : value}</dd>
    </div>
  );
}

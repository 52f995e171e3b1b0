import { useMemo, useState } from "react";

import type { ScreenProps } from "../../app/screens";
import { FactDetail } from "../../facts/FactDetail";
import { FactList } from "../../facts/FactList";
import { MARK_ORDER, MARKS } from "../../facts/marks";
import { useFacts, useMachine, type FactRow, type Mark, type TimeMachine } from "../../state/moments";
import { Button, EmptyState, Icon, Spinner } from "../../ui";
import { Scrubber } from "./Scrubber";
import styles from "./Timeline.module.css";

/** Every fact of the thread, to be moved along; the other panels show the same moment. */
export default function Timeline({ threadId }: ScreenProps) {
  const machine = useMachine();
  const { rows, complete, error, log } = useFacts(threadId);
  if (error !== null && rows.length === 0) return <Unreadable error={error} onAgain={() => void log.readOn()} />;
  if (rows.length === 0) return <Nothing complete={complete} />;
  return (
    <div className={styles.screen}>
      <Scrubber machine={machine} />
      <Listed machine={machine} />
    </div>
  );
}

function Listed({ machine }: { machine: TimeMachine }) {
  const { facts, index, threadId } = machine;
  const [only, setOnly] = useState<Mark | null>(null);
  const rows = useMemo(() => (only === null ? facts.rows : facts.rows.filter(({ marks }) => marks.includes(only))), [facts.rows, only]);
  const chosen = index === null ? undefined : facts.rows[index];
  return (
    <div className={styles.columns}>
      <div className={styles.listed}>
        <Choice only={only} onChoose={setOnly} />
        {rows.length === 0 && <p className={styles.none}>No matching facts in this thread.</p>}
        <FactList rows={rows} label="Facts" chosen={index} onChoose={(row: FactRow) => machine.goTo(row.index)} />
      </div>
      <div className={styles.aside}>
        {chosen === undefined ? <Hint /> : <FactDetail threadId={threadId} row={chosen} log={facts.log} paused={machine.busy} />}
      </div>
    </div>
  );
}

function Choice({ only, onChoose }: { only: Mark | null; onChoose: (mark: Mark | null) => void }) {
  return (
    <div className={styles.choice} role="group" aria-label="Filter facts">
      {[null, ...MARK_ORDER].map((mark) => (
        <button key={mark ?? "all"} type="button" className={styles.chip} aria-pressed={only === mark} onClick={() => onChoose(mark)}>
          {mark !== null && <Icon name={MARKS[mark].icon} size={12} />}
          {mark === null ? "All" : MARKS[mark].words}
        </button>
      ))}
    </div>
  );
}

function Hint() {
  return (
    <EmptyState icon="clock" title="Live">
      <p>Drag the line above or select a fact to see the thread as it was at that moment, here and in every other tab.</p>
    </EmptyState>
  );
}

function Nothing({ complete }: { complete: boolean }) {
  if (complete) return <EmptyState icon="timeline" title="No facts yet" />;
  return (
    <div className={styles.loading}>
      <Spinner label="Loading facts" />
    </div>
  );
}

function Unreadable({ error, onAgain }: { error: string; onAgain: () => void }) {
  return (
    <EmptyState icon="alert" title="Could not load facts">
      <p>{error}</p>
      <Button icon="retry" onClick={onAgain}>
        Try again
      </Button>
    </EmptyState>
  );
}

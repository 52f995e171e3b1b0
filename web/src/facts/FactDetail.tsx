import { useQuery } from "@tanstack/react-query";

import { wordsOf } from "../api/refusal";
import type { FactLog, FactRow } from "../state/moments";
import { CodeBlock, Spinner } from "../ui";
import { clockWords, dayWords } from "./clock";
import styles from "./FactDetail.module.css";

export interface FactDetailProps {
  threadId: string;
  row: FactRow;
  log: FactLog;
  /** Ask for nothing yet: somebody is still on the move. */
  paused?: boolean;
}

/** One fact with all that is in it, as the Edge has it. */
export function FactDetail({ threadId, row, log, paused = false }: FactDetailProps) {
  const { data, error } = useQuery({
    queryKey: ["fact", threadId, row.id],
    queryFn: async ({ signal }) => (await log.facts(row.index, 1, signal))[0] ?? null,
    staleTime: Infinity,
    gcTime: 30_000,
    enabled: !paused,
    placeholderData: (before) => before,
  });
  return (
    <section className={styles.detail} aria-label="Fact">
      <h2 className={styles.name}>
        <code>{row.eventClass}</code>
      </h2>
      <p className={styles.when}>
        Fact {row.sequence} · {dayWords(row.time)} {clockWords(row.time)}
      </p>
      {error !== null && <p role="alert">{wordsOf(error)}</p>}
      {data === undefined && error === null && <Spinner label="Loading fact" />}
      {data != null && (
        <div className={data.id === row.id ? undefined : styles.before} aria-busy={data.id !== row.id}>
          <CodeBlock text={JSON.stringify(data, null, 2)} label="Fact as JSON" wrap />
        </div>
      )}
    </section>
  );
}

import { useMemo, useState } from "react";

import { FactDetail } from "../../facts/FactDetail";
import { FactList } from "../../facts/FactList";
import { useFacts, useMachine, type FactRow } from "../../state/moments";
import { Button, EmptyState, Spinner } from "../../ui";
import { ExportButton } from "./ExportButton";
import { upTo } from "./latency";
import styles from "./RawFacts.module.css";
import { matching } from "./search";
import { useWords, type WordSearch } from "./useWords";

/** The facts themselves, as far as they match; up to the moment that is looked at. */
export function RawFacts({ threadId, until }: { threadId: string; until: number | null }) {
  const facts = useFacts(threadId);
  const { goTo } = useMachine();
  const [eventClass, setEventClass] = useState("");
  const [id, setId] = useState("");
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState<FactRow | null>(null);
  const { search, start, clear } = useWords(facts.log);
  const rows = useMemo(() => upTo(facts.rows, until), [facts.rows, until]);
  const listed = useMemo(() => matching(rows, { eventClass, id }), [rows, eventClass, id]);
  const shown = useMemo(() => (search === null ? listed : matching(search.found, { eventClass, id })), [listed, search, eventClass, id]);
  return (
    <div className={styles.screen}>
      <form
        className={styles.filter}
        role="search"
        aria-label="Facts"
        onSubmit={(event) => {
          event.preventDefault();
          void start(rows, words);
        }}
      >
        <Field label="Class" value={eventClass} onChange={setEventClass} placeholder="tool.started" />
        <Field label="Id" value={id} onChange={setId} placeholder="fact, turn or call" />
        <Field label="Contains text" value={words} onChange={(next) => (next === "" ? (clear(), setWords("")) : setWords(next))} placeholder="press Enter" />
        <Button type="submit" size="small" icon="search" busy={search?.busy ?? false} disabled={words.trim() === ""}>
          Search
        </Button>
      </form>
      <div className={styles.status}>
        <p role="status">
          {statusWords(shown.length, rows.length, facts.complete, search)} {search?.busy && <Spinner />}
        </p>
        <ExportButton threadId={threadId} log={facts.log} rows={shown} />
      </div>
      <div className={styles.columns}>
        {shown.length === 0 ? <Nothing complete={facts.complete} /> : <FactList rows={shown} label="Raw facts" chosen={chosen?.index ?? null} onChoose={setChosen} />}
        {chosen !== null && (
          <div className={styles.aside}>
            <div className={styles.ways}>
              <Button size="small" icon="clock" onClick={() => goTo(chosen.index)}>
                Go to this moment
              </Button>
              <Button size="small" kind="ghost" onClick={() => setChosen(null)}>
                Close
              </Button>
            </div>
            <FactDetail threadId={threadId} row={chosen} log={facts.log} />
          </div>
        )}
      </div>
    </div>
  );
}

function Field({ label, value, onChange, placeholder }: { label: string; value: string; onChange: (value: string) => void; placeholder: string }) {
  return (
    <label className={styles.field}>
      {label}
      <input type="search" value={value} placeholder={placeholder} spellCheck={false} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}

function Nothing({ complete }: { complete: boolean }) {
  return <EmptyState icon="search" title={complete ? "No matching facts" : "Loading facts"} />;
}

function statusWords(shown: number, all: number, complete: boolean, search: WordSearch | null): string {
  const counted = `${shown.toLocaleString()} of ${all.toLocaleString()} facts`;
  if (search !== null) return `${counted}; searched ${search.done.toLocaleString()} of ${search.of.toLocaleString()} for “${search.words}”.`;
  return complete ? `${counted}.` : `${counted}, loading more.`;
}

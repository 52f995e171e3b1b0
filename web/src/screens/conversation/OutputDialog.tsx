import { useEffect, useRef, useState } from "react";

import { wordsOf } from "../../api/refusal";
import { Button, Dialog } from "../../ui";
import styles from "./Conversation.module.css";
import { blobReader, logReader, type OutputReader } from "./output";

/** Where the whole of an output is: behind a ref, in the log of a program that still runs, or here. */
export interface OutputPlace {
  outputRef: string | null;
  log: { runId: string; processId: string } | null;
  shown: string;
}

export interface OutputDialogProps {
  name: string;
  place: OutputPlace;
  onClose: () => void;
}

export function OutputDialog({ name, place, onClose }: OutputDialogProps) {
  const [reader] = useState(() => readerOf(place));
  return (
    <Dialog title={`Output of ${name}`} onClose={onClose}>
      {reader === null ? <pre className={styles.whole}>{place.shown}</pre> : <Pages reader={reader} />}
    </Dialog>
  );
}

function readerOf({ outputRef, log }: OutputPlace): OutputReader | null {
  if (outputRef !== null) return blobReader(outputRef);
  return log === null ? null : logReader(log.runId, log.processId, "stdout");
}

export function Pages({ reader }: { reader: OutputReader }) {
  const { pages, ended, error, busy, more } = usePages(reader);
  return (
    <div className={styles.output}>
      <pre className={styles.whole} tabIndex={0} aria-label="Output" role="region">
        {pages.map((page, at) => (
          <div key={at} className={styles.chunk}>
            {page}
          </div>
        ))}
      </pre>
      {error !== null && (
        <p className={styles.bad} role="alert">
          {error}
        </p>
      )}
      {ended ? (
        <p className={styles.caption}>End of output.</p>
      ) : (
        <div>
          <Button busy={busy} onClick={more}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

function usePages(reader: OutputReader) {
  const [pages, setPages] = useState<string[]>([]);
  const [ended, setEnded] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const closed = useRef(false);
  const more = async () => {
    setBusy(true);
    try {
      const page = await reader.next();
      if (closed.current) return;
      if (page !== null) setPages((before) => [...before, page]);
      setEnded(page === null || reader.ended());
    } catch (reason) {
      if (!closed.current) setError(wordsOf(reason));
    } finally {
      if (!closed.current) setBusy(false);
    }
  };
  useEffect(() => {
    void more();
    return () => {
      closed.current = true;
      reader.close();
    };
  }, [reader]);
  return { pages, ended, error, busy, more: () => void more() };
}

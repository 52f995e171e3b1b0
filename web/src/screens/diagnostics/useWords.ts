import { useEffect, useRef, useState } from "react";

import { wordsOf } from "../../api/refusal";
import type { FactLog, FactRow } from "../../state/moments";
import { toast } from "../../ui";
import { holds, pagesOf } from "./search";

export interface WordSearch {
  words: string;
  found: FactRow[];
  done: number;
  of: number;
  busy: boolean;
}

/** Read through rows for words, as they were when the search began; null, no search. */
export function useWords(log: FactLog) {
  const [search, setSearch] = useState<WordSearch | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const clear = () => {
    running.current?.abort();
    setSearch(null);
  };
  const start = async (rows: readonly FactRow[], words: string) => {
    clear();
    const lowered = words.trim().toLowerCase();
    if (lowered === "") return;
    const stop = new AbortController();
    running.current = stop;
    let shown: WordSearch = { words, found: [], done: 0, of: rows.length, busy: true };
    setSearch(shown);
    try {
      for await (const { found, done } of pagesOf(log, rows, stop.signal)) {
        const matches = found.filter(({ fact }) => holds(fact, lowered)).map(({ row }) => row);
        shown = { ...shown, found: [...shown.found, ...matches], done };
        setSearch(shown);
      }
    } catch (error) {
      if (stop.signal.aborted) return;
      toast(wordsOf(error));
    }
    if (!stop.signal.aborted) setSearch({ ...shown, busy: false });
  };
  return { search, start, clear };
}

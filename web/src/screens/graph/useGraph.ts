/** The rows of a graph and where they stand, kept in place while facts come. */

import { useCallback, useMemo, useRef, useState } from "react";

import type { Graph } from "../../api/generated/projection";
import { forestOf, type Forest } from "./forest";
import { grownPlaces, isTidy, tidyPlaces, type Places } from "./places";
import { rowsOf, type Folds, type Row } from "./rows";

export interface Shown {
  forest: Forest;
  rows: Row[];
  places: Places;
  isTidy: boolean;
  hiddenTypes: ReadonlySet<string>;
  onHide: (nodeType: string) => void;
  onFold: (id: string) => void;
  onTidy: () => void;
  /** Counts what a reader asked for, and whose place on screen should stay the same then. */
  asked: { times: number; about: string | null };
}

export function useGraph(graph: Graph): Shown {
  const [hiddenTypes, setHiddenTypes] = useState<ReadonlySet<string>>(new Set());
  const [folds, setFolds] = useState<Folds>({});
  const [asked, setAsked] = useState<Shown["asked"]>({ times: 0, about: null });
  const forest = useMemo(() => forestOf(graph, hiddenTypes), [graph, hiddenTypes]);
  const rows = useMemo(() => rowsOf(forest, folds), [forest, folds]);
  const places = usePlaces(rows, asked.times);
  const ask = useCallback((about: string | null) => setAsked(({ times }) => ({ times: times + 1, about })), []);
  const current = useRef(rows);
  current.current = rows;
  const onFold = useCallback(
    (id: string) => {
      const open = current.current.find(({ item }) => item.id === id)?.open ?? true;
      setFolds((before) => ({ ...before, [id]: !open }));
      ask(id);
    },
    [ask],
  );
  const onHide = (nodeType: string) => {
    setHiddenTypes((before) => toggled(before, nodeType));
    ask(null);
  };
  return { forest, rows, places, isTidy: useMemo(() => isTidy(rows, places), [rows, places]), hiddenTypes, onHide, onFold, onTidy: () => ask(null), asked };
}

/** New places only where a reader asked; else those that were, and some for what is new. */
function usePlaces(rows: Row[], times: number): Places {
  const kept = useRef<{ times: number; places: Places } | null>(null);
  return useMemo(() => {
    const before = kept.current;
    const places = before === null || before.times !== times ? tidyPlaces(rows) : grownPlaces(rows, before.places);
    kept.current = { times, places };
    return places;
  }, [rows, times]);
}

function toggled(set: ReadonlySet<string>, one: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
}

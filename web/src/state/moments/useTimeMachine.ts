import { useNavigate } from "@tanstack/react-router";
import { createContext, useContext, useEffect, useMemo, useRef } from "react";
import { useStore } from "zustand";

import type { ProjectionState } from "../../api/generated/projection";
import { ADDRESS_PAUSE_MS } from "../../api/limits";
import type { Shown } from "../thread-follower";
import { isSequence } from "./fact-log";
import { useFacts, useNewFacts, type Facts } from "./logs";
import { stepAfter, type Pace } from "./playing";
import type { FactRow } from "./rows";
import { OwnAddresses, Travel } from "./travel";

/** What panels need to show a moment and to move to another one. */
export interface TimeMachine {
  threadId: string;
  /** The state of the moment, or of now; null while the first is on its way. */
  state: ProjectionState | null;
  live: boolean;
  busy: boolean;
  error: string | null;
  facts: Facts;
  /** The place of the moment among the facts; null where it is live or not known yet. */
  index: number | null;
  /** What the Edge is asked with for this moment. */
  at: string | null;
  playing: Pace | null;
  goTo(index: number): void;
  goLive(): void;
  play(pace: Pace): void;
  pause(): void;
  /** Ask once more for what could not be had. */
  again(): void;
}

/** The machine of the thread that is on screen, for its panels. */
export const TimeMachineContext = createContext<TimeMachine | null>(null);

export function useMachine(): TimeMachine {
  const machine = useContext(TimeMachineContext);
  if (machine === null) throw new Error("useMachine needs a thread around it");
  return machine;
}

/** One for each thread on screen; `at` is what the address says. */
export function useTimeMachine(threadId: string, at: string | undefined, stream: Shown): TimeMachine {
  const travel = useMemo(() => new Travel(threadId), [threadId]);
  const { moment, busy, error, aim, playing, leaving } = useStore(travel.store);
  const live = aim === null && (at === undefined || leaving);
  const facts = useFacts(threadId, !live);
  useNewFacts(threadId, stream.cursor);
  useEffect(() => () => travel.close(), [travel]);
  useNeighbours(travel, facts, playing);
  const wanted = live ? null : (aim?.cursor ?? wantedBy(at, facts));
  useEffect(() => travel.loader.want(wanted), [travel, wanted]);
  const index = live ? null : placeOf(aim, at, facts, moment?.state);
  const goLive = useAddress(travel, at, aim, facts);
  usePlaying(travel, facts, index, playing, busy);
  const missing = aim === null && !live && isMissing(at, facts);
  // A drag begins in a panel that must not go away: until the first moment has come it keeps what it has.
  const state = live || (moment === null && aim !== null) ? stream.state : (moment?.state ?? null);
  const goTo = (to: number) => moveTo(travel, facts, to, goLive);
  return {
    threadId,
    state,
    live,
    busy: busy || (!live && moment === null),
    error: missing ? `This thread has no fact ${at}.` : (error ?? (live ? null : facts.error)),
    facts,
    index,
    at: live ? null : (moment?.at ?? null),
    playing,
    goTo,
    goLive,
    play: (pace) => begin(travel, facts, index, pace),
    pause: () => travel.pause(),
    again: () => {
      void facts.log.readOn();
      travel.loader.want(wanted);
    },
  };
}

/** A number is looked up among the facts; whatever else names a moment is the Edge's to understand. */
function wantedBy(at: string | undefined, facts: Facts): string | null {
  if (at === undefined || !isSequence(at)) return at ?? null;
  return facts.rows[facts.log.indexOf(at) ?? -1]?.cursor ?? null;
}

function isMissing(at: string | undefined, facts: Facts): boolean {
  return at !== undefined && isSequence(at) && facts.complete && facts.log.indexOf(at) === undefined;
}

function placeOf(aim: FactRow | null, at: string | undefined, facts: Facts, state: ProjectionState | undefined): number | null {
  if (aim !== null) return aim.index;
  const named = at === undefined ? undefined : facts.log.indexOf(at);
  return named ?? facts.log.indexOf(state?.runtime.latestEventId ?? "") ?? null;
}

function moveTo(travel: Travel, facts: Facts, index: number, goLive: () => void): void {
  const row = facts.rows[Math.max(index, 0)];
  if (row === undefined) goLive();
  else travel.goTo(row);
}

function begin(travel: Travel, { rows }: Facts, index: number | null, pace: Pace): void {
  const from = index === null || index >= rows.length - 1 ? 0 : index;
  const row = rows[from];
  if (row !== undefined) travel.goTo(row, pace);
}

function useNeighbours(travel: Travel, { rows, log }: Facts, playing: Pace | null): void {
  useEffect(() => {
    travel.neighbours = (at) => {
      const index = log.indexOf(at);
      if (index === undefined) return [];
      const places = playing === null ? [index + 1, index - 1] : [stepAfter(rows, index, playing)?.index ?? -1];
      return places.flatMap((place) => rows[place]?.cursor ?? []);
    };
  }, [travel, rows, log, playing]);
}

/** Let the address follow; answers with the way back to now. */
function useAddress(travel: Travel, at: string | undefined, aim: FactRow | null, facts: Facts): () => void {
  const navigate = useNavigate({ from: "/threads/$threadId" });
  const own = useRef(new OwnAddresses(at));
  const name = aim === null ? undefined : facts.log.nameOf(aim);
  useEffect(() => {
    if (name === undefined) return;
    if (name === at) return travel.rest();
    const timer = setTimeout(() => {
      own.current.write(name);
      void navigate({ search: (before) => ({ ...before, at: name }), replace: at !== undefined });
    }, ADDRESS_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [name, at, navigate, travel]);
  useEffect(() => {
    // Somebody followed a link or went back: that counts more than where they were going before.
    if (!own.current.arrive(at)) travel.halt();
  }, [at, travel]);
  return () => {
    travel.leave();
    void navigate({ search: ({ at: _, ...rest }) => rest });
  };
}

function usePlaying(travel: Travel, facts: Facts, index: number | null, playing: Pace | null, busy: boolean): void {
  // Facts that come meanwhile must not begin a pause anew.
  const rows = useRef(facts.rows);
  rows.current = facts.rows;
  useEffect(() => {
    if (playing === null || busy || index === null) return;
    const step = stepAfter(rows.current, index, playing);
    const row = step === null ? undefined : rows.current[step.index];
    if (step === null || row === undefined) return travel.pause();
    const timer = setTimeout(() => travel.goTo(row, playing), step.wait);
    return () => clearTimeout(timer);
  }, [travel, playing, index, busy]);
}

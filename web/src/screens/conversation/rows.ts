/**
 * The rows of a conversation, in the order of their facts: what was said, what was done in between,
 * plans, requests and boundaries. It chooses and groups what the state holds, and adds nothing.
 */

import type {
  Action,
  ArtifactCardPart,
  Compaction,
  DiagnosticRefPart,
  EvidenceCitationPart,
  Message,
  Part,
  Plan,
  ProjectionState,
  ReasoningPart,
  TextPart,
  TimelineEntry,
  ToolPreviewPart,
} from "../../api/generated/projection";

export type ProcessPart = ToolPreviewPart | ReasoningPart;
export type CardPart = ArtifactCardPart | EvidenceCitationPart | DiagnosticRefPart;

export type Row =
  | { kind: "user"; key: string; message: Message; steered: boolean }
  | { kind: "text"; key: string; part: TextPart }
  | { kind: "process"; key: string; parts: ProcessPart[]; turnId: string | null }
  | { kind: "card"; key: string; part: CardPart }
  | { kind: "plan"; key: string; plan: Plan }
  | { kind: "action"; key: string; action: Action }
  | { kind: "boundary"; key: string; compaction: Compaction }
  | { kind: "outcome"; key: string; turnId: string; status: string };

/** What stands between messages, or before a call within one, by the sequence of its first fact. */
interface Aside {
  sequence: number;
  row: Row;
}

type Asides = ReadonlyMap<string, Aside[]>;

/** Ends of a turn that a reader should not have to guess; one that completed needs no word. */
const TOLD_OUTCOMES = new Set(["failed", "cancelled", "canceled", "interrupted", "timed_out", "lost"]);

/** The rows of the conversation, or of the transcript of one teammate. */
export function rowsOf(state: ProjectionState, teammate: string | null = null): Row[] {
  const messages = state.messages.filter((message) => (message.subagentId ?? null) === teammate && message.status !== "retracted");
  const asides = teammate === null ? asidesOf(state, messages) : asidesOfTeammate(state, messages, teammate);
  const { between, within } = placed(asides, messages, state.timeline);
  const rows = new RowList(state, within);
  let next = 0;
  for (const message of messages) {
    for (; next < between.length && precedes(between[next], message); next += 1) rows.push((between[next] as Aside).row);
    rows.message(message);
  }
  for (const aside of between.slice(next)) rows.push(aside.row);
  return rows.finished();
}

class RowList {
  #state: ProjectionState;
  #rows: Row[] = [];
  #within: Asides;
  #turnId: string | null = null;

  constructor(state: ProjectionState, within: Asides) {
    this.#state = state;
    this.#within = within;
  }

  push(row: Row): void {
    this.#rows.push(row);
  }

  message(message: Message): void {
    const turnId = message.turnId ?? null;
    const sameTurn = turnId !== null && turnId === this.#turnId;
    if (!sameTurn) this.#endTurn();
    this.#turnId = turnId;
    if (message.role === "user") this.push({ kind: "user", key: message.messageId, message, steered: sameTurn });
    else for (const part of message.parts) this.#part(part, turnId);
  }

  finished(): Row[] {
    this.#endTurn();
    return this.#rows;
  }

  #part(part: Part, turnId: string | null): void {
    for (const aside of this.#within.get(part.partId) ?? []) this.push(aside.row);
    if (part.type === "text") {
      if (part.text !== "") this.push({ kind: "text", key: part.partId, part });
    } else if (part.type === "tool-preview" || part.type === "reasoning") this.#process(part, turnId);
    else this.push({ kind: "card", key: part.partId, part });
  }

  /** Steps that follow each other are one process, across messages of a turn. */
  #process(part: ProcessPart, turnId: string | null): void {
    const last = this.#rows.at(-1);
    if (last?.kind === "process" && last.turnId === turnId) last.parts.push(part);
    else this.push({ kind: "process", key: `process:${part.partId}`, parts: [part], turnId });
  }

  #endTurn(): void {
    if (this.#turnId === null) return;
    const status = this.#state.graph.nodes[`turn:${this.#turnId}`]?.status;
    if (status === undefined || !TOLD_OUTCOMES.has(status)) return;
    this.push({ kind: "outcome", key: `outcome:${this.#turnId}`, turnId: this.#turnId, status });
  }
}

function asidesOf(state: ProjectionState, messages: Message[]): Aside[] {
  return [...plansOf(state), ...actionsOf(state, messages), ...boundariesOf(state)].sort((a, b) => a.sequence - b.sequence);
}

function asidesOfTeammate(state: ProjectionState, messages: Message[], teammate: string): Aside[] {
  const actions = actionsOf(state, messages).filter(({ row }) => row.kind === "action" && row.action.subagentId === teammate);
  return [...plansOf(state, teammate), ...actions].sort((a, b) => a.sequence - b.sequence);
}

function precedes(aside: Aside | undefined, message: Message): boolean {
  return aside !== undefined && message.sequence !== null && aside.sequence < message.sequence;
}

/** A message tells only where it begins; the timeline tells which of its calls came after an aside. */
function placed(asides: Aside[], messages: Message[], timeline: TimelineEntry[]): { between: Aside[]; within: Asides } {
  const between: Aside[] = [];
  const within = new Map<string, Aside[]>();
  if (asides.length === 0) return { between, within };
  const calls = new Set(messages.flatMap((message) => message.parts.flatMap((part) => (part.type === "tool-preview" ? part.partId : []))));
  for (const aside of asides) {
    const end = messages.find((message) => precedes(aside, message))?.sequence ?? Infinity;
    const call = callBehind(timeline, aside.sequence, end, calls);
    if (call === null) between.push(aside);
    else within.set(call, [...(within.get(call) ?? []), aside]);
  }
  return { between, within };
}

function callBehind(timeline: TimelineEntry[], sequence: number, end: number, calls: ReadonlySet<string>): string | null {
  for (let at = firstAfter(timeline, sequence); at < timeline.length; at += 1) {
    const entry = timeline[at];
    if (entry === undefined || (entry.sequence ?? Infinity) >= end) return null;
    if (calls.has(entry.entryId)) return entry.entryId;
  }
  return null;
}

/** The timeline is in order, so halving finds the place. */
function firstAfter(timeline: TimelineEntry[], sequence: number): number {
  let from = 0;
  let to = timeline.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((timeline[middle]?.sequence ?? 0) <= sequence) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** A plan stands where the timeline has it; one that it has no more stands at the end. */
function plansOf(state: ProjectionState, teammate: string | null = null): Aside[] {
  const plans = Object.values(state.plans).filter((plan) => (plan.subagentId ?? null) === teammate);
  if (plans.length === 0) return [];
  const places = new Map<string, number>();
  for (const entry of state.timeline) {
    if (entry.eventClass.startsWith("plan.") && entry.turnId != null && entry.sequence !== null) {
      if (!places.has(entry.turnId)) places.set(entry.turnId, entry.sequence);
    }
  }
  return plans.map((plan) => ({
    sequence: places.get(plan.turnId ?? "") ?? Infinity,
    row: { kind: "plan", key: `plan:${plan.planId}`, plan },
  }));
}

/** Requests of calls that are on screen stand with the call; the others stand on their own. */
function actionsOf(state: ProjectionState, messages: Message[]): Aside[] {
  const actions = Object.values(state.actions);
  if (actions.length === 0) return [];
  const calls = new Set<string>();
  for (const message of messages) {
    for (const part of message.parts) if (part.type === "tool-preview") calls.add(part.toolCallId);
  }
  return actions
    .filter((action) => !calls.has(action.toolCallId ?? ""))
    .map((action) => ({ sequence: action.sequence ?? Infinity, row: { kind: "action", key: `action:${action.actionId}`, action } }));
}

function boundariesOf(state: ProjectionState): Aside[] {
  return state.context.compactions.map((compaction) => ({
    sequence: compaction.sequence ?? Infinity,
    row: { kind: "boundary", key: `boundary:${compaction.eventId}`, compaction },
  }));
}

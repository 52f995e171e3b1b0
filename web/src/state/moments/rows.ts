/** A fact as a list and a strip need it: where it stands, what it is called, and no payload. */

import type { FactFrame } from "../../api/generated/edge";

/** What a fact is marked as. The words are those of its class and status; its text is never read. */
export type Mark = "turn" | "tool" | "approval" | "failure";

export interface FactRow {
  index: number;
  cursor: string;
  id: string;
  sequence: number;
  eventClass: string;
  kind: string;
  status: string;
  title: string;
  createdAt: string;
  /** Its own time in milliseconds; not a number where it has none that can be read. */
  time: number;
  turnId: string | null;
  toolCallId: string | null;
  marks: readonly Mark[];
}

const FAMILIES: Record<string, Mark> = { turn: "turn", tool: "tool", action: "approval", permission: "approval" };
const FAILED_CLASSES = /\.(?:failed|error|denied)$/;
/** Most facts have the same few sets of marks, so these are shared. */
const SETS = new Map<string, readonly Mark[]>();

export function rowOf({ cursor, fact }: FactFrame, index: number): FactRow {
  const eventClass = fact.eventClass ?? "unknown";
  return {
    index,
    cursor,
    id: fact.id,
    sequence: fact.sequence,
    eventClass,
    kind: fact.kind,
    status: fact.status,
    title: fact.title,
    createdAt: fact.createdAt,
    time: Date.parse(fact.createdAt),
    turnId: fact.turnId ?? null,
    toolCallId: fact.toolCallId ?? null,
    marks: marksOf(eventClass, fact.status),
  };
}

function marksOf(eventClass: string, status: string): readonly Mark[] {
  const failed = status === "failed" || FAILED_CLASSES.test(eventClass);
  const key = `${eventClass}|${failed}`;
  let marks = SETS.get(key);
  if (marks === undefined) {
    const family = eventClass.split(".", 1)[0] ?? "";
    const own = Object.hasOwn(FAMILIES, family) ? FAMILIES[family] : undefined;
    marks = [...(own === undefined ? [] : [own]), ...(failed ? (["failure"] as const) : [])];
    SETS.set(key, marks);
  }
  return marks;
}

/** How each type of node and each kind of edge looks, and the words for it. */

import { lookOf, type IconName } from "../../ui";
import { statusesOf, type Forest, type Item } from "./forest";

export interface Kind {
  icon: IconName;
  words: string;
  many: string;
}

const KINDS: Record<string, Kind> = {
  turn: { icon: "message", words: "Turn", many: "Turns" },
  run: { icon: "play", words: "Run", many: "Runs" },
  step: { icon: "chevron", words: "Step", many: "Steps" },
  task: { icon: "plan", words: "Task", many: "Tasks" },
  attempt: { icon: "retry", words: "Attempt", many: "Attempts" },
  job: { icon: "queue", words: "Job", many: "Jobs" },
  subagent: { icon: "team", words: "Teammate", many: "Teammates" },
  tool: { icon: "tool", words: "Tool call", many: "Tool calls" },
  action: { icon: "pause", words: "Request", many: "Requests" },
};

/** A type that nobody knows is shown under its own name. */
export function kindOf(nodeType: string): Kind {
  return (Object.hasOwn(KINDS, nodeType) ? KINDS[nodeType] : undefined) ?? { icon: "unknown", words: nodeType, many: nodeType };
}

/** Edges beside those of descent; the others need no word. */
export const LINKS: Record<string, { words: string; colour: string }> = {
  delegated: { words: "delegated to", colour: "var(--accent)" },
  depends_on: { words: "depends on", colour: "var(--warn)" },
  handed_off: { words: "handed off to", colour: "var(--good)" },
};

/** An item in words, for those who do not see it. */
export function wordsOf(item: Item, { items }: Forest): string {
  if (item.node === null) return `${item.childIds.length} tool calls, ${countWords(item, items)}`;
  const { nodeType, title, status } = item.node;
  return `${kindOf(nodeType).words} ${title}, ${lookOf(status).words}`;
}

/** How many calls of a group are how. */
export function countWords(group: Item, items: Forest["items"]): string {
  const counts = [...statusesOf(group, items)];
  return counts.map(([status, count]) => `${count} ${lookOf(status).words.toLowerCase()}`).join(", ");
}

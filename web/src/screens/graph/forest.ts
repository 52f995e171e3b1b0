/**
 * The graph as a forest: every node under the nearest of its ancestors that is shown. It groups and
 * leaves out what a reader asked it to; what hangs on what is said by `parentId` alone.
 */

import type { Graph, GraphNode } from "../../api/generated/projection";

/** Calls of one parent that stand on their own; more of them are one group. */
export const LOOSE_CALLS = 5;

export interface Item {
  id: string;
  parentId: string | null;
  childIds: string[];
  /** What it is of; null for a group of calls. */
  node: GraphNode | null;
  /** How many nodes are below it, all the way down. */
  inside: number;
  /** Whether nodes between it and its parent were left out. */
  lifted: boolean;
}

export interface Forest {
  items: ReadonlyMap<string, Item>;
  rootIds: readonly string[];
}

export function forestOf(graph: Graph, hiddenTypes: ReadonlySet<string>): Forest {
  const items = new Map<string, Item>();
  const rootIds: string[] = [];
  for (const node of Object.values(graph.nodes)) {
    if (!hiddenTypes.has(node.nodeType)) items.set(node.nodeId, { id: node.nodeId, parentId: null, childIds: [], node, inside: 0, lifted: false });
  }
  for (const item of [...items.values()]) {
    item.parentId = shownAncestor(graph, item, items);
    item.lifted = item.parentId !== (item.node?.parentId ?? null);
    (items.get(item.parentId ?? "")?.childIds ?? rootIds).push(item.id);
  }
  freeLoops(items, rootIds);
  for (const item of [...items.values()]) groupCalls(item, items);
  countInside(items, rootIds);
  return { items, rootIds };
}

/** The items below these, and these: parents before children. */
function below(ids: readonly string[], items: ReadonlyMap<string, Item>): Item[] {
  const order = ids.flatMap((id) => items.get(id) ?? []);
  for (const item of order) for (const id of item.childIds) order.push(items.get(id) as Item);
  return order;
}

/** Of nodes that are each other's ancestors, the first becomes a root, so that none is missing. */
function freeLoops(items: ReadonlyMap<string, Item>, rootIds: string[]): void {
  const reached = new Set(below(rootIds, items));
  for (const item of items.values()) {
    if (reached.has(item)) continue;
    const parent = items.get(item.parentId ?? "");
    if (parent !== undefined) parent.childIds = parent.childIds.filter((id) => id !== item.id);
    item.parentId = null;
    rootIds.push(item.id);
    for (const found of below([item.id], items)) reached.add(found);
  }
}

function countInside(items: ReadonlyMap<string, Item>, rootIds: readonly string[]): void {
  for (const item of below(rootIds, items).reverse()) {
    const parent = items.get(item.parentId ?? "");
    if (parent !== undefined) parent.inside += item.inside + (item.node === null ? 0 : 1);
  }
}

/** Ids come from agents: a line of descent that leads back to its beginning ends there. */
function shownAncestor(graph: Graph, { id, node }: Item, items: ReadonlyMap<string, Item>): string | null {
  const seen = new Set([id]);
  let above = node?.parentId ?? null;
  while (above !== null && !seen.has(above)) {
    if (items.has(above)) return above;
    seen.add(above);
    above = graph.nodes[above]?.parentId ?? null;
  }
  return null;
}

function groupCalls(item: Item, items: Map<string, Item>): void {
  const quiet = new Set(item.childIds.filter((id) => isQuiet(items.get(id), items)));
  if (quiet.size <= LOOSE_CALLS) return;
  const group: Item = { id: `group:${item.id}`, parentId: item.id, childIds: [...quiet], node: null, inside: 0, lifted: false };
  const first = item.childIds.findIndex((id) => quiet.has(id));
  item.childIds = [...item.childIds.slice(0, first), group.id, ...item.childIds.slice(first).filter((id) => !quiet.has(id))];
  for (const id of quiet) (items.get(id) as Item).parentId = group.id;
  items.set(group.id, group);
}

/** A call can go into a group unless something hangs on it that a reader must not miss. */
function isQuiet(item: Item | undefined, items: ReadonlyMap<string, Item>): boolean {
  if (item?.node?.nodeType !== "tool") return false;
  return item.childIds.every((id) => {
    const child = items.get(id)?.node;
    return child?.nodeType === "action" && child.status !== "pending";
  });
}

/** Statuses of the calls of a group, each with how often it occurs. */
export function statusesOf(group: Item, items: ReadonlyMap<string, Item>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of group.childIds) {
    const status = items.get(id)?.node?.status ?? "unknown";
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
}

/** What of a forest is on screen, parents before children, given what is folded. */

import type { Forest, Item } from "./forest";

/** Items above which turns that have ended begin folded, so that thousands of nodes stay readable. */
export const MANY_ITEMS = 300;
/** Turns at the end that stay open however many there are. */
const OPEN_TURNS = 5;

const ENDED = new Set(["completed", "failed", "canceled", "cancelled", "interrupted", "timed_out"]);

/** What a reader folded or unfolded by hand, by the id of the item. */
export type Folds = Readonly<Record<string, boolean>>;

export interface Row {
  item: Item;
  depth: number;
  /** Null where nothing hangs on it. */
  open: boolean | null;
  /** Its place among its siblings, from 1, and how many those are. */
  place: number;
  siblings: number;
}

export function rowsOf(forest: Forest, folds: Folds): Row[] {
  const preset = presetOf(forest);
  const rows: Row[] = [];
  const waiting = rowsUnder(forest.rootIds, 0, forest).reverse();
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    const { item, depth } = row;
    if (item.childIds.length > 0) row.open = (Object.hasOwn(folds, item.id) ? folds[item.id] : undefined) ?? preset(item);
    rows.push(row);
    if (row.open === true) waiting.push(...rowsUnder(item.childIds, depth + 1, forest).reverse());
  }
  return rows;
}

function rowsUnder(ids: readonly string[], depth: number, { items }: Forest): Row[] {
  const found = ids.flatMap((id) => items.get(id) ?? []);
  return found.map((item, at) => ({ item, depth, open: null, place: at + 1, siblings: found.length }));
}

function presetOf({ items, rootIds }: Forest): (item: Item) => boolean {
  if (items.size <= MANY_ITEMS) return ({ node }) => node !== null;
  const latest = new Set(rootIds.slice(-OPEN_TURNS));
  return ({ id, node }) => node !== null && !(node.nodeType === "turn" && ENDED.has(node.status) && !latest.has(id));
}

/** The row that stands for a node: its own, or that of the folded one it is inside of. */
export function standInFor(id: string, forest: Forest, shown: ReadonlySet<string>): string | null {
  const seen = new Set<string>();
  let at: string | null = id;
  while (at !== null && !shown.has(at) && !seen.has(at)) {
    seen.add(at);
    at = forest.items.get(at)?.parentId ?? null;
  }
  return at !== null && shown.has(at) ? at : null;
}

/** Rows and places as the nodes and edges that the canvas draws. */

import { MarkerType, Position, type Edge, type Node } from "@xyflow/react";

import type { Graph } from "../../api/generated/projection";
import type { Forest, Item } from "./forest";
import { countWords, LINKS, wordsOf } from "./kinds";
import type { Place, Places } from "./places";
import { standInFor, type Row } from "./rows";

export const WIDTH = 208;
export const HEIGHT = 46;
const COLUMN = WIDTH + 48;
const LINE = HEIGHT + 14;

export interface BoxData extends Record<string, unknown> {
  item: Item;
  open: boolean | null;
  /** Of a group: how many of its calls are how. */
  counts: string;
  active: boolean;
  chosen: boolean;
  onFold: (id: string) => void;
}

export type Box = Node<BoxData, "box">;

export interface Marks {
  activeId: string | null;
  chosenId: string | null;
  onFold: (id: string) => void;
}

/** Where lines begin and end; told beforehand, so that a box off screen need not be drawn for them. */
const HANDLES: NonNullable<Box["handles"]> = [
  { id: "in", type: "target", position: Position.Left, x: 0, y: HEIGHT / 2, width: 1, height: 1 },
  { id: "out", type: "source", position: Position.Right, x: WIDTH, y: HEIGHT / 2, width: 1, height: 1 },
  { id: "back", type: "target", position: Position.Right, x: WIDTH, y: HEIGHT / 2, width: 1, height: 1 },
];

export function pointOf({ column, line }: Place): { x: number; y: number } {
  return { x: column * COLUMN, y: line * LINE };
}

/** Boxes of which nothing changed stay the same objects, so that they are not drawn again. */
export class Boxes {
  #before = new Map<string, Box>();

  of(rows: Row[], places: Places, forest: Forest, marks: Marks): Box[] {
    const made = rows.map((row) => this.#box(row, places.get(row.item.id) ?? { column: row.depth, line: 0 }, forest, marks));
    this.#before = new Map(made.map((box) => [box.id, box]));
    return made;
  }

  #box({ item, open }: Row, place: Place, forest: Forest, { activeId, chosenId, onFold }: Marks): Box {
    const counts = item.node === null ? countWords(item, forest.items) : "";
    const data: BoxData = { item, open, counts, active: item.id === activeId, chosen: item.id === chosenId, onFold };
    const position = pointOf(place);
    const before = this.#before.get(item.id);
    if (before !== undefined && isSame(before, data, position)) return before;
    return {
      ...{ id: item.id, type: "box", position, data, width: WIDTH, height: HEIGHT, handles: HANDLES },
      ...{ ariaRole: "img", ariaLabel: wordsOf(item, forest), domAttributes: { "aria-roledescription": undefined } },
    };
  }
}

function isSame({ data: before, position }: Box, data: BoxData, point: { x: number; y: number }): boolean {
  if (position.x !== point.x || position.y !== point.y) return false;
  if (before.item.node !== data.item.node || before.item.childIds.length !== data.item.childIds.length) return false;
  return before.open === data.open && before.counts === data.counts && before.active === data.active && before.chosen === data.chosen && before.onFold === data.onFold;
}

/** Lines of descent between rows, then what else the graph states between them or what they hold. */
export function linesOf(graph: Graph, rows: Row[], forest: Forest, places: Places): Edge[] {
  const shown = new Set(rows.map(({ item }) => item.id));
  const edges = new Map<string, Edge>();
  for (const { item } of rows) {
    if (item.parentId !== null) edges.set(item.id, line(item.id, item.parentId, item.id, item.lifted ? "lifted" : "descent"));
  }
  for (const { edgeId, source, target, kind } of Object.values(graph.edges)) {
    if (!Object.hasOwn(LINKS, kind)) continue;
    const from = standInFor(source, forest, shown);
    const to = standInFor(target, forest, shown);
    if (from === null || to === null || from === to) continue;
    const markerEnd = { type: MarkerType.ArrowClosed, color: LINKS[kind]?.colour ?? "currentColor" };
    edges.set(`${from}>${to}:${kind}`, { ...line(edgeId, from, to, kind), type: "default", markerEnd, ...backwards(from, to, places) });
  }
  return [...edges.values()];
}

function line(id: string, source: string, target: string, className: string): Edge {
  const ends = { source, target, sourceHandle: "out", targetHandle: "in" };
  // Lines say what the outline says in words, so nobody is read thousands of them.
  return { id, ...ends, className, type: "smoothstep", focusable: false, selectable: false, domAttributes: { "aria-hidden": true } };
}

/** A line to a box that is not further right goes around, and not through what is between. */
function backwards(from: string, to: string, places: Places): Partial<Edge> {
  const forward = (places.get(to)?.column ?? 0) > (places.get(from)?.column ?? 0);
  return forward ? {} : { targetHandle: "back" };
}

import { describe, expect, it } from "vitest";

import type { Graph, GraphNode } from "../../api/generated/projection";
import { forestOf, LOOSE_CALLS } from "./forest";
import { viewOf, viewWith } from "./framing";
import { neighbourOf } from "./neighbours";
import { grownPlaces, isTidy, tidyPlaces } from "./places";
import { MANY_ITEMS, rowsOf, standInFor } from "./rows";

type Told = [id: string, parentId?: string | null, status?: string];

function graphOf(told: Told[]): Graph {
  const nodes = told.map(([nodeId, parentId = null, status = "completed"]): [string, GraphNode] => [
    nodeId,
    { nodeId, nodeType: nodeId.split(":")[0] ?? "", status, title: nodeId, sourceEventIds: [nodeId], parentId },
  ]);
  return { nodes: Object.fromEntries(nodes), edges: {} };
}

const calls = (parentId: string, count: number, from = 0): Told[] => Array.from({ length: count }, (_, at) => [`tool:${parentId}-${from + at}`, parentId]);
const shown = (told: Told[], hidden: string[] = [], folds = {}) => rowsOf(forestOf(graphOf(told), new Set(hidden)), folds);
const ids = (rows: { item: { id: string } }[]) => rows.map(({ item }) => item.id);

describe("a forest", () => {
  it("hangs what is left under the nearest ancestor that is shown", () => {
    const rows = shown([["turn:1"], ["run:1", "turn:1"], ["tool:1", "run:1"]], ["run"]);
    expect(rows.map(({ item, depth }) => [item.id, depth, item.lifted])).toEqual([
      ["turn:1", 0, false],
      ["tool:1", 1, true],
    ]);
  });

  it("groups many calls and leaves out of the group what somebody must see", () => {
    const waits: Told[] = [["tool:asks", "turn:1"], ["action:1", "tool:asks", "pending"]];
    const forest = forestOf(graphOf([["turn:1"], ...calls("turn:1", LOOSE_CALLS + 1), ...waits]), new Set());
    expect(ids(rowsOf(forest, {}))).toEqual(["turn:1", "group:turn:1", "tool:asks", "action:1"]);
    expect(forest.items.get("turn:1")?.inside).toBe(LOOSE_CALLS + 3);
    expect(rowsOf(forest, { "group:turn:1": true })).toHaveLength(LOOSE_CALLS + 5);
  });

  it("shows nodes that are each other's parents once", () => {
    const rows = shown([["task:1", "task:2"], ["task:2", "task:1"], ["turn:1"]]);
    expect(ids(rows)).toEqual(["turn:1", "task:1", "task:2"]);
  });

  it("folds turns that have ended where there are very many nodes, and stands in for what they hold", () => {
    const turns = Array.from({ length: MANY_ITEMS }, (_, at): Told[] => [[`turn:${at}`], [`tool:${at}`, `turn:${at}`]]).flat();
    const forest = forestOf(graphOf(turns), new Set());
    const rows = rowsOf(forest, {});
    expect(rows.length).toBe(MANY_ITEMS + 5);
    expect(standInFor("tool:0", forest, new Set(ids(rows)))).toBe("turn:0");
  });
});

describe("places", () => {
  const before: Told[] = [["turn:1"], ["task:a", "turn:1"], ["subagent:a", "task:a"], ["task:b", "turn:1"], ["subagent:b", "task:b"]];

  it("never move while facts come", () => {
    const tidy = tidyPlaces(shown(before));
    const rows = shown([...before, ["tool:a1", "subagent:a"], ["tool:b1", "subagent:b"], ["tool:a2", "subagent:a"], ["turn:2"]]);
    const grown = grownPlaces(rows, tidy);
    for (const [id, place] of tidy) expect(grown.get(id)).toEqual(place);
    expect(grown.get("tool:a1")).toEqual({ column: 3, line: 0 });
    expect(isTidy(rows, grown)).toBe(false);
    expect(isTidy(rows, tidyPlaces(rows))).toBe(true);
  });

  it("give every row a cell of its own, and a line of others to nobody", () => {
    let places = tidyPlaces(shown(before));
    let told = before;
    for (const parent of ["subagent:a", "subagent:b", "task:a", "turn:1", "subagent:a"]) {
      told = [...told, ...calls(parent, 2, told.length)];
      places = grownPlaces(shown(told), places);
    }
    const cells = [...places.values()].map(({ column, line }) => `${column}.${line}`);
    expect(new Set(cells).size).toBe(cells.length);
  });

  it("lead to neighbours", () => {
    const rows = shown(before);
    const places = tidyPlaces(rows);
    expect(neighbourOf("task:a", "right", rows, places)).toBe("subagent:a");
    expect(neighbourOf("task:a", "left", rows, places)).toBe("turn:1");
    expect(neighbourOf("task:a", "down", rows, places)).toBe("task:b");
    expect(neighbourOf("turn:1", "up", rows, places)).toBeNull();
  });
});

describe("a view", () => {
  const column = (lines: number) => Array.from({ length: lines }, (_, line) => ({ column: 0, line }));

  it("has all of what fits, and the end of what does not", () => {
    expect(viewOf(column(3), { width: 800, height: 600 }, 0.75)).toEqual({ x: 24, y: 24, zoom: 1 });
    const { y, zoom } = viewOf(column(100), { width: 800, height: 600 }, 0.75);
    expect(zoom).toBe(0.75);
    expect(y).toBeLessThan(-3_000);
    expect(viewOf([], { width: 800, height: 600 }, 0.75).zoom).toBe(1);
  });

  it("moves only as far as it must to have a place on screen", () => {
    const frame = { width: 800, height: 600 };
    const view = { x: 24, y: 24, zoom: 1 };
    expect(viewWith({ column: 1, line: 3 }, view, frame)).toEqual(view);
    const { x, y } = viewWith({ column: 0, line: 40 }, view, frame);
    expect(x).toBe(24);
    expect(y).toBeLessThan(-1_500);
  });
});

/** The columns of the work board; the projection's own selector sorts tasks in the same way. */

import type { WorkItem } from "../../api/generated/projection";

export type Column = "todo" | "doing" | "waiting" | "failed" | "done";

export const COLUMNS: { id: Column; title: string }[] = [
  { id: "todo", title: "To do" },
  { id: "doing", title: "Doing" },
  { id: "waiting", title: "Waiting" },
  { id: "failed", title: "Failed" },
  { id: "done", title: "Done" },
];

const COLUMN_OF: Record<string, Column> = {
  draft: "todo",
  accepted: "todo",
  queued: "todo",
  unknown: "todo",
  preparing: "doing",
  running: "doing",
  retrying: "doing",
  waiting_input: "waiting",
  waiting_permission: "waiting",
  waiting_resource: "waiting",
  blocked: "waiting",
  paused: "waiting",
  cancelling: "waiting",
  stale: "waiting",
  failed: "failed",
  timed_out: "failed",
  lost: "failed",
  cancelled: "done",
  completed: "done",
  archived: "done",
};

export function boardOf(items: WorkItem[]): Record<Column, WorkItem[]> {
  const board: Record<Column, WorkItem[]> = { todo: [], doing: [], waiting: [], failed: [], done: [] };
  for (const item of items) board[columnOf(item.status)].push(item);
  return board;
}

/** A state that nobody knows is work that has not ended. */
function columnOf(status: string): Column {
  return (Object.hasOwn(COLUMN_OF, status) ? COLUMN_OF[status] : undefined) ?? "doing";
}

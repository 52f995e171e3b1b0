/** What people call things, where a fact says so; else the id. */

import type { ProjectionState } from "../api/generated/projection";

export function nameOf(teammate: string, { subagents }: ProjectionState): string {
  const thread = subagents.threads[teammate];
  return thread?.name ?? thread?.title ?? teammate;
}

export function taskName(taskId: string, { tasks }: ProjectionState): string {
  const task = tasks[taskId];
  return task?.title ?? task?.objective ?? taskId;
}

/** A word of the vocabulary as people write it. */
export function plainWords(word: string | null | undefined): string | null {
  return word?.replaceAll("_", " ") ?? null;
}

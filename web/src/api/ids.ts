/**
 * Ids of facts are unique within a thread only. The Edge lists the row of a second thread as
 * `THREAD~ID`, and finds the row of every thread by it.
 */

/** The id by which the Edge finds this thread's own row, whichever of the two its id is. */
export function ownId(threadId: string, id: string): string {
  return prefixOf(threadId) + bareId(threadId, id);
}

/** The id that facts have. */
export function bareId(threadId: string, id: string): string {
  const prefix = prefixOf(threadId);
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

function prefixOf(threadId: string): string {
  return `${threadId.replaceAll("%", "%25").replaceAll("~", "%7E")}~`;
}

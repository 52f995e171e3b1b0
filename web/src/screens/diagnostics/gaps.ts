import type { Gap } from "../../api/generated/projection";

/** Which facts are missing, both ends included. */
export function gapWords({ fromSequence, toSequence, threadId }: Gap): string {
  const facts = fromSequence === toSequence ? `fact ${fromSequence}` : `facts ${fromSequence} to ${toSequence}`;
  return threadId == null ? facts : `${facts} of ${threadId}`;
}

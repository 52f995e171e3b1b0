import type { ExportProgress } from "../../api/generated/rest";

export interface Share {
  facts: number;
  total: number;
  words: string;
}

/** How much of a pack is there, or null where the Edge does not say of how much. */
export function shareOf(progress: ExportProgress | undefined): Share | null {
  const { state, facts = 0, total } = progress ?? {};
  if (state !== "making" || total == null || total === 0) return null;
  return { facts, total, words: `${facts.toLocaleString()} of ${total.toLocaleString()} facts` };
}

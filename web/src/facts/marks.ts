import type { FactRow, Mark } from "../state/moments";
import type { IconName } from "../ui";

/** How each mark is drawn and called; colour is never all there is. */
export const MARKS: Record<Mark, { icon: IconName; words: string }> = {
  turn: { icon: "message", words: "Turns" },
  tool: { icon: "tool", words: "Tools" },
  approval: { icon: "key", words: "Approvals" },
  failure: { icon: "alert", words: "Failures" },
};

export const MARK_ORDER: Mark[] = ["turn", "tool", "approval", "failure"];

export function iconOf({ marks }: FactRow): IconName {
  const mark = marks.at(-1);
  return mark === undefined ? "circle" : MARKS[mark].icon;
}

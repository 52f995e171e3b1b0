import type { Hydration } from "../../api/generated/projection";
import { Icon } from "../../ui";
import styles from "./Thread.module.css";

const NOT_WHOLE: Partial<Record<Hydration["status"], string>> = {
  hydrating: "This state was restored; nothing has come since.",
  stale: "Facts of this thread are missing. What you see may be old.",
  repairing: "The source is mending its stream.",
  degraded: "Too much is missing to call any text final.",
};

/** Said wherever a state is not whole, by the state's own word. */
export function HydrationNotice({ hydration }: { hydration: Hydration }) {
  const words = NOT_WHOLE[hydration.status];
  if (words === undefined) return null;
  const gaps = hydration.gaps.map(({ fromSequence, toSequence }) => `${fromSequence}–${toSequence}`).join(", ");
  return (
    <div className={styles.notice} role="status">
      <Icon name="alert" />
      <span>
        {words}
        {gaps !== "" && ` Missing: ${gaps}.`}
      </span>
    </div>
  );
}

import type { Hydration } from "../../api/generated/projection";
import { useThread } from "../../state/queries";
import { Icon } from "../../ui";
import styles from "./Thread.module.css";

const NOT_WHOLE: Partial<Record<Hydration["status"], string>> = {
  hydrating: "This state was restored from a read model; no facts since.",
  stale: "Some facts of this thread are missing. What you see may be out of date.",
  repairing: "The source is repairing its stream.",
  degraded: "Too many facts are missing to mark any text as final.",
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

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Where the beginning of a thread was removed: when, by whom, and how much that was. */
export function RemovalNotice({ threadId }: { threadId: string }) {
  const removal = useThread(threadId).data?.historyRemoved;
  if (removal == null) return null;
  const runs = removal.runs === 1 ? "1 run" : `${removal.runs} runs`;
  return (
    <div className={styles.notice} role="status">
      <Icon name="info" />
      <span>
        {`Earlier history was removed on ${day.format(Date.parse(removal.at))} by retention (${removal.by.name}): `}
        {`${runs}, up to ${day.format(Date.parse(removal.before))}.`}
      </span>
    </div>
  );
}

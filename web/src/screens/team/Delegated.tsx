import { useRef } from "react";

import type { Action, ProjectionState } from "../../api/generated/projection";
import { ActionRow } from "../conversation/Placed";
import { Section, Several } from "./Section";
import styles from "./Team.module.css";

/** What teammates ask for, with the same card as everywhere; what waits comes first. */
export function Delegated({ state, live }: { state: ProjectionState; live: boolean }) {
  const all = Object.values(state.actions).filter(isDelegated);
  const waiting = useRef(new Set<string>());
  for (const { actionId, status } of all) if (status === "pending") waiting.current.add(actionId);
  // What waited when it came on screen stays in its place, so that nothing moves under a pointer.
  const first = all.filter(({ actionId }) => waiting.current.has(actionId));
  const decided = all.filter(({ actionId }) => !waiting.current.has(actionId)).reverse();
  return (
    <Section title="Teammate requests" count={all.length} empty="No requests. When a teammate needs permission, you can decide here.">
      <Several items={[...first, ...decided]} keyOf={({ actionId }) => actionId} className={styles.requests} render={(action) => <ActionRow action={action} state={state} live={live} />} />
    </Section>
  );
}

export function isDelegated({ subagentId, actionType }: Action): boolean {
  return subagentId != null || actionType === "delegated_permission";
}

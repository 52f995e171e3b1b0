import type { ProjectionState, RosterNode, SubagentThread } from "../../api/generated/projection";
import { nameOf, plainWords, taskName } from "../../details";
import { StatusBadge, Time } from "../../ui";
import { membersOf, type Member } from "./members";
import { Section } from "./Section";
import styles from "./Team.module.css";

export interface RosterProps {
  state: ProjectionState;
  onOpen: (nodeId: string) => void;
}

/** Deeper members are drawn no further in. */
const DEEPEST = 6;

/** Rows are stacked on a narrow page, where a browser would take them for no table but for the roles. */
export function Roster({ state, onOpen }: RosterProps) {
  const members = membersOf(Object.values(state.teamWorkbench.rosterNodes));
  return (
    <Section title="Roster" count={members.length} empty="No teammates yet. Teammates appear here when the agent starts them.">
      <div className={styles.scroll} tabIndex={0} role="region" aria-label="Members">
        <table className={styles.roster} role="table">
          <thead role="rowgroup">
            <tr role="row">
              <th scope="col" role="columnheader">Name</th>
              <th scope="col" role="columnheader">Status</th>
              <th scope="col" role="columnheader">Task</th>
              <th scope="col" role="columnheader">Reports to</th>
              <th scope="col" role="columnheader">Latest</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {members.map((member) => (
              <MemberRow key={member.node.memberId} member={member} state={state} onOpen={onOpen} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function MemberRow({ member: { node, depth }, state, onOpen }: { member: Member } & RosterProps) {
  const thread = state.subagents.threads[node.memberId];
  const isActive = state.teamWorkbench.activeAgent === node.memberId;
  return (
    <tr role="row">
      <th scope="row" role="rowheader" style={{ paddingInlineStart: 8 + Math.min(depth, DEEPEST) * 18 }}>
        <button type="button" className={styles.open} dir="auto" onClick={() => onOpen(`subagent:${node.memberId}`)}>
          {node.name ?? node.memberId}
        </button>
        <span className={styles.under}>
          {[node.role, plainWords(node.kind), isActive ? "active now" : null].filter((word) => word != null && word !== node.name).join(" · ")}
        </span>
      </th>
      <td role="cell" data-name="Status">
        <StatusBadge status={node.status} />
      </td>
      <td role="cell" data-name="Task" dir="auto">{node.taskId == null ? "unknown" : taskName(node.taskId, state)}</td>
      <td role="cell" data-name="Reports to" dir="auto">{lineageOf(node, thread, state)}</td>
      <td role="cell" data-name="Latest" dir="auto">
        {latestOf(thread)}
        <span className={styles.under}>
          <Time at={thread?.updatedAt} />
        </span>
      </td>
    </tr>
  );
}

/** Whose child it is, only where a fact says so. */
function lineageOf(node: RosterNode, thread: SubagentThread | undefined, state: ProjectionState): string {
  if (node.parentId != null) return nameOf(node.parentId, state);
  if (thread?.parentTaskId != null) return taskName(thread.parentTaskId, state);
  return thread?.lineage === "known" ? "the thread" : (thread?.lineage ?? "unknown");
}

function latestOf(thread: SubagentThread | undefined): string | null {
  return thread?.message ?? thread?.summary ?? plainWords(thread?.failureCategory);
}

import type { ProjectionState, WorkItem } from "../../api/generated/projection";
import { nameOf, plainWords, taskName } from "../../details";
import { Icon, StatusBadge } from "../../ui";
import { boardOf, COLUMNS } from "./columns";
import { Section, Several } from "./Section";
import styles from "./Team.module.css";

export interface BoardProps {
  state: ProjectionState;
  onOpen: (nodeId: string) => void;
}

export function Board({ state, onOpen }: BoardProps) {
  const items = Object.values(state.teamWorkbench.workItems);
  const board = boardOf(items);
  return (
    <Section title="Work" count={items.length} empty="No tasks yet. Tasks appear here in columns by status.">
      <div className={styles.board}>
        {COLUMNS.map(({ id, title }) => (
          <div key={id} className={styles.column} role="group" aria-label={title}>
            <h3 className={styles.columnhead}>
              {title}
              <span className={styles.count}>{board[id].length}</span>
            </h3>
            <Several items={board[id]} keyOf={({ taskId }) => taskId} className={styles.cards} render={(item) => <Work item={item} state={state} onOpen={onOpen} />} />
          </div>
        ))}
      </div>
    </Section>
  );
}

function Work({ item, state, onOpen }: { item: WorkItem } & BoardProps) {
  const task = state.tasks[item.taskId];
  const steps = task?.totalSteps == null ? null : `${task.completedSteps ?? 0} of ${task.totalSteps} steps`;
  return (
    <div className={styles.card}>
      <button type="button" className={styles.open} dir="auto" onClick={() => onOpen(`task:${item.taskId}`)}>
        {item.title ?? item.taskId}
      </button>
      <StatusBadge status={item.status} />
      {item.parentTaskId != null && <p className={styles.under} dir="auto">Part of {taskName(item.parentTaskId, state)}</p>}
      <p className={styles.under} dir="auto">
        <Icon name="team" size={12} /> {workers(item, state)}
      </p>
      {steps !== null && <p className={styles.under}>{steps}</p>}
      {task?.failureCategory != null && <p className={styles.bad}>{plainWords(task.failureCategory)}</p>}
      {item.blockedBy != null && <p className={styles.under} dir="auto">Waiting for {item.blockedBy.map((id) => taskName(id, state)).join(", ")}</p>}
    </div>
  );
}

function workers(item: WorkItem, state: ProjectionState): string {
  const told = state.tasks[item.taskId]?.subagentIds?.map((id) => nameOf(id, state)) ?? [];
  const all = new Set([...(item.assignee == null ? [] : [nameOf(item.assignee, state)]), ...told]);
  return all.size === 0 ? "assignee unknown" : [...all].join(", ");
}

/** What goes between members, newest first: work that is handed on, reviews, and what workers report. */

import type { HandoffEvent, LaneEvent, Notification, ProjectionState } from "../../api/generated/projection";
import { nameOf, Refs, taskName } from "../../details";
import { Icon, StatusBadge, Time } from "../../ui";
import { Section, Several } from "./Section";
import styles from "./Team.module.css";

export interface LanesProps {
  state: ProjectionState;
  onOpen: (nodeId: string) => void;
}

export function Lanes(props: LanesProps) {
  return (
    <div className={styles.lanes}>
      <Handoffs {...props} />
      <Reviews {...props} />
      <Notifications {...props} />
    </div>
  );
}

function Handoffs({ state, onOpen }: LanesProps) {
  const handoffs = Object.values(state.teamWorkbench.handoffEvents).reverse();
  return (
    <Section title="Handoffs" count={handoffs.length} empty="No handoffs between agents.">
      <Several items={handoffs} keyOf={({ handoffId }) => handoffId} className={styles.cards} render={(handoff) => <Handoff handoff={handoff} state={state} onOpen={onOpen} />} />
    </Section>
  );
}

function Handoff({ handoff, state, onOpen }: { handoff: HandoffEvent } & LanesProps) {
  return (
    <div className={styles.card}>
      <p className={styles.line}>
        <Who id={handoff.fromAgent} state={state} onOpen={onOpen} />
        <Icon name="chevron" size={14} label="to" />
        <Who id={handoff.toAgent} state={state} onOpen={onOpen} />
      </p>
      <StatusBadge status={handoff.status} />
      {handoff.reason != null && <p dir="auto">{handoff.reason}</p>}
      <About taskId={handoff.taskId} at={handoff.completedAt ?? handoff.requestedAt} state={state} />
    </div>
  );
}

function Reviews({ state, onOpen }: LanesProps) {
  const events = state.teamWorkbench.reviewEvents.toReversed();
  return (
    <Section title="Reviews" count={events.length} empty="No reviews.">
      <Several items={events} keyOf={({ eventId }) => eventId} className={styles.cards} render={(event) => <Review event={event} state={state} onOpen={onOpen} />} />
    </Section>
  );
}

function Review({ event, state, onOpen }: { event: LaneEvent } & LanesProps) {
  const review = event.subjectId == null ? undefined : state.evidence.reviews[event.subjectId];
  return (
    <div className={styles.card}>
      <p dir="auto">{event.title}</p>
      <StatusBadge status={event.verdict ?? (event.status === "completed" ? "unknown" : event.status)} />
      {event.status === "completed" && review?.summary != null && <p dir="auto">{review.summary}</p>}
      {review?.reviewer != null && (
        <p className={styles.under}>
          By <Who id={review.reviewer} state={state} onOpen={onOpen} />
        </p>
      )}
      <About taskId={event.taskId} at={event.createdAt} state={state} />
      <Refs refs={event.refs ?? []} />
    </div>
  );
}

function Notifications({ state, onOpen }: LanesProps) {
  const reports = state.teamWorkbench.notifications.toReversed();
  return (
    <Section title="Worker reports" count={reports.length} empty="No reports. Worker reports appear here, not in the conversation.">
      <Several items={reports} keyOf={({ eventId }) => eventId} className={styles.cards} render={(report) => <Report report={report} state={state} onOpen={onOpen} />} />
    </Section>
  );
}

function Report({ report, state, onOpen }: { report: Notification } & LanesProps) {
  return (
    <div className={styles.card}>
      <p className={styles.line}>
        <Who id={report.workerId} state={state} onOpen={onOpen} />
        <StatusBadge status={report.status} />
      </p>
      <p dir="auto">{report.message ?? report.title}</p>
      <About taskId={report.taskId} at={report.createdAt} state={state} />
      <Refs refs={[...new Set([report.resultRef, report.transcriptRef, ...(report.refs ?? [])])]} />
    </div>
  );
}

function About({ taskId, at, state }: { taskId: string | null | undefined; at: string | null | undefined; state: ProjectionState }) {
  return (
    <p className={styles.under} dir="auto">
      {taskId != null && `${taskName(taskId, state)} · `}
      <Time at={at} />
    </p>
  );
}

/** A member can be opened; a name that belongs to none is a name alone. */
function Who({ id, state, onOpen }: { id: string | null | undefined } & LanesProps) {
  if (id == null) return <span>unknown</span>;
  if (!Object.hasOwn(state.teamWorkbench.rosterNodes, id)) return <span dir="auto">{id}</span>;
  return (
    <button type="button" className={styles.open} dir="auto" onClick={() => onOpen(`subagent:${id}`)}>
      {nameOf(id, state)}
    </button>
  );
}

import { memo, useMemo } from "react";

import type { Message, ProjectionState, TextPart } from "../../api/generated/projection";
import type { ScreenProps } from "../../app/screens";
import { personText } from "../../approval/request";
import { NamedRefs } from "../../attachments";
import { useUnconfirmed, type Sent } from "../../state/outbox";
import { EmptyState, Icon, Markdown, StatusBadge, VirtualList } from "../../ui";
import { Composer } from "./Composer";
import styles from "./Conversation.module.css";
import { ActionRow, BoundaryRow, CardRow, OutcomeRow, PlanCard } from "./Placed";
import { ProcessRow } from "./ProcessRow";
import { rowsOf, type Row } from "./rows";
import { RuntimeStrip } from "./RuntimeStrip";

type Shown = Row | { kind: "sent"; key: string; sent: Sent };

/** What was said and done, in order, with the place to say more. */
export default function Conversation({ threadId, state, live }: ScreenProps) {
  const rows = useMemo(() => rowsOf(state), [state]);
  const unconfirmed = useUnconfirmed(threadId, state);
  const shown: Shown[] = [...rows, ...unconfirmed.map((sent) => ({ kind: "sent" as const, key: `sent:${sent.steerId ?? sent.turnId}`, sent }))];
  return (
    <div className={styles.screen}>
      {shown.length === 0 ? (
        <Nothing />
      ) : (
        <VirtualList
          items={shown}
          keyOf={(row) => row.key}
          estimate={estimate}
          label="Conversation"
          followEnd
          render={(row, at) => (
            <div className={`${styles.column} ${at === 0 ? styles.first : ""}`}>
              <RowView row={row} state={state} live={live} />
            </div>
          )}
        />
      )}
      <RuntimeStrip runtime={state.runtime} />
      {live && <Composer threadId={threadId} state={state} />}
    </div>
  );
}

function Nothing() {
  return (
    <div className={styles.screen}>
      <EmptyState icon="message" title="No messages yet" />
    </div>
  );
}

export function RowView({ row, state, live }: { row: Shown; state: ProjectionState; live: boolean }) {
  switch (row.kind) {
    case "user":
      return <UserMessage message={row.message} steered={row.steered} />;
    case "text":
      return <AgentText part={row.part} />;
    case "process":
      return <ProcessRow id={row.key} parts={row.parts} state={state} live={live} />;
    case "card":
      return <CardRow part={row.part} state={state} />;
    case "plan":
      return <PlanCard plan={row.plan} />;
    case "action":
      return <ActionRow action={row.action} state={state} live={live} />;
    case "boundary":
      return <BoundaryRow compaction={row.compaction} />;
    case "outcome":
      return <OutcomeRow status={row.status} turn={state.turns[row.turnId]} />;
    case "sent":
      return <Unconfirmed sent={row.sent} />;
  }
}

const UserMessage = memo(function UserMessage({ message, steered }: { message: Message; steered: boolean }) {
  const text = message.parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
  const refs = message.inputRefs ?? [];
  return (
    <>
      <div className={styles.user} dir="auto">
        {steered && (
          <span className={styles.steered}>
            <Icon name="steer" size={12} /> sent during the run
          </span>
        )}
        {text}
        {refs.length > 0 && <NamedRefs refs={refs} />}
      </div>
      {message.by != null && (
        <p className={styles.author} dir="auto">
          {personText(message.by)}
        </p>
      )}
    </>
  );
});

const AgentText = memo(function AgentText({ part }: { part: TextPart }) {
  const ended = part.state === "interrupted" || part.state === "stale";
  return (
    <div>
      <Markdown text={part.text} />
      {ended && (
        <p className={styles.interrupted}>
          <StatusBadge status={part.state} />
        </p>
      )}
    </div>
  );
});

/** Taken by the Edge, and not yet told by a fact. */
function Unconfirmed({ sent }: { sent: Sent }) {
  return (
    <div className={`${styles.user} ${styles.waiting}`} dir="auto">
      <span className={styles.steered}>Sent, not yet confirmed</span>
      {sent.text}
      {sent.refs.length > 0 && <NamedRefs refs={sent.refs} />}
    </div>
  );
}

const ESTIMATES: Record<Shown["kind"], number> = { user: 52, text: 90, process: 40, card: 80, plan: 140, action: 220, boundary: 40, outcome: 36, sent: 60 };

function estimate(row: Shown): number {
  return ESTIMATES[row.kind];
}

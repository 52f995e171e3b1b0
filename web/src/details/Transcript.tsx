import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import type { ProjectionState, SubagentThread } from "../api/generated/projection";
import { RowView } from "../screens/conversation";
import { rowsOf } from "../screens/conversation/rows";
import { buttonClass, EmptyState, VirtualList } from "../ui";
import styles from "./Details.module.css";

export interface TranscriptProps {
  teammate: string;
  state: ProjectionState;
  live: boolean;
}

const ROW_HEIGHT = 60;

/** What a teammate said and did, as this thread's facts tell it, with the rows of a conversation. */
export function Transcript({ teammate, state, live }: TranscriptProps) {
  // How the turn of the whole thread ended is no word about one teammate.
  const rows = useMemo(() => rowsOf(state, teammate).filter(({ kind }) => kind !== "outcome"), [state, teammate]);
  if (rows.length === 0) return <Elsewhere thread={state.subagents.threads[teammate]} />;
  return (
    <VirtualList
      items={rows}
      keyOf={(row) => row.key}
      estimate={() => ROW_HEIGHT}
      label="Transcript"
      followEnd={live}
      render={(row) => (
        <div className={styles.row}>
          <RowView row={row} state={state} live={live} />
        </div>
      )}
    />
  );
}

function Elsewhere({ thread }: { thread: SubagentThread | undefined }) {
  if (thread?.threadId == null) {
    return (
      <EmptyState icon="message" title="No transcript">
        <p>This thread records that the teammate ran, but not what it said or did.</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="message" title="This teammate has its own thread">
      <p>Its messages and tool calls are in that thread.</p>
      <Link to="/threads/$threadId" params={{ threadId: thread.threadId }} className={buttonClass("plain")}>
        Open thread
      </Link>
    </EmptyState>
  );
}

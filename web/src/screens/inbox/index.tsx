import { Link } from "@tanstack/react-router";
import { useRef } from "react";

import type { Approval } from "../../api/generated/rest";
import { bareId } from "../../api/ids";
import { wordsOf } from "../../api/refusal";
import { ApprovalCard } from "../../approval/ApprovalCard";
import { requestOfApproval, type Details } from "../../approval/request";
import { useApprovals, usePendingActions, useThread } from "../../state/queries";
import { EmptyState, Icon, Spinner } from "../../ui";
import styles from "./Inbox.module.css";

/** Everything that waits for a person, on all threads, and below it what was decided. */
export default function Inbox() {
  const all = useApprovals();
  const pending = useApprovals("pending");
  const { waiting, decided } = useSorted(pending.data ?? [], all.data ?? []);
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1 className={styles.title}>Inbox</h1>
        <p className={styles.sub}>
          On a card, <kbd>A</kbd> approves and <kbd>D</kbd> denies.
        </p>
      </header>
      {pending.isPending && <Spinner label="Loading inbox" />}
      {pending.error && <p role="alert">{wordsOf(pending.error)}</p>}
      {pending.data?.length === 0 && (
        <EmptyState icon="inbox" title="Nothing to decide">
          <p>When an agent asks for approval, you can decide here or in its thread.</p>
        </EmptyState>
      )}
      <Approvals rows={waiting} label="Waiting" />
      {decided.length > 0 && <h2 className={styles.sub}>Recently decided</h2>}
      <Approvals rows={decided} label="Recently decided" />
    </div>
  );
}

/** What was waiting when it came on screen stays in its place, so that nothing jumps under a pointer. */
function useSorted(pending: Approval[], all: Approval[]): { waiting: Approval[]; decided: Approval[] } {
  const seen = useRef(new Set<string>());
  for (const row of pending) seen.current.add(row.approvalId);
  const rows = new Map([...all, ...pending].map((row) => [row.approvalId, row]));
  // Either list may be the older one; once decided, a request stays so.
  for (const row of all) if (row.status !== "pending") rows.set(row.approvalId, row);
  const sorted = [...rows.values()].sort((a, b) => b.seq - a.seq);
  return {
    waiting: sorted.filter((row) => seen.current.has(row.approvalId)),
    decided: sorted.filter((row) => !seen.current.has(row.approvalId) && row.status !== "pending"),
  };
}

function Approvals({ rows, label }: { rows: Approval[]; label: string }) {
  if (rows.length === 0) return null;
  return (
    <ul className={styles.list} aria-label={label}>
      {rows.map((row) => (
        <li key={row.approvalId}>
          <ApprovalRow row={row} />
        </li>
      ))}
    </ul>
  );
}

function ApprovalRow({ row }: { row: Approval }) {
  const details = useDetails(row);
  return (
    <ApprovalCard request={requestOfApproval(row, details)} live>
      {row.threadId != null && <FromThread threadId={row.threadId} />}
    </ApprovalCard>
  );
}

/** A decided one needs no form; one that waits is the same in the state of its thread. */
function useDetails(row: Approval): Details {
  const waits = row.status === "pending";
  const actions = usePendingActions(waits ? (row.threadId ?? null) : null);
  if (!waits || row.threadId == null || actions.error) return "unknown";
  if (actions.data === undefined) return "unread";
  const bare = bareId(row.threadId, row.approvalId);
  return actions.data.find((action) => action.actionId === bare) ?? "unknown";
}

function FromThread({ threadId }: { threadId: string }) {
  const thread = useThread(threadId).data;
  return (
    <Link className={styles.from} to="/threads/$threadId" params={{ threadId }}>
      <Icon name="message" size={12} />
      <span dir="auto">{thread?.title ?? threadId}</span>
    </Link>
  );
}

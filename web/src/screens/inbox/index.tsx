import { Link } from "@tanstack/react-router";

import type { Approval } from "../../api/generated/rest";
import { wordsOf } from "../../api/refusal";
import { ApprovalCard } from "../../approval/ApprovalCard";
import { requestOfApproval } from "../../approval/request";
import { useApprovals } from "../../state/queries";
import { EmptyState, Spinner } from "../../ui";
import styles from "./Inbox.module.css";

/** Everything that waits for a person, on all threads, and below it what was decided. */
export default function Inbox() {
  const all = useApprovals();
  const pending = useApprovals("pending");
  const decided = (all.data ?? []).filter((row) => row.status !== "pending");
  return (
    <div className={styles.page}>
      <h1 className={styles.title}>Inbox</h1>
      {pending.isPending && <Spinner label="Reading the inbox" />}
      {pending.error && <p role="alert">{wordsOf(pending.error)}</p>}
      {pending.data?.length === 0 && (
        <EmptyState icon="inbox" title="Nothing waits for you">
          <p>When an agent asks before it does something, you decide here or in its thread.</p>
        </EmptyState>
      )}
      <Approvals rows={pending.data ?? []} />
      {decided.length > 0 && <h2 className={styles.sub}>Decided lately</h2>}
      <Approvals rows={decided} />
    </div>
  );
}

function Approvals({ rows }: { rows: Approval[] }) {
  return (
    <ul className={styles.list}>
      {rows.map((row) => (
        <li key={row.approvalId}>
          <ApprovalCard request={requestOfApproval(row)} live>
            {row.threadId != null && (
              <Link className={styles.from} to="/threads/$threadId" params={{ threadId: row.threadId }}>
                Open its thread
              </Link>
            )}
          </ApprovalCard>
        </li>
      ))}
    </ul>
  );
}

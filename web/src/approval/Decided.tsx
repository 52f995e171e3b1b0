import { useEffect, type ReactNode } from "react";

import { confirm, useDecision, type OnItsWay } from "../state/decisions";
import { Icon, StatusBadge, Time } from "../ui";
import styles from "./ApprovalCard.module.css";
import { Facts } from "./Facts";
import type { ApprovalRequest } from "./request";
import { Shown } from "./Shown";

const ALLOWED = new Set(["approved", "allow", "allowed", "answered", "approve"]);

export interface DecidedProps {
  request: ApprovalRequest;
  /** Whether it was decided while somebody looked at it here. */
  wasWatched: boolean;
  children?: ReactNode;
}

/** One line once it is decided; what was shown is a click away. */
export function Decided({ request, wasWatched, children }: DecidedProps) {
  const way = useDecision(request.requestId);
  const sent = way?.phase === "sent";
  useEffect(() => {
    if (sent) confirm(request.requestId);
  }, [sent, request.requestId]);
  return (
    <details className={styles.decided}>
      <summary>
        <Icon name="chevron" size={12} className={styles.chevron} />
        <span className={styles.title} dir="auto">
          {request.title}
        </span>
        {wasWatched && (
          <span className={styles.news} role="status">
            {newsOf(request, way)}
          </span>
        )}
        {request.appliedAt !== null && (
          <span className={styles.news}>
            applied <Time at={request.appliedAt} />
          </span>
        )}
        <StatusBadge status={request.status === "resolved" ? (request.decision ?? request.status) : request.status} />
      </summary>
      <div className={styles.card}>
        <Shown shown={request.shown} diff={request.diff} diffRef={request.diffRef} />
        <Facts request={request} />
        {children}
      </div>
    </details>
  );
}

/** Whose decision counted: the one that was sent from here, or another that came before it. */
function newsOf(request: ApprovalRequest, way: OnItsWay | undefined): string {
  if (request.decision === null || request.status === "expired") return "";
  const wanted = (way?.phase === "sent" || way?.phase === "confirmed") && (way.decision === "allow") === ALLOWED.has(request.decision);
  return wanted ? "confirmed by the runtime" : `decided elsewhere by ${request.decidedBy ?? "unknown"}`;
}

import type { ReactNode } from "react";

import { Time } from "../ui";
import styles from "./ApprovalCard.module.css";
import { Countdown } from "./Countdown";
import type { ApprovalRequest } from "./request";

/** Who asks, where, by which rule and until when; and what was decided, once it is. */
export function Facts({ request }: { request: ApprovalRequest }) {
  const pending = request.status === "pending";
  const rows: [string, ReactNode][] = [
    ["Requested by", request.requester ?? "unknown"],
    ["Folder", request.cwd],
    ["Rule", request.rule],
    ["Expires", pending && request.expiresAt !== null ? <Countdown until={request.expiresAt} /> : null],
    ["Decided by", request.decidedBy],
    ["Reason", request.reason],
    ["Decided", at(request.decidedAt)],
    ["Sent to the agent", at(request.sentAt)],
    ["Applied", pending ? null : (at(request.appliedAt) ?? appliedWords(request.applied))],
  ];
  return (
    <dl className={styles.facts}>
      {rows.map(([name, value]) => (value === null || value === "" ? null : <Row key={name} name={name} value={value} />))}
    </dl>
  );
}

function Row({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd dir="auto">{value}</dd>
    </>
  );
}

function at(time: string | null): ReactNode {
  return time === null ? null : <Time at={time} />;
}

function appliedWords(applied: boolean | null): string {
  if (applied === null) return "unknown";
  return applied ? "yes" : "not yet";
}

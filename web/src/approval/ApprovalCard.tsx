import { useState, type ReactNode } from "react";

import { decide, useDecision, type OnItsWay, type Verdict } from "../state/decisions";
import { Badge, Button, Card, CodeBlock, Icon, Spinner, StatusBadge, Time, Verbatim, type Tone } from "../ui";
import styles from "./ApprovalCard.module.css";
import type { ApprovalRequest } from "./request";

const SEVERITY_TONE: Record<string, Tone> = { critical: "bad", high: "bad", medium: "warn", low: "calm" };

export interface ApprovalCardProps {
  request: ApprovalRequest;
  /** False where nothing can be decided: a moment of the past. */
  live: boolean;
  /** A way to where this was asked. */
  children?: ReactNode;
}

/** A request with what exactly would be done, and the decision once facts tell of one. */
export function ApprovalCard({ request, live, children }: ApprovalCardProps) {
  if (request.status !== "pending") return <Decided request={request}>{children}</Decided>;
  return (
    <Card className={styles.card} tone="warn" aria-label={`Approval: ${request.title}`}>
      <header className={styles.head}>
        <Icon name="pause" />
        <h2 className={styles.title} dir="auto">
          <Verbatim text={request.title} />
        </h2>
        <Badge tone={SEVERITY_TONE[request.severity ?? ""] ?? "calm"}>{request.severity ?? "unknown"} risk</Badge>
      </header>
      <WhatWillBeDone request={request} />
      <Facts request={request} />
      {live ? <Choices request={request} /> : <p className={styles.way}>It waited for a decision at this moment.</p>}
      {children}
    </Card>
  );
}

/** One line once it is decided; what was shown is a click away. */
function Decided({ request, children }: Omit<ApprovalCardProps, "live">) {
  return (
    <details className={styles.decided}>
      <summary>
        <span className={styles.title} dir="auto">
          {request.title}
        </span>
        <StatusBadge status={request.decision ?? request.status} />
      </summary>
      <div className={styles.card}>
        <WhatWillBeDone request={request} />
        <Facts request={request} />
        {children}
      </div>
    </details>
  );
}

function WhatWillBeDone({ request }: { request: ApprovalRequest }) {
  if (request.shown === null) return <p className={styles.way}>What exactly is asked for is unknown.</p>;
  return (
    <CodeBlock text={request.shown} label="What is asked for" wrap>
      <Verbatim text={request.shown} />
    </CodeBlock>
  );
}

function Facts({ request }: { request: ApprovalRequest }) {
  const rows: [string, ReactNode][] = [
    ["Asked by", request.requester],
    ["Folder", request.cwd],
    ["Rule", request.rule],
    ["Expires", request.status === "pending" && request.expiresAt !== null ? <Time at={request.expiresAt} /> : null],
    ["Decided by", request.decidedBy],
    ["Reason", request.reason],
    ["Took effect", request.status === "pending" ? null : appliedWords(request.applied)],
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

function appliedWords(applied: boolean | null): string {
  if (applied === null) return "unknown";
  return applied ? "yes" : "not yet";
}

function Choices({ request }: { request: ApprovalRequest }) {
  const [denying, setDenying] = useState(false);
  const way = useDecision(request.requestId);
  if (way?.phase === "sending" || way?.phase === "sent") return <OnTheWay way={way} />;
  if (request.runId === null) return <p className={styles.way}>The request names no run, so it cannot be decided from here.</p>;
  const subject = { runId: request.runId, requestId: request.requestId, argsHash: request.argsHash };
  const say = (verdict: Verdict) => void decide(subject, verdict);
  return (
    <>
      {denying ? <Denying onDeny={say} onBack={() => setDenying(false)} /> : <Buttons isCommand={request.isCommand} say={say} onDeny={() => setDenying(true)} />}
      {way?.phase === "refused" && (
        <p className={styles.error} role="alert">
          {way.message}
        </p>
      )}
    </>
  );
}

/** Sent is not decided: the card says so until a fact comes. */
function OnTheWay({ way }: { way: OnItsWay }) {
  const said = way.decision === "allow" ? "Approval" : "Denial";
  return (
    <p className={styles.way} role="status">
      <Spinner />
      {way.phase === "sending" ? `${said} is being sent…` : `${said} sent; the runtime has not confirmed it yet.`}
    </p>
  );
}

function Buttons({ isCommand, say, onDeny }: { isCommand: boolean; say: (verdict: Verdict) => void; onDeny: () => void }) {
  return (
    <div className={styles.choices}>
      <Button kind="primary" icon="check" onClick={() => say({ decision: "allow" })}>
        Approve
      </Button>
      <Button kind="danger" icon="close" onClick={onDeny}>
        Deny…
      </Button>
      {isCommand && (
        <>
          <Button kind="ghost" onClick={() => say({ decision: "allow", always: "thread" })}>
            Always in this thread
          </Button>
          <Button kind="ghost" onClick={() => say({ decision: "allow", always: "workspace" })}>
            Always in this workspace
          </Button>
        </>
      )}
    </div>
  );
}

function Denying({ onDeny, onBack }: { onDeny: (verdict: Verdict) => void; onBack: () => void }) {
  const [reason, setReason] = useState("");
  return (
    <form
      className={styles.choices}
      onSubmit={(event) => {
        event.preventDefault();
        onDeny({ decision: "deny", ...(reason.trim() === "" ? {} : { reason: reason.trim() }) });
      }}
    >
      <input className={styles.reason} autoFocus value={reason} placeholder="Why not? The agent is told." aria-label="Reason" dir="auto" onChange={(event) => setReason(event.target.value)} />
      <Button type="submit" kind="danger" icon="close">
        Deny
      </Button>
      <Button kind="ghost" onClick={onBack}>
        Back
      </Button>
    </form>
  );
}

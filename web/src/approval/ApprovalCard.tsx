import { useState, type KeyboardEvent, type ReactNode } from "react";

import { decide, useDecision, type Verdict } from "../state/decisions";
import { Badge, Button, Card, Icon, Verbatim, type IconName, type Tone } from "../ui";
import styles from "./ApprovalCard.module.css";
import { Choices } from "./Choices";
import { Decided } from "./Decided";
import { ExactNotes, useExactRequest } from "./ExactRequest";
import { Facts } from "./Facts";
import type { ApprovalRequest } from "./request";
import { Shown } from "./Shown";

const SEVERITY_TONE: Record<string, Tone> = { critical: "bad", high: "bad", medium: "warn", low: "calm" };

const KIND_LOOK: Record<string, { icon: IconName; words: string }> = {
  plan_decision: { icon: "plan", words: "Plan" },
  teammate_plan_decision: { icon: "plan", words: "Teammate's plan" },
  structured_input: { icon: "message", words: "Question" },
  clarification: { icon: "message", words: "Question" },
  credential_request: { icon: "key", words: "Credential" },
  artifact_review: { icon: "artifact", words: "Review" },
};

export interface ApprovalCardProps {
  request: ApprovalRequest;
  /** False where nothing can be decided: a moment of the past. */
  live: boolean;
  /** A way to where this was asked. */
  children?: ReactNode;
}

/** A request with what exactly would be done, and the decision once facts tell of one. */
export function ApprovalCard({ request, live, children }: ApprovalCardProps) {
  const [firstStatus] = useState(request.status);
  if (request.status !== "pending") {
    return (
      <Decided request={request} wasWatched={live && firstStatus === "pending"}>
        {children}
      </Decided>
    );
  }
  return (
    <Pending request={request} live={live}>
      {children}
    </Pending>
  );
}

function Pending({ request, live, children }: ApprovalCardProps) {
  const [denying, setDenying] = useState(false);
  const [looked, setLooked] = useState(request.argsHash);
  const way = useDecision(request.requestId);
  const exact = useExactRequest(request, live);
  const changed = looked !== request.argsHash;
  const open = live && !changed && exact.state !== "loading" && request.runId !== null && way?.phase !== "sending" && way?.phase !== "sent";
  const say = (verdict: Verdict) => void decide({ runId: request.runId ?? "", requestId: request.requestId, argsHash: exact.argsHash }, verdict);
  const canApprove = exact.state === "whole" && request.form === null;
  const keys: Record<string, () => void> = { d: () => setDenying(true), ...(canApprove ? { a: () => say({ decision: "allow" }) } : {}) };
  return (
    <Card
      className={styles.card}
      tone="warn"
      aria-label={`Approval: ${request.title}`}
      aria-keyshortcuts={request.form === null ? "A D" : "D"}
      tabIndex={0}
      onKeyDown={(event) => {
        if (open) carryOut(event, keys);
      }}
    >
      <Head request={request} title={exact.title} />
      <Shown shown={exact.shown} diff={request.diff} diffRef={request.diffRef} />
      {live && <ExactNotes exact={exact} />}
      <Facts request={request} />
      {!live && <p className={styles.way}>At this moment it was waiting for a decision.</p>}
      {live && changed && <Changed onLooked={() => setLooked(request.argsHash)} />}
      {live && !changed && <Choices request={request} exact={exact} way={way} denying={denying} onDenying={setDenying} say={say} />}
      {children}
    </Card>
  );
}

function Head({ request, title }: { request: ApprovalRequest; title: string }) {
  const look = Object.hasOwn(KIND_LOOK, request.kind) ? KIND_LOOK[request.kind] : undefined;
  return (
    <header className={styles.head}>
      <Icon name={look?.icon ?? "pause"} {...(look === undefined ? {} : { label: look.words })} />
      <h2 className={styles.title} dir="auto">
        <Verbatim text={title} />
      </h2>
      <Badge tone={SEVERITY_TONE[request.severity ?? ""] ?? "calm"}>{request.severity ?? "unknown"} risk</Badge>
    </header>
  );
}

/** An answer is bound to what somebody has read; what came instead of it must be read first. */
function Changed({ onLooked }: { onLooked: () => void }) {
  return (
    <div className={styles.choices} role="alert">
      <span className={styles.error}>This request changed while you were reading it. Read it again before you decide.</span>
      <Button onClick={onLooked}>I have read it again</Button>
    </div>
  );
}

/** Keys of a card count while the focus is on it, and never while somebody types. */
function carryOut(event: KeyboardEvent<HTMLElement>, keys: Record<string, () => void>): void {
  const typing = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const run = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
  if (run === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  run();
}

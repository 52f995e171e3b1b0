import { useState } from "react";

import type { OnItsWay, Verdict } from "../state/decisions";
import { Button, Spinner } from "../ui";
import { AlwaysButton, Granting, useRule } from "./Always";
import styles from "./ApprovalCard.module.css";
import { AnswerForm } from "./AnswerForm";
import type { ExactRequest } from "./ExactRequest";
import type { ApprovalRequest, OfferedWay } from "./request";

export interface ChoicesProps {
  request: ApprovalRequest;
  exact: ExactRequest;
  way: OnItsWay | undefined;
  denying: boolean;
  onDenying: (denying: boolean) => void;
  say: (verdict: Verdict) => void;
}

/** All that can be said to a request, or what became of what was said. */
export function Choices({ request, exact, way, denying, onDenying, say }: ChoicesProps) {
  if (way?.phase === "sending" || way?.phase === "sent") return <OnTheWay way={way} />;
  if (request.runId === null) return <p className={styles.way}>This request does not name a run, so you cannot decide it here.</p>;
  const deny = () => onDenying(true);
  const answering = exact.state === "whole" ? <Answering request={request} say={say} onDeny={deny} /> : <DenyOnly exact={exact} onDeny={deny} />;
  return (
    <>
      {denying ? <Denying onDeny={say} onBack={() => onDenying(false)} /> : answering}
      {way?.phase === "refused" && (
        <p className={styles.error} role="alert">
          {way.message}
        </p>
      )}
    </>
  );
}

/** Nobody approves what is not on screen in full. */
function DenyOnly({ exact, onDeny }: { exact: ExactRequest; onDeny: () => void }) {
  return (
    <div className={styles.choices}>
      <Button kind="danger" icon="close" disabled={exact.state === "loading"} onClick={onDeny}>
        Deny…
      </Button>
    </div>
  );
}

function Answering({ request, say, onDeny }: { request: ApprovalRequest; say: (verdict: Verdict) => void; onDeny: () => void }) {
  const { form } = request;
  if (form === "unread") {
    return (
      <p className={styles.way}>
        <Spinner /> Loading the answer form…
      </p>
    );
  }
  if (form === null) return <Buttons request={request} say={say} onDeny={onDeny} />;
  return (
    <AnswerForm
      requestId={request.requestId}
      form={form}
      onDecline={onDeny}
      onAnswer={(response) => say({ decision: "allow", ...(response === undefined ? {} : { response }) })}
    />
  );
}

/** Sent is not decided: the card says so until a fact comes. */
function OnTheWay({ way }: { way: OnItsWay }) {
  const label = way.decision === "allow" ? "Approval" : "Denial";
  return (
    <p className={styles.way} role="status">
      <Spinner />
      {way.phase === "sending" ? `Sending ${label.toLowerCase()}…` : `${label} sent. Waiting for the runtime.`}
    </p>
  );
}

const APPROVE_WORDS: Record<string, string> = { plan_decision: "Approve plan", teammate_plan_decision: "Approve plan" };

function Buttons({ request, say, onDeny }: { request: ApprovalRequest; say: (verdict: Verdict) => void; onDeny: () => void }) {
  const [granting, setGranting] = useState(false);
  const rule = useRule(request);
  if (granting && rule != null) return <Granting rule={rule} say={say} onBack={() => setGranting(false)} />;
  return (
    <div className={styles.choices}>
      <Button kind="primary" icon="check" onClick={() => say({ decision: "allow" })}>
        {APPROVE_WORDS[request.kind] ?? "Approve"}
      </Button>
      <Button kind="danger" icon="close" onClick={onDeny}>
        Deny…
      </Button>
      <AlwaysButton rule={rule} onOpen={() => setGranting(true)} />
      {request.ways.map((offered) => (
        <Offered key={offered.id} offered={offered} say={say} />
      ))}
    </div>
  );
}

function Offered({ offered, say }: { offered: OfferedWay; say: (verdict: Verdict) => void }) {
  return (
    <Button kind="ghost" onClick={() => say({ decision: offered.decision, response: offered.id })}>
      {offered.label}
    </Button>
  );
}

function Denying({ onDeny, onBack }: { onDeny: (verdict: Verdict) => void; onBack: () => void }) {
  const [reason, setReason] = useState("");
  return (
    <form
      className={styles.choices}
      onKeyDown={(event) => event.key === "Escape" && onBack()}
      onSubmit={(event) => {
        event.preventDefault();
        onDeny({ decision: "deny", ...(reason.trim() === "" ? {} : { reason: reason.trim() }) });
      }}
    >
      <input className={styles.reason} autoFocus value={reason} placeholder="Reason (shown to the agent)" aria-label="Reason" dir="auto" onChange={(event) => setReason(event.target.value)} />
      <Button type="submit" kind="danger" icon="close">
        Deny
      </Button>
      <Button kind="ghost" onClick={onBack}>
        Back
      </Button>
    </form>
  );
}

/** Rows that stand between texts: plans, requests on their own, cards, boundaries, ends of turns. */

import type { Action, Compaction, Plan, ProjectedTurn, ProjectionState } from "../../api/generated/projection";
import { ApprovalCard } from "../../approval/ApprovalCard";
import { personText, requestOfAction } from "../../approval/request";
import { Badge, Card, Icon, Markdown, StatusBadge, StatusIcon } from "../../ui";
import styles from "./Conversation.module.css";
import type { CardPart } from "./rows";
import { ToItem } from "./ToItem";

export function PlanCard({ plan }: { plan: Plan }) {
  const steps = stepsOf(plan);
  return (
    <Card className={styles.panel} aria-label="Plan">
      <header className={styles.panelhead}>
        <Icon name="plan" />
        <h2>Plan</h2>
        {plan.state !== "final" && <StatusBadge status={plan.state} />}
        {plan.decision != null && <StatusBadge status={plan.decision} />}
      </header>
      {steps === null ? (
        <Markdown text={plan.text} />
      ) : (
        <ol className={styles.plansteps}>
          {steps.map((step, at) => (
            <li key={at}>
              <StatusIcon status={step.status} />
              <span dir="auto">{step.title}</span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}

/** Steps are whatever the agent sent; only those that have a title can be listed. */
function stepsOf(plan: Plan): { title: string; status: string }[] | null {
  const steps = (plan.steps ?? []).map((step) => (step ?? {}) as { title?: unknown; status?: unknown });
  if (steps.length === 0 || steps.some((step) => typeof step.title !== "string")) return null;
  return steps.map(({ title, status }) => ({ title: String(title), status: typeof status === "string" ? status : "unknown" }));
}

export function ActionRow({ action, state, live }: { action: Action; state: ProjectionState; live: boolean }) {
  const subagent = action.subagentId ?? null;
  const teammate = subagent === null ? null : `teammate ${state.subagents.threads[subagent]?.name ?? subagent}`;
  return <ApprovalCard request={requestOfAction(action, state.threadId ?? "", teammate)} live={live} />;
}

export function CardRow({ part, state }: { part: CardPart; state: ProjectionState }) {
  if (part.type === "artifact-card") return <ArtifactCard artifactId={part.artifactId} state={state} />;
  if (part.type === "evidence-citation") return <Citation evidenceId={part.evidenceId} verdict={part.verdict ?? null} state={state} />;
  return (
    <p className={styles.caption}>
      <Icon name="diagnostics" size={12} />{" "}
      <ToItem tab="diagnostics" item={part.diagnosticId}>
        See diagnostics
      </ToItem>
    </p>
  );
}

function ArtifactCard({ artifactId, state }: { artifactId: string; state: ProjectionState }) {
  const artifact = state.artifacts[artifactId];
  const maker = artifact?.toolCallId == null ? undefined : state.tools[artifact.toolCallId];
  return (
    <Card className={styles.panel} aria-label="Artifact">
      <header className={styles.panelhead}>
        <Icon name="artifact" />
        <h2 dir="auto">
          <ToItem tab="artifacts" item={artifactId}>
            {artifact?.title ?? artifact?.path ?? artifactId}
          </ToItem>
        </h2>
        <Badge>{artifact?.kind ?? "unknown"}</Badge>
        <StatusBadge status={artifact?.status} />
      </header>
      {maker !== undefined && <p className={styles.caption}>Created by {maker.toolName ?? "an unknown tool"}</p>}
      {artifact?.exportStatus != null && <p className={styles.caption}>Export: {artifact.exportStatus}</p>}
    </Card>
  );
}

function Citation({ evidenceId, verdict, state }: { evidenceId: string; verdict: string | null; state: ProjectionState }) {
  const item = state.evidence.items[evidenceId];
  return (
    <p className={styles.panelhead}>
      <Icon name="evidence" size={14} />
      <span dir="auto">
        <ToItem tab="evidence" item={evidenceId}>
          {item?.title ?? evidenceId}
        </ToItem>
      </span>
      <Badge>{item?.kind ?? "unknown"}</Badge>
      <Badge>{`verdict: ${item?.verdict ?? verdict ?? "unknown"}`}</Badge>
    </p>
  );
}

export function BoundaryRow({ compaction }: { compaction: Compaction }) {
  return (
    <div>
      <p className={styles.boundary}>{BOUNDARY_WORDS[compaction.status] ?? `Context compaction: ${compaction.status}`}</p>
      {compaction.summary != null && <p className={styles.caption} dir="auto">{compaction.summary}</p>}
    </div>
  );
}

const BOUNDARY_WORDS: Record<string, string> = {
  running: "Summarizing earlier context",
  started: "Summarizing earlier context",
  completed: "From here on, the agent sees only a summary of the above",
  failed: "Earlier context could not be summarized",
};

/** How a turn ended; why is known of the latest one. */
export function OutcomeRow({ status, turn }: { status: string; turn: ProjectedTurn | undefined }) {
  return (
    <p className={styles.outcome}>
      <StatusBadge status={status} />
      {turn?.cancelledBy != null && <span dir="auto">{`by ${personText(turn.cancelledBy)}`}</span>}
      {turn?.failureCategory != null && <span>{turn.failureCategory.replaceAll("_", " ")}</span>}
      {turn?.recoveryHint != null && (
        <span className={styles.caption} dir="auto">
          {turn.recoveryHint}
        </span>
      )}
    </p>
  );
}

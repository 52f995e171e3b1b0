/** What is known of one node of the graph, from the surface of the state that its type belongs to. */

import type { ComponentType, ReactNode } from "react";

import type { GraphNode, ProjectionState } from "../api/generated/projection";
import { ActionRow } from "../screens/conversation/Placed";
import { ToolBody } from "../screens/conversation/ToolRow";
import { programOf } from "../screens/conversation/toolstate";
import { StatusBadge, StatusIcon, Time } from "../ui";
import styles from "./Details.module.css";
import { nameOf, plainWords, taskName } from "./names";
import { Pairs, Refs } from "./Pairs";
import { Teammate } from "./Teammate";

export interface NodeDetailsProps {
  node: GraphNode;
  state: ProjectionState;
  live: boolean;
}

const SPECIAL: Record<string, ComponentType<NodeDetailsProps & { id: string }>> = {
  subagent: ({ id, state, live }) => <Teammate key={id} teammate={id} state={state} live={live} />,
  tool: ToolDetails,
  action: ActionDetails,
  task: TaskDetails,
  job: JobDetails,
  turn: TurnDetails,
};

export function NodeDetails(props: NodeDetailsProps) {
  const id = props.node.nodeId.slice(props.node.nodeType.length + 1);
  const Special = Object.hasOwn(SPECIAL, props.node.nodeType) ? SPECIAL[props.node.nodeType] : undefined;
  return Special === undefined ? <Plain {...props} id={id} /> : <Special {...props} id={id} />;
}

/** The node itself, and below it what else is known. */
function Plain({ node, id, children }: { node: GraphNode; id: string; children?: ReactNode }) {
  return (
    <div className={styles.body} tabIndex={0} role="group" aria-label="Details">
      <div className={styles.text}>
        <Pairs
          rows={[
            ["Status", <StatusBadge status={node.status} />],
            ["Id", <code>{id}</code>],
            ["Started", node.startedAt == null ? null : <Time at={node.startedAt} />],
            ["Ended", node.completedAt == null ? null : <Time at={node.completedAt} />],
            ["Recorded in", node.sourceEventIds.length === 1 ? "1 fact" : `${node.sourceEventIds.length} facts`],
          ]}
        />
        {children}
        <Refs refs={node.refs ?? []} />
      </div>
    </div>
  );
}

type Details = NodeDetailsProps & { id: string };

function ToolDetails({ node, id, state, live }: Details) {
  const tool = state.tools[id];
  if (tool === undefined) return <Plain node={node} id={id} />;
  const program = programOf(state, id);
  const action = tool.actionId == null ? undefined : state.actions[tool.actionId];
  const runId = live && tool.turnId === state.runtime.activeTurnId ? (state.runtime.activeRunId ?? null) : null;
  return (
    <Plain node={node} id={id}>
      <Pairs rows={[["Tool", tool.toolName ?? "unknown"], ["Called by", tool.subagentId == null ? null : nameOf(tool.subagentId, state)], ["Exit code", tool.exitCode ?? program?.exitCode]]} />
      {action !== undefined && <ActionRow action={action} state={state} live={live} />}
      <ToolBody key={id} tool={tool} program={program} runId={runId} />
    </Plain>
  );
}

function ActionDetails({ node, id, state, live }: Details) {
  const action = state.actions[id];
  return (
    <Plain node={node} id={id}>
      {action !== undefined && <ActionRow action={action} state={state} live={live} />}
    </Plain>
  );
}

function TaskDetails({ node, id, state }: Details) {
  const task = state.tasks[id];
  if (task === undefined) return <Plain node={node} id={id} />;
  const assignee = task.assignee ?? task.delegatedTo;
  const names = (ids: string[] | null | undefined, name: (id: string, state: ProjectionState) => string) => ids?.map((one) => name(one, state)).join(", ");
  return (
    <Plain node={node} id={id}>
      <Pairs
        rows={[
          ["Objective", task.objective],
          ["Assigned to", assignee == null ? null : nameOf(assignee, state)],
          ["Agents", names(task.subagentIds, nameOf)],
          ["Part of", task.parentTaskId == null ? null : taskName(task.parentTaskId, state)],
          ["Depends on", names(task.dependsOn, taskName)],
          ["Progress", task.totalSteps == null ? null : `${task.completedSteps ?? 0} of ${task.totalSteps} steps`],
          ["Retries", task.retries === 0 ? null : task.retries],
          ["Failure", plainWords(task.failureCategory)],
          ["Message", task.message ?? task.reason],
        ]}
      />
      <Refs refs={[...(task.outputRefs ?? []), ...(task.artifactRefs ?? []), ...(task.evidenceRefs ?? [])]} />
    </Plain>
  );
}

function JobDetails({ node, id, state }: Details) {
  const job = state.jobs[id];
  if (job === undefined) return <Plain node={node} id={id} />;
  const counts = `${job.itemsRunning} running, ${job.itemsCompleted} done, ${job.itemsFailed} failed`;
  return (
    <Plain node={node} id={id}>
      <Pairs rows={[["Items", counts], ["Total", job.totalItems], ["Message", job.message], ["Failure", plainWords(job.failureCategory)]]} />
    </Plain>
  );
}

/** What was asked for, and what the turn's own nodes are. */
function TurnDetails({ node, id, state }: Details) {
  const asked = state.messages.find((message) => message.turnId === id && message.role === "user" && message.subagentId == null);
  const text = asked?.parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
  const below = Object.values(state.graph.nodes).filter(({ parentId }) => parentId === node.nodeId);
  return (
    <Plain node={node} id={id}>
      {text !== undefined && text !== "" && (
        <p className={styles.quote} dir="auto">
          {text}
        </p>
      )}
      <Nodes nodes={below} />
    </Plain>
  );
}

/** Nodes in a list, of which a reader sees the first; the outline has all of them. */
export function Nodes({ nodes }: { nodes: GraphNode[] }) {
  const rest = nodes.length - NODES_LISTED;
  return (
    <ul className={styles.list}>
      {nodes.slice(0, NODES_LISTED).map((node) => (
        <li key={node.nodeId} className={styles.line}>
          <StatusIcon status={node.status} />
          <span dir="auto">{node.title}</span>
        </li>
      ))}
      {rest > 0 && <li className={styles.faint}>and {rest} more</li>}
    </ul>
  );
}

const NODES_LISTED = 50;

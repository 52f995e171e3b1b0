import { useState } from "react";

import type { ProjectionState, TeamWorkbench } from "../../api/generated/projection";
import type { ScreenProps } from "../../app/screens";
import { nameOf, NodeDetails, plainWords, SidePanel, Teammate } from "../../details";
import { Badge, EmptyState, StatusBadge } from "../../ui";
import { Board } from "./Board";
import { Delegated, isDelegated } from "./Delegated";
import { Lanes } from "./Lanes";
import { Roster } from "./Roster";
import styles from "./Team.module.css";

/** Who works on a thread, on what, what goes between them, and what they ask for. */
export default function TeamScreen({ state, live }: ScreenProps) {
  const [opened, setOpened] = useState<string | null>(null);
  if (isEmpty(state)) return <Nothing />;
  return (
    <div className={styles.screen}>
      <div className={styles.page} tabIndex={0} role="region" aria-label="Team">
        <Head team={state.teamWorkbench} state={state} />
        <Delegated state={state} live={live} />
        <Roster state={state} onOpen={setOpened} />
        <Board state={state} onOpen={setOpened} />
        <Lanes state={state} onOpen={setOpened} />
      </div>
      {opened !== null && <Opened nodeId={opened} state={state} live={live} onClose={() => setOpened(null)} />}
    </div>
  );
}

interface OpenedProps {
  nodeId: string;
  state: ProjectionState;
  live: boolean;
  onClose: () => void;
}

/** A task or a teammate; one that only a channel told of is no node of the graph. */
function Opened({ nodeId, state, live, onClose }: OpenedProps) {
  const node = state.graph.nodes[nodeId];
  const isTask = nodeId.startsWith("task:");
  if (isTask && node === undefined) return null;
  const teammate = nodeId.slice("subagent:".length);
  return (
    <SidePanel key={nodeId} icon={isTask ? "plan" : "team"} title={node?.title ?? nameOf(teammate, state)} onClose={onClose} over>
      {node === undefined ? <Teammate teammate={teammate} state={state} live={live} /> : <NodeDetails node={node} state={state} live={live} />}
    </SidePanel>
  );
}

function Nothing() {
  return (
    <EmptyState icon="team" title="No team yet">
      <p>Teammates, tasks, handoffs and reviews appear here when the agent delegates work.</p>
    </EmptyState>
  );
}

function isEmpty({ teamWorkbench: team, actions }: ProjectionState): boolean {
  const tables = [team.rosterNodes, team.workItems, team.handoffEvents];
  const isTold = team.teamName != null || team.teamId != null || team.reviewEvents.length > 0 || team.notifications.length > 0;
  return !isTold && tables.every((table) => Object.keys(table).length === 0) && !Object.values(actions).some(isDelegated);
}

/** The team itself, as far as facts tell of one. */
function Head({ team, state }: { team: TeamWorkbench; state: ProjectionState }) {
  const name = team.teamName ?? team.teamId;
  const active = state.subagents.activeThreadIds.length;
  return (
    <header className={styles.head}>
      <h2 className={styles.name} dir="auto">
        {name ?? "Team"}
      </h2>
      {team.teamPhase != null && <StatusBadge status={team.teamPhase} />}
      {team.topology != null && <Badge>{plainWords(team.topology)}</Badge>}
      <span className={styles.under}>{active === 0 ? "none active" : `${active} active`}</span>
      {team.activeAgent != null && (
        <span className={styles.under} dir="auto">
          {nameOf(team.activeAgent, state)} has the work
        </span>
      )}
    </header>
  );
}

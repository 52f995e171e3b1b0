import type { AgentRow, CapabilityManifest } from "../../api/generated/rest";
import { Badge } from "../../ui";
import { capabilitiesOf } from "./capabilities";
import styles from "./Home.module.css";

export interface AgentChoiceProps {
  agents: AgentRow[];
  chosen: string | null;
  onChoose: (agentId: string) => void;
}

/** Who can be asked, and what the chosen one can do; who cannot is listed too, with the reason. */
export function AgentChoice({ agents, chosen, onChoose }: AgentChoiceProps) {
  const away = agents.filter((agent) => !agent.available);
  const manifest = agents.find((agent) => agent.agentId === chosen)?.manifest;
  return (
    <div className={styles.choice}>
      <Available agents={agents.filter((agent) => agent.available)} chosen={chosen} onChoose={onChoose} />
      {manifest && <Capabilities manifest={manifest} />}
      {away.length > 0 && <Unavailable agents={away} />}
    </div>
  );
}

function Available({ agents, chosen, onChoose }: AgentChoiceProps) {
  return (
    <fieldset className={styles.agents}>
      <legend>Agent</legend>
      {agents.map((agent) => (
        <label key={agent.agentId} className={styles.agent}>
          <input type="radio" name="agent" value={agent.agentId} checked={agent.agentId === chosen} onChange={() => onChoose(agent.agentId)} />
          <span className={styles.name}>{agent.agentId}</span>
          <span className={styles.about} dir="auto">
            {agent.manifest?.title ?? "No description."}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

const HAS_LOOK = {
  yes: { tone: "good", icon: "check" },
  no: { tone: "calm", icon: "close" },
  unknown: { tone: "calm", icon: "unknown" },
} as const;

function Capabilities({ manifest }: { manifest: CapabilityManifest }) {
  return (
    <ul className={styles.can} aria-label={`What ${manifest.agentId} can do`}>
      {capabilitiesOf(manifest).map(({ words, has }) => (
        <li key={words}>
          <Badge {...HAS_LOOK[has]}>
            {words}
            {has !== "yes" && <span>: {has}</span>}
          </Badge>
        </li>
      ))}
    </ul>
  );
}

function Unavailable({ agents }: { agents: AgentRow[] }) {
  return (
    <details className={styles.away}>
      <summary>{agents.length === 1 ? "1 agent is unavailable" : `${agents.length} agents are unavailable`}</summary>
      <dl>
        {agents.map(({ agentId, message, code }) => (
          <div key={agentId}>
            <dt>{agentId}</dt>
            <dd dir="auto">{message ?? code ?? "unknown"}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

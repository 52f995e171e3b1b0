import type { ConnectionStatus } from "../api/connection";
import { useWorstConnection } from "../state/connections";
import { Badge, Tooltip, type IconName, type Tone } from "../ui";

const LOOK: Record<ConnectionStatus, { tone: Tone; icon: IconName; words: string; means: string }> = {
  connecting: { tone: "calm", icon: "clock", words: "Connecting", means: "Loading the current state." },
  live: { tone: "good", icon: "check", words: "Live", means: "You are seeing the latest from the Edge." },
  reconnecting: { tone: "warn", icon: "retry", words: "Reconnecting", means: "The connection was lost and will resume where it stopped." },
  stale: { tone: "bad", icon: "alert", words: "Stale", means: "Cannot reach the Edge. You are seeing the last known state." },
  repairing: { tone: "warn", icon: "retry", words: "Repairing", means: "Part of the stream was lost. Reloading the full state." },
};

/** Whether what is on screen can be trusted to be current. */
export function ConnectionBadge() {
  const { tone, icon, words, means } = LOOK[useWorstConnection()];
  return (
    <Tooltip text={means}>
      <span role="status" tabIndex={0}>
        <Badge tone={tone} icon={icon}>
          {words}
        </Badge>
      </span>
    </Tooltip>
  );
}

import type { ConnectionStatus } from "../api/connection";
import { useWorstConnection } from "../state/connections";
import { Badge, Tooltip, type IconName, type Tone } from "../ui";

const LOOK: Record<ConnectionStatus, { tone: Tone; icon: IconName; words: string; means: string }> = {
  connecting: { tone: "calm", icon: "clock", words: "Connecting", means: "The first state is on its way." },
  live: { tone: "good", icon: "check", words: "Live", means: "What you see is what the Edge knows." },
  reconnecting: { tone: "warn", icon: "retry", words: "Reconnecting", means: "The stream was lost, and goes on where it stopped." },
  stale: { tone: "bad", icon: "alert", words: "Stale", means: "The Edge cannot be reached. What you see is as it was last." },
  repairing: { tone: "warn", icon: "retry", words: "Repairing", means: "Part of the stream is gone; a whole state is on its way." },
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

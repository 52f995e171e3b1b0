import type { ConnectionStatus } from "../api/connection";
import { useWorstConnection } from "../state/connections";
import { useHealth } from "../state/queries";
import { Badge, Tooltip, type IconName, type Tone } from "../ui";

interface BadgeLook {
  tone: Tone;
  icon: IconName;
  words: string;
  means: string;
}

function degradedLook(reason: string | null): BadgeLook {
  return { tone: "bad", icon: "alert", words: "Cannot save", means: `The Edge cannot record anything at the moment${reason === null ? "" : `: ${reason}`}.` };
}

const LOOK: Record<ConnectionStatus, BadgeLook> = {
  connecting: { tone: "calm", icon: "clock", words: "Connecting", means: "Loading the current state." },
  live: { tone: "good", icon: "check", words: "Live", means: "You are seeing the latest from the Edge." },
  reconnecting: { tone: "warn", icon: "retry", words: "Reconnecting", means: "The connection was lost and will resume where it stopped." },
  stale: { tone: "bad", icon: "alert", words: "Stale", means: "Cannot reach the Edge. You are seeing the last known state." },
  repairing: { tone: "warn", icon: "retry", words: "Repairing", means: "Part of the stream was lost. Reloading the full state." },
};

/** Whether what is on screen can be trusted to be current, and whether what is done here is kept. */
export function ConnectionBadge() {
  const connection = useWorstConnection();
  const health = useHealth().data;
  const degraded = connection === "live" && health?.status === "degraded";
  const { tone, icon, words, means } = degraded ? degradedLook(health.details?.reason ?? null) : LOOK[connection];
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

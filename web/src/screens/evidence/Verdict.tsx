import { Badge, type IconName, type Tone } from "../../ui";

const LOOKS: Record<string, { tone: Tone; icon: IconName }> = {
  passed: { tone: "good", icon: "check" },
  pass: { tone: "good", icon: "check" },
  approved: { tone: "good", icon: "check" },
  accepted: { tone: "good", icon: "check" },
  failed: { tone: "bad", icon: "alert" },
  fail: { tone: "bad", icon: "alert" },
  rejected: { tone: "bad", icon: "skip" },
  changes_requested: { tone: "warn", icon: "retry" },
};

/** A verdict in the word that a fact has for it; one that none states is unknown, never good. */
export function Verdict({ verdict }: { verdict: string | null }) {
  const look = verdict !== null && Object.hasOwn(LOOKS, verdict) ? LOOKS[verdict] : undefined;
  return <Badge tone={look?.tone ?? "calm"} icon={look?.icon ?? "unknown"}>{`verdict: ${(verdict ?? "unknown").replaceAll("_", " ")}`}</Badge>;
}

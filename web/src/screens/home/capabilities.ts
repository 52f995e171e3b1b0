/** What an agent says of itself, as words for a person; `unknown` stays unknown. */

import type { CapabilityManifest } from "../../api/generated/rest";

export interface Capability {
  words: string;
  has: "yes" | "no" | "unknown";
}

type Flag = "cancel" | "steer" | "subagents" | "artifacts" | "evidence" | "sandbox" | "cost";

const FLAGS: [Flag, string][] = [
  ["cancel", "can be stopped"],
  ["steer", "can be steered"],
  ["subagents", "has teammates"],
  ["artifacts", "creates artifacts"],
  ["evidence", "provides evidence"],
  ["sandbox", "sandboxed"],
  ["cost", "reports its cost"],
];

export function capabilitiesOf(manifest: CapabilityManifest): Capability[] {
  return [
    { words: "asks first", has: APPROVALS[manifest.approvals ?? "unknown"] ?? "unknown" },
    ...FLAGS.map(([flag, words]) => ({ words, has: manifest[flag] ?? "unknown" })),
  ];
}

const APPROVALS: Record<string, Capability["has"]> = { inline: "yes", interrupt: "yes", none: "no", unknown: "unknown" };

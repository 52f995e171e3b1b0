import type { RuntimeStatus } from "../../api/generated/projection";
import { Spinner, StatusIcon } from "../../ui";
import styles from "./RuntimeStrip.module.css";

const PHASE_WORDS: Record<string, string> = {
  submitted: "Submitted",
  accepted: "Accepted",
  routing: "Choosing a model",
  preparing: "Preparing",
  planning: "Planning",
  reasoning: "Thinking",
  acting: "Working",
  producing: "Writing",
  reviewing: "Reviewing",
  reconciling: "Finishing",
  waiting: "Waiting for you",
};

/** What the runtime is at, outside of the text and before there is any. Its room is always kept. */
export function RuntimeStrip({ runtime }: { runtime: RuntimeStatus }) {
  return (
    <div className={styles.strip} role="status">
      <Words runtime={runtime} />
    </div>
  );
}

function Words({ runtime }: { runtime: RuntimeStatus }) {
  if (runtime.status === "idle" || runtime.status === "completed") return null;
  const phase = PHASE_WORDS[runtime.phase] ?? runtime.phase;
  const said = runtime.message ?? runtime.blockedReason?.replaceAll("_", " ");
  return (
    <>
      {runtime.status === "running" ? <Spinner /> : <StatusIcon status={runtime.status} />}
      <span className={styles.words} dir="auto">
        {runtime.status === "failed" ? `Failed: ${(runtime.failureCategory ?? "unknown reason").replaceAll("_", " ")}` : phase}
        {said != null && ` · ${said}`}
      </span>
    </>
  );
}

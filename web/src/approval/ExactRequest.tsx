/**
 * What exactly a person decides about. States and rows come from facts, which are redacted; the text
 * of a card comes from the memory of the runtime that asks, and a decision is bound to its hash.
 */

import { useDecisionCard } from "../state/queries";
import { Spinner } from "../ui";
import styles from "./ApprovalCard.module.css";
import type { ApprovalRequest } from "./request";

export interface ExactRequest {
  /** Without the whole text, a request can only be denied. */
  state: "loading" | "whole" | "gone";
  title: string;
  shown: string | null;
  argsHash: string;
  masks: number;
  hasOpenSecret: boolean;
  reason: string | null;
}

const UNREACHABLE = "The exact text of this request could not be loaded, so it can only be denied.";

export function useExactRequest(request: ApprovalRequest, live: boolean): ExactRequest {
  const { data, isError } = useDecisionCard(request.requestId, request.argsHash, live);
  const recorded = { title: request.title, shown: request.shown, argsHash: request.argsHash ?? "", masks: 0, hasOpenSecret: false };
  if (!live) return { ...recorded, state: "whole", reason: null };
  if (isError) return { ...recorded, state: "gone", reason: UNREACHABLE };
  // While a request changes, the card of what it was before is none of it.
  if (data === undefined || (request.argsHash !== null && data.argsHash !== request.argsHash)) return { ...recorded, state: "loading", reason: null };
  const argsHash = data.argsHash ?? "";
  if (data.shown == null) return { ...recorded, argsHash, state: "gone", reason: data.reason ?? null };
  return {
    state: "whole",
    title: data.prompt ?? request.title,
    shown: data.shown === "" ? request.shown : data.shown,
    argsHash,
    masks: data.masks ?? 0,
    hasOpenSecret: data.hasOpenSecret ?? false,
    reason: null,
  };
}

/** What is special about the text on a card. */
export function ExactNotes({ exact }: { exact: ExactRequest }) {
  return (
    <>
      {exact.state === "loading" && (
        <p className={styles.way} role="status">
          <Spinner /> Loading the exact request…
        </p>
      )}
      {exact.reason !== null && (
        <p className={styles.error} role="alert">
          {exact.reason}
        </p>
      )}
      {exact.masks > 0 && <p className={styles.news}>Secrets masked: {exact.masks}, each within one word.</p>}
      {exact.hasOpenSecret && <p className={styles.error}>A secret is shown here, because a mask could have hidden what runs.</p>}
    </>
  );
}

import { useEffect, useRef, useState } from "react";

import { call, newKey } from "../../api/client";
import { Refusal, wordsOf } from "../../api/refusal";
import type { AssetPart } from "../../attachments";
import { useWorstConnection } from "../../state/connections";
import { noteSent } from "../../state/outbox";
import { queries } from "../../state/queries";

export type Mode = "queue" | "steer";

/**
 * Sends a message. One whose answer was lost is sent again under its old key, so that trying twice
 * never says it twice.
 */
export function useSending(threadId: string) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const last = useRef({ said: "", key: "", failed: false });
  useForgotten(error, setError);
  const send = async (text: string, input: AssetPart[], mode: Mode): Promise<boolean> => {
    const body = { text, mode, ...(input.length === 0 ? {} : { input }) };
    const said = JSON.stringify(body);
    last.current = { said, key: last.current.said === said && last.current.failed ? last.current.key : newKey(), failed: false };
    setBusy(true);
    setError(null);
    try {
      const { run, steered } = await call("postMessage", { path: { threadId }, body, idempotencyKey: last.current.key });
      const turnId = run?.turnId ?? steered?.turnId;
      if (turnId !== undefined) noteSent(threadId, { text, refs: input.map(({ ref }) => ref), turnId, steerId: steered?.steerId ?? null });
      return true;
    } catch (reason) {
      last.current.failed = true;
      if (reason instanceof Refusal && reason.status === 503) void queries.invalidateQueries({ queryKey: ["health"] });
      setError(reason);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { send, busy, error: error === null ? null : wordsOf(error) };
}

/** That the Edge cannot be reached is true only until it can be again; the text and its key are kept. */
function useForgotten(error: unknown, setError: (error: null) => void): void {
  const reached = useWorstConnection() === "live";
  const unreached = error instanceof Refusal && error.status === 0;
  const wasAway = useRef(false);
  useEffect(() => {
    if (!reached) wasAway.current = true;
    else if (wasAway.current && unreached) setError(null);
    if (reached) wasAway.current = false;
  }, [reached, unreached, setError]);
}

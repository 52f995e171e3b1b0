import { useRef, useState } from "react";

import { call, newKey } from "../../api/client";
import { wordsOf } from "../../api/refusal";
import type { AssetPart } from "../../attachments";
import { noteSent } from "../../state/outbox";

export type Mode = "queue" | "steer";

/**
 * Sends a message. One whose answer was lost is sent again under its old key, so that trying twice
 * never says it twice.
 */
export function useSending(threadId: string) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const last = useRef({ said: "", key: "" });
  const send = async (text: string, input: AssetPart[], mode: Mode): Promise<boolean> => {
    const body = { text, mode, ...(input.length === 0 ? {} : { input }) };
    const said = JSON.stringify(body);
    last.current = { said, key: last.current.said === said && error !== null ? last.current.key : newKey() };
    setBusy(true);
    setError(null);
    try {
      const { run, steered } = await call("postMessage", { path: { threadId }, body, idempotencyKey: last.current.key });
      const turnId = run?.turnId ?? steered?.turnId;
      if (turnId !== undefined) noteSent(threadId, { text, refs: input.map(({ ref }) => ref), turnId, steerId: steered?.steerId ?? null });
      return true;
    } catch (reason) {
      setError(wordsOf(reason));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { send, busy, error };
}

import { useRef, useState } from "react";

import { call, newKey } from "../../api/client";
import { wordsOf } from "../../api/refusal";
import { noteSent } from "../../state/outbox";

export type Mode = "queue" | "steer";

/**
 * Sends a message. One whose answer was lost is sent again under its old key, so that trying twice
 * never says it twice.
 */
export function useSending(threadId: string) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const last = useRef({ text: "", mode: "queue" as Mode, key: "" });
  const send = async (text: string, mode: Mode): Promise<boolean> => {
    const again = last.current.text === text && last.current.mode === mode && error !== null;
    last.current = { text, mode, key: again ? last.current.key : newKey() };
    setBusy(true);
    setError(null);
    try {
      const { run, steered } = await call("postMessage", { path: { threadId }, body: { text, mode }, idempotencyKey: last.current.key });
      const turnId = run?.turnId ?? steered?.turnId;
      if (turnId !== undefined) noteSent(threadId, { text, turnId, steerId: steered?.steerId ?? null });
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

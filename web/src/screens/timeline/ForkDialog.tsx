import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { call, newKey } from "../../api/client";
import { wordsOf } from "../../api/refusal";
import type { TimeMachine } from "../../state/moments";
import { Button, Dialog } from "../../ui";
import styles from "./ForkDialog.module.css";

const TITLE_CHARACTERS = 200;

/** Begin a new thread with the conversation as it stood at the moment on screen. */
export function ForkDialog({ machine, onClose }: { machine: TimeMachine; onClose: () => void }) {
  const navigate = useNavigate();
  const { threadId, state, at } = machine;
  const [title, setTitle] = useState(() => `${state?.title ?? threadId} (fork)`.slice(0, TITLE_CHARACTERS));
  const [key] = useState(newKey);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const fork = async () => {
    setBusy(true);
    setError(null);
    try {
      const named = title.trim();
      const made = await call("forkThread", { path: { threadId }, body: { at, ...(named === "" ? {} : { title: named }) }, idempotencyKey: key });
      await navigate({ to: "/threads/$threadId", params: { threadId: made.threadId }, search: {} });
    } catch (reason) {
      setError(wordsOf(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Fork from this moment" onClose={onClose} narrow>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          void fork();
        }}
      >
        <p>The new thread starts with the conversation up to this moment. This thread does not change, and files are not reverted.</p>
        <label className={styles.label}>
          Title
          <input data-begin className={styles.title} value={title} maxLength={TITLE_CHARACTERS} dir="auto" onChange={(event) => setTitle(event.target.value)} />
        </label>
        {error !== null && (
          <p className={styles.error} role="alert">
            {error}
          </p>
        )}
        <Button type="submit" kind="primary" icon="branch" busy={busy} disabled={at === null}>
          Create thread
        </Button>
      </form>
    </Dialog>
  );
}

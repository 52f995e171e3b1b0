import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";

import { signIn, signOut, token } from "../../api/auth";
import { call, Refusal } from "../../api/client";
import { wordsOf } from "../../api/refusal";
import { queries } from "../../state/queries";
import { Button, Card } from "../../ui";
import styles from "./SignIn.module.css";

/** Shown to whoever comes without a token, or with one that the Edge does not know. */
export default function SignIn() {
  const { error, busy, submit } = useSignIn();
  return (
    <main className={styles.page}>
      <Card className={styles.card}>
        <h1 className={styles.title}>Sign in to this Edge</h1>
        <p className={styles.soft}>
          The Edge created a token when it first started, printed it, and stored it in its data folder. The token you enter stays in this tab.
        </p>
        <form className={styles.form} onSubmit={submit}>
          <label htmlFor="token">Token</label>
          <input id="token" name="token" type="password" className={styles.input} autoComplete="current-password" autoFocus required spellCheck={false} aria-describedby="token-error" />
          <p id="token-error" className={styles.error} role="alert">
            {error}
          </p>
          <Button type="submit" kind="primary" busy={busy}>
            Sign in
          </Button>
        </form>
      </Card>
    </main>
  );
}

function useSignIn() {
  const navigate = useNavigate();
  const { next } = useSearch({ from: "/sign-in" });
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = String(new FormData(event.currentTarget).get("token") ?? "").trim();
    setBusy(true);
    setError(await refusalOf(given));
    setBusy(false);
    if (token() !== null) await navigate({ href: isOwn(next) ? next : "/", replace: true });
  };
  return { error, busy, submit: (event: FormEvent<HTMLFormElement>) => void submit(event) };
}

/** Try the token; what is wrong with it, or nothing. */
async function refusalOf(given: string): Promise<string> {
  signIn(given);
  try {
    await call("listThreads", { query: { limit: 1 } });
    queries.clear();
    return "";
  } catch (error) {
    signOut();
    return error instanceof Refusal && error.status === 401 ? "Invalid token. On the Edge's machine, run `factwire open` to open this page with the right one." : wordsOf(error);
  }
}

/** Only addresses of this page are gone to. */
function isOwn(next: string | undefined): next is string {
  return next !== undefined && /^\/(?![/\\])/.test(next);
}

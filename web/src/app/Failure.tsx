import { Link, type ErrorComponentProps } from "@tanstack/react-router";
import { useEffect } from "react";

import { waitBefore } from "../api/backoff";
import { RELOADS_APART_MS } from "../api/limits";
import { wordsOf } from "../api/refusal";
import { Button, buttonClass, EmptyState } from "../ui";
import { NotLoaded } from "./parts";

/** Something on the page broke; the rest of it goes on. */
export function Failure({ error, reset }: ErrorComponentProps) {
  if (error instanceof NotLoaded) return <Unfetched />;
  return (
    <EmptyState icon="alert" title="Something went wrong here">
      <p dir="auto">{wordsOf(error)}</p>
      <Button icon="retry" onClick={reset}>
        Try again
      </Button>
    </EmptyState>
  );
}

/** Drafts are kept and all else is the Edge's, so loading the page again loses nothing. */
function Unfetched() {
  useEffect(() => reloadOnceReachable(), []);
  return (
    <EmptyState icon="retry" title="This part of the page has not loaded">
      <p>It will load as soon as the Edge can be reached.</p>
      <Button icon="retry" onClick={() => location.reload()}>
        Reload the page
      </Button>
    </EmptyState>
  );
}

const RELOADED = "factwire.reloaded";

/** An Edge that answers and still does not give the file would have the page reload for ever. */
function reloadOnceReachable(): () => void {
  let failures = 0;
  let timer = 0;
  const attempt = async () => {
    const reachable = await fetch("/", { method: "HEAD", cache: "no-store" }).then(({ ok }) => ok, () => false);
    if (reachable && Date.now() - Number(sessionStorage.getItem(RELOADED)) > RELOADS_APART_MS) {
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
    } else wait();
  };
  const wait = () => {
    timer = window.setTimeout(() => void attempt(), waitBefore(failures));
    failures += 1;
  };
  wait();
  return () => clearTimeout(timer);
}

export function Missing() {
  return (
    <EmptyState icon="unknown" title="Page not found">
      <Link to="/" className={buttonClass("plain")}>
        Go to the home page
      </Link>
    </EmptyState>
  );
}

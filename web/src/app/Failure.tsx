import { Link, type ErrorComponentProps } from "@tanstack/react-router";

import { wordsOf } from "../api/refusal";
import { Button, buttonClass, EmptyState } from "../ui";

/** Something on the page broke; the rest of it goes on. */
export function Failure({ error, reset }: ErrorComponentProps) {
  return (
    <EmptyState icon="alert" title="This part of the page failed">
      <p dir="auto">{wordsOf(error)}</p>
      <Button icon="retry" onClick={reset}>
        Show it again
      </Button>
    </EmptyState>
  );
}

export function Missing() {
  return (
    <EmptyState icon="unknown" title="There is no such page">
      <Link to="/" className={buttonClass("plain")}>
        Go home
      </Link>
    </EmptyState>
  );
}

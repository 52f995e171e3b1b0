import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** Leads to a thing on a screen of its own, at the same moment. */
export function ToItem({ tab, item, children }: { tab: string; item: string; children: ReactNode }) {
  const { threadId } = useParams({ from: "/shell/threads/$threadId" });
  return (
    <Link to="/threads/$threadId" params={{ threadId }} search={(before) => ({ ...before, tab, item })}>
      {children}
    </Link>
  );
}

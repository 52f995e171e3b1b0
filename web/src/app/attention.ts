/** How much waits for a person, for those who look elsewhere: in the title, on the icon, as notifications. */

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import type { Approval } from "../api/generated/rest";
import { call } from "../api/client";
import { notify } from "../state/notifications";
import { useApprovals } from "../state/queries";

const NONE: Approval[] = [];
const MOST_ON_ICON = 9;

export function useAttention(): void {
  const approvals = useApprovals("pending").data;
  const waiting = approvals?.length ?? 0;
  useEffect(() => {
    document.title = waiting > 0 ? `(${waiting}) Factwire` : "Factwire";
    showOnIcon(waiting);
  }, [waiting]);
  useNews(approvals);
}

/** What came since the page was opened is news; what waited before is not. */
function useNews(approvals: Approval[] | undefined): void {
  const navigate = useNavigate();
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (approvals === undefined) return;
    const fresh = known.current === null ? NONE : approvals.filter(({ approvalId }) => !known.current?.has(approvalId));
    known.current = new Set([...(known.current ?? []), ...approvals.map(({ approvalId }) => approvalId)]);
    for (const { approvalId, threadId } of fresh) {
      if (threadId == null) continue;
      const open = () => void navigate({ to: "/threads/$threadId", params: { threadId } });
      void nameOf(threadId).then((name) => notify(approvalId, name, open));
    }
  }, [approvals, navigate]);
}

async function nameOf(threadId: string): Promise<string> {
  try {
    return (await call("readThread", { path: { threadId } })).title ?? threadId;
  } catch {
    // A notification is worth more than the name in it.
    return threadId;
  }
}

let plainIcon: string | null = null;

/** The icon of the tab, with a number on it; drawn as text, since nothing is fetched for it. */
function showOnIcon(waiting: number): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (link === null) return;
  plainIcon ??= link.href;
  link.href = waiting === 0 ? plainIcon : `data:image/svg+xml,${encodeURIComponent(iconWith(waiting > MOST_ON_ICON ? `${MOST_ON_ICON}+` : String(waiting)))}`;
}

function iconWith(number: string): string {
  return (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#3b5bdb"/>' +
    '<path d="M5 8h7M5 12h5M5 16h5" stroke="#fff" stroke-width="2" stroke-linecap="round"/><circle cx="16" cy="16" r="8" fill="#c2410c"/>' +
    `<text x="16" y="20" font-family="sans-serif" font-size="11" font-weight="700" text-anchor="middle" fill="#fff">${number}</text></svg>`
  );
}

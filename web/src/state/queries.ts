/** What is asked of the Edge by request: lists and single rows. `state/lists.ts` keeps them live. */

import { QueryClient, useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { call, readHealth, Refusal } from "../api/client";
import type { Approval, Thread } from "../api/generated/rest";
import { HEALTH_PAUSE_MS, PAGE_ROWS, PROGRESS_PAUSE_MS } from "../api/limits";

/** A refusal is an answer; only an Edge that could not be reached is asked again. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => error instanceof Refusal && error.status === 0 && failures < 3,
    },
  },
});

/** Threads, newest first; with words to look for, those that the Edge finds by them. */
export function useThreads(search = "") {
  return useInfiniteQuery({
    queryKey: ["threads", "active", search],
    queryFn: ({ pageParam, signal }) =>
      call("listThreads", {
        query: { status: "active", limit: PAGE_ROWS, ...(search === "" ? {} : { search }), ...(pageParam === null ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    placeholderData: (before) => before,
    select: (data): Thread[] => data.pages.flatMap((page) => page.items),
  });
}

export function useThread(threadId: string) {
  return useQuery({
    queryKey: ["threads", "one", threadId],
    queryFn: ({ signal }) => call("readThread", { path: { threadId }, signal }),
  });
}

/** Approvals of all threads, newest first: those that wait, or the latest of every status. */
export function useApprovals(status?: Approval["status"]) {
  return useQuery({
    queryKey: ["approvals", status ?? "all"],
    queryFn: ({ signal }) =>
      call("listApprovals", { query: { limit: PAGE_ROWS, ...(status === undefined ? {} : { status }) }, signal }),
    select: (page) => page.items,
  });
}

/** What waits on a thread, in full: forms and commands, which the list of all threads leaves out. */
export function usePendingActions(threadId: string | null) {
  return useQuery({
    queryKey: ["approvals", "actions", threadId],
    queryFn: ({ signal }) => call("readThreadModel", { path: { threadId: threadId ?? "" }, signal }),
    select: ({ readModel }) => readModel.pendingActions,
    enabled: threadId !== null,
  });
}

/** Exactly what a request asks, which no fact holds. The hash of the request says which card is meant. */
export function useDecisionCard(approvalId: string, argsHash: string | null, enabled: boolean) {
  return useQuery({
    queryKey: ["decision-card", approvalId, argsHash],
    queryFn: ({ signal }) => call("readDecisionCard", { path: { approvalId }, signal }),
    enabled,
    retry: false,
    gcTime: 0,
  });
}

/** What `always` would grant for a request. The hash of what was shown says which rule is meant. */
export function useStandingRule(approvalId: string, argsHash: string | null, enabled: boolean) {
  return useQuery({
    queryKey: ["standing-rule", approvalId, argsHash],
    queryFn: ({ signal }) => call("readStandingRule", { path: { approvalId }, signal }),
    enabled,
  });
}

/** Packs that were made of a thread. The number of facts about evidence says which list is meant. */
export function usePacks(threadId: string, known: number) {
  return useQuery({
    queryKey: ["packs", threadId, known],
    queryFn: ({ signal }) => call("listEvidence", { query: { threadId, limit: PAGE_ROWS }, signal }),
    select: (page) => page.items,
    placeholderData: (before) => before,
  });
}

/** How far the pack of a thread is, while one is made; an answer of an earlier one is never shown. */
export function usePackProgress(threadId: string) {
  return useQuery({
    queryKey: ["pack-progress", threadId],
    queryFn: ({ signal }) => call("readEvidenceProgress", { path: { threadId }, signal }),
    refetchInterval: PROGRESS_PAUSE_MS,
    retry: false,
    gcTime: 0,
  });
}

export function useAgents() {
  return useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => call("listAgents", { signal }),
    staleTime: 60_000,
  });
}

/** Whether the Edge is well, asked often enough that nobody works for long on a page that cannot save. */
export function useHealth() {
  return useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => readHealth(signal),
    refetchInterval: HEALTH_PAUSE_MS,
  });
}

/** Who writes a thread if that is not this Edge, so that only there it can be changed; null while that is not known. */
export function useOtherWriter(threadId: string): string | null {
  const writer = useThread(threadId).data?.runtimeId;
  const own = useHealth().data?.details?.runtimeId;
  return writer == null || own === undefined || writer === own ? null : writer;
}

export function useProjects() {
  return useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) => call("listProjects", { query: { limit: PAGE_ROWS }, signal }),
    select: (page) => page.items,
  });
}

/** Runs that wait on a thread, next first. The turn that runs and their statuses say which queue is meant. */
export function useQueue(threadId: string, activeTurnId: string | null, statuses: string[]) {
  return useQuery({
    queryKey: ["queue", threadId, statuses.join(), activeTurnId],
    queryFn: ({ signal }) => call("readQueue", { path: { threadId }, signal }),
    enabled: statuses.length > 0,
    placeholderData: (before) => before,
  });
}

import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Suspense, useId } from "react";

import type { ProjectionState } from "../../api/generated/projection";
import { Refusal, wordsOf } from "../../api/refusal";
import { SCREENS } from "../../app/screens";
import { personText } from "../../approval/request";
import { TimeMachineContext, useTimeMachine } from "../../state/moments";
import { useThread } from "../../state/queries";
import { useThreadStream } from "../../state/thread-stores";
import { buttonClass, EmptyState, Spinner, StatusBadge, Tabs } from "../../ui";
import { MomentBar, MomentMissing } from "../timeline/MomentBar";
import { HydrationNotice, RemovalNotice } from "./notices";
import styles from "./Thread.module.css";

/** One thread: asked for first, so that one which does not exist is said to be so. */
export default function ThreadPage() {
  const { threadId } = useParams({ from: "/shell/threads/$threadId" });
  const thread = useThread(threadId);
  if (thread.error instanceof Refusal && thread.error.status > 0) return <NoThread error={thread.error} />;
  if (thread.isPending) return <Loading />;
  return <ThreadFrame key={threadId} threadId={threadId} />;
}

function NoThread({ error }: { error: Refusal }) {
  return (
    <EmptyState icon="unknown" title={error.status === 410 ? "This thread was deleted" : "Thread not found"}>
      <p>{wordsOf(error)}</p>
      <Link to="/" className={buttonClass("plain")}>
        Go to the home page
      </Link>
    </EmptyState>
  );
}

function ThreadFrame({ threadId }: { threadId: string }) {
  const { at, tab } = useSearch({ from: "/shell/threads/$threadId" });
  const machine = useTimeMachine(threadId, at, useThreadStream(threadId));
  const { state, live } = machine;
  if (state === null && machine.error !== null) return <MomentMissing machine={machine} />;
  if (state === null) return <Loading />;
  return (
    <TimeMachineContext value={machine}>
      <div className={styles.page}>
        <Head threadId={threadId} state={state} />
        {!live && <MomentBar compact={tab === "timeline"} />}
        <HydrationNotice hydration={state.hydration} />
        <RemovalNotice threadId={threadId} />
        <Screens threadId={threadId} state={state} live={live} />
      </div>
    </TimeMachineContext>
  );
}

function Head({ threadId, state }: { threadId: string; state: ProjectionState }) {
  const row = useThread(threadId).data;
  return (
    <header className={styles.head}>
      <h1 className={styles.title} dir="auto">
        {state.title ?? row?.title ?? threadId}
      </h1>
      <StatusBadge status={state.runtime.status} />
      <span className={styles.space} />
      {row?.parentThreadId != null && row.by != null && (
        <span className={styles.agent} dir="auto">
          <Link to="/threads/$threadId" params={{ threadId: row.parentThreadId }}>
            Forked
          </Link>
          {` by ${personText(row.by)}`}
        </span>
      )}
      <span className={styles.agent}>
        {state.runtime.agentId ?? row?.agentId ?? "agent unknown"}
        {state.runtime.model != null && state.runtime.model !== state.runtime.agentId && ` · ${state.runtime.model}`}
      </span>
    </header>
  );
}

function Screens({ threadId, state, live }: { threadId: string; state: ProjectionState; live: boolean }) {
  const navigate = useNavigate();
  const panelId = useId();
  const { tab } = useSearch({ from: "/shell/threads/$threadId" });
  const screen = SCREENS.find(({ id }) => id === tab) ?? SCREENS[0];
  const tabs = SCREENS.map(({ id, title, icon, count }) => ({ id, title, icon, ...(count ? { count: count(state) } : {}) }));
  if (screen === undefined) return null;
  return (
    <>
      <Tabs
        label="Thread views"
        tabs={tabs}
        chosen={screen.id}
        panelId={panelId}
        onChoose={(id) => void navigate({ to: "/threads/$threadId", params: { threadId }, search: (before) => ({ ...before, tab: id }) })}
      />
      <div id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${screen.id}`} className={styles.panel}>
        <Suspense fallback={<Loading />}>
          <screen.Component threadId={threadId} state={state} live={live} />
        </Suspense>
      </div>
    </>
  );
}

function Loading() {
  return (
    <div className={styles.loading}>
      <Spinner label="Loading thread" />
    </div>
  );
}

import { useId, useState } from "react";

import type { ScreenProps } from "../../app/screens";
import { useMachine } from "../../state/moments";
import { Tabs } from "../../ui";
import styles from "./Diagnostics.module.css";
import { Latency } from "./Latency";
import { RawFacts } from "./RawFacts";
import { Remarks } from "./Remarks";
import { Spending } from "./Spending";
import { Wholeness } from "./Wholeness";

const PAGES = [
  { id: "overview", title: "Overview" },
  { id: "facts", title: "Raw facts" },
];

/** What is behind the other panels: remarks, whether the state is whole, figures, and the facts themselves. */
export default function Diagnostics({ threadId, state }: ScreenProps) {
  const [page, setPage] = useState("overview");
  const panelId = useId();
  const { index } = useMachine();
  return (
    <div className={styles.screen}>
      <Tabs label="Diagnostics" tabs={PAGES} chosen={page} onChoose={setPage} panelId={panelId} />
      <div id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${page}`} className={styles.panel}>
        {page === "facts" ? (
          <RawFacts threadId={threadId} until={index} />
        ) : (
          <div className={styles.overview} tabIndex={0} role="region" aria-label="Overview">
            <Remarks diagnostics={state.diagnostics} tools={state.tools} />
            <Wholeness threadId={threadId} hydration={state.hydration} readModel={state.readModel} until={index} />
            <Spending metrics={state.metrics} context={state.context} />
            <Latency threadId={threadId} tools={state.tools} until={index} />
          </div>
        )}
      </div>
    </div>
  );
}

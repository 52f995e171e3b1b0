import { useMemo, useState, useSyncExternalStore } from "react";

import type { ProjectionState } from "../../api/generated/projection";
import type { ScreenProps } from "../../app/screens";
import { NodeDetails, SidePanel } from "../../details";
import { EmptyState, Icon, type IconName } from "../../ui";
import { Canvas } from "./Canvas";
import { Filters } from "./Filters";
import styles from "./Graph.module.css";
import { GroupDetails } from "./GroupDetails";
import { kindOf } from "./kinds";
import { Outline } from "./Outline";
import { named } from "./titles";
import { useGraph, type Shown } from "./useGraph";

type View = "graph" | "outline";

/** What hangs on what: turns, tasks, teammates, calls and requests, as a picture or in words. */
export default function GraphScreen({ state: told, live }: ScreenProps) {
  // Text that streams changes no name, so only another message is looked at.
  const graph = useMemo(() => named(told), [told.graph, told.messages.length]);
  const state = { ...told, graph };
  const shown = useGraph(graph);
  const narrow = useNarrow();
  const [wanted, setWanted] = useState<View | null>(null);
  const [chosenId, setChosenId] = useState<string | null>(null);
  const view = wanted ?? (narrow ? "outline" : "graph");
  if (Object.keys(state.graph.nodes).length === 0) return <Nothing />;
  return (
    <div className={styles.screen}>
      <div className={styles.main}>
        <div className={styles.bar}>
          <Views view={view} onView={setWanted} />
          <Filters graph={state.graph} hiddenTypes={shown.hiddenTypes} onHide={shown.onHide} />
        </div>
        {view === "graph" ? (
          <Canvas graph={state.graph} shown={shown} chosenId={chosenId} onChoose={setChosenId} />
        ) : (
          <Outline shown={shown} chosenId={chosenId} onChoose={setChosenId} />
        )}
      </div>
      {chosenId !== null && <Chosen id={chosenId} state={state} live={live} shown={shown} onChoose={setChosenId} />}
    </div>
  );
}

function Nothing() {
  return (
    <EmptyState icon="graph" title="No activity yet">
      <p>Turns, tasks, teammates and tool calls appear here as they are recorded.</p>
    </EmptyState>
  );
}

const VIEWS: { id: View; title: string; icon: IconName }[] = [
  { id: "graph", title: "Graph", icon: "graph" },
  { id: "outline", title: "Outline", icon: "menu" },
];

function Views({ view, onView }: { view: View; onView: (view: View) => void }) {
  return (
    <div className={styles.views} role="group" aria-label="Show as">
      {VIEWS.map(({ id, title, icon }) => (
        <button key={id} type="button" className={styles.view} aria-pressed={view === id} onClick={() => onView(id)}>
          <Icon name={icon} size={14} />
          {title}
        </button>
      ))}
    </div>
  );
}

interface ChosenProps {
  id: string;
  state: ProjectionState;
  live: boolean;
  shown: Shown;
  onChoose: (id: string | null) => void;
}

function Chosen({ id, state, live, shown, onChoose }: ChosenProps) {
  const close = () => onChoose(null);
  const item = shown.forest.items.get(id);
  const node = state.graph.nodes[id];
  if (node !== undefined) {
    return (
      <SidePanel icon={kindOf(node.nodeType).icon} title={node.title} onClose={close}>
        <NodeDetails node={node} state={state} live={live} />
      </SidePanel>
    );
  }
  if (item === undefined) return null;
  return (
    <SidePanel icon="tool" title={`${item.childIds.length} tool calls`} onClose={close}>
      <GroupDetails group={item} items={shown.forest.items} onChoose={onChoose} />
    </SidePanel>
  );
}

const NARROW = window.matchMedia("(max-width: 800px)");

function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      NARROW.addEventListener("change", listener);
      return () => NARROW.removeEventListener("change", listener);
    },
    () => NARROW.matches,
  );
}

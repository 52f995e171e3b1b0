import { Background, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";

import "@xyflow/react/dist/base.css";

import type { Graph } from "../../api/generated/projection";
import { lookOf } from "../../ui";
import { BoxView } from "./BoxView";
import { CanvasTools } from "./CanvasTools";
import { Boxes, linesOf, pointOf, type Box } from "./flow";
import { LEAST_ZOOM, READABLE_ZOOM, viewOf, viewWith, type Frame } from "./framing";
import { LineLegend } from "./Filters";
import styles from "./Graph.module.css";
import { wordsOf } from "./kinds";
import { neighbourOf, type Direction } from "./neighbours";
import type { Row } from "./rows";
import type { Shown } from "./useGraph";

/** Boxes up to which all of a graph is worth showing at once. */
const FIT_ALL = 40;

/** Boxes up to which there is a map; it draws all of them, however few are on screen. */
const MOST_ON_A_MAP = 600;
const ARROWS: Record<string, Direction> = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const BOX_TYPES = { box: BoxView };
const HOW = "Graph. Arrow keys move between nodes, Enter opens one, Space collapses or expands it, plus and minus zoom, 0 fits all. The outline shows the same as text.";

export interface CanvasProps {
  graph: Graph;
  shown: Shown;
  chosenId: string | null;
  onChoose: (id: string) => void;
}

export function Canvas(props: CanvasProps) {
  return (
    <ReactFlowProvider>
      <Flow {...props} />
    </ReactFlowProvider>
  );
}

function Flow({ graph, shown, chosenId, onChoose }: CanvasProps) {
  const { forest, rows, places, onFold } = shown;
  const [activeId, setActiveId] = useState<string | null>(null);
  const [boxes] = useState(() => new Boxes());
  const flow = useReactFlow<Box>();
  const active = rows.find(({ item }) => item.id === activeId);
  const nodes = useMemo(() => boxes.of(rows, places, forest, { activeId, chosenId, onFold }), [boxes, rows, places, forest, activeId, chosenId, onFold]);
  const edges = useMemo(() => linesOf(graph, rows, forest, places), [graph, rows, forest, places]);
  const canvas = useRef<HTMLDivElement>(null);
  const frame = (): Frame => ({ width: canvas.current?.clientWidth ?? 0, height: canvas.current?.clientHeight ?? 0 });
  useSteadyView(shown, flow);
  useEffect(() => {
    // The panel that opened beside the canvas may stand where the box was.
    if (chosenId !== null) bringIn(chosenId, shown, flow, frame());
  }, [chosenId]);
  const goTo = (id: string | null) => {
    if (id === null) return;
    setActiveId(id);
    bringIn(id, shown, flow, frame());
  };
  const onFit = () => showAll(flow, shown, frame());
  const onKeyDown = (event: KeyboardEvent) => {
    const run = keysOf(event, { shown, active, flow, goTo, onChoose, onFit });
    if (run === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  };
  return (
    <div ref={canvas} className={styles.canvas}>
      <ReactFlow<Box>
        nodes={nodes}
        edges={edges}
        nodeTypes={BOX_TYPES}
        onlyRenderVisibleElements
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        disableKeyboardA11y
        deleteKeyCode={null}
        panActivationKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        zoomOnDoubleClick={false}
        panOnScroll
        minZoom={LEAST_ZOOM}
        maxZoom={1.6}
        tabIndex={0}
        aria-label={HOW}
        onKeyDown={onKeyDown}
        onNodeClick={(_, box) => {
          setActiveId(box.id);
          onChoose(box.id);
        }}
        onInit={(instance) => showLatest(instance, shown, frame())}
      >
        <Background gap={24} />
        {nodes.length <= MOST_ON_A_MAP && (
          <MiniMap pannable className={styles.minimap ?? ""} nodeClassName={(box) => `tone-${lookOf((box as Box).data.item.node?.status).tone}`} ariaLabel="Graph overview" />
        )}
      </ReactFlow>
      <LineLegend graph={graph} />
      <CanvasTools isTidy={shown.isTidy} onTidy={shown.onTidy} onFit={onFit} onLatest={() => showLatest(flow, shown, frame())} />
      <p className="visually-hidden" role="status">
        {active === undefined ? "" : `${wordsOf(active.item, forest)}${foldWords(active)}`}
      </p>
    </div>
  );
}

function foldWords({ open, item }: Row): string {
  if (open === null) return "";
  return open ? `, ${item.inside} below it` : `, collapsed, ${item.inside} inside`;
}

interface Keyed {
  shown: Shown;
  active: Row | undefined;
  flow: ReactFlowInstance<Box>;
  goTo: (id: string | null) => void;
  onChoose: (id: string) => void;
  onFit: () => void;
}

function keysOf({ key }: KeyboardEvent, { shown, active, flow, goTo, onChoose, onFit }: Keyed): (() => void) | undefined {
  const { rows, places, onFold } = shown;
  const arrow = Object.hasOwn(ARROWS, key) ? ARROWS[key] : undefined;
  if (arrow !== undefined) return () => goTo(active === undefined ? (latestRoot(rows)?.item.id ?? null) : neighbourOf(active.item.id, arrow, rows, places));
  const keys: Record<string, () => void> = {
    Enter: () => active !== undefined && onChoose(active.item.id),
    " ": () => active !== undefined && active.open !== null && onFold(active.item.id),
    Home: () => goTo(rows[0]?.item.id ?? null),
    End: () => goTo(rows.at(-1)?.item.id ?? null),
    "+": () => void flow.zoomIn(),
    "-": () => void flow.zoomOut(),
    "0": onFit,
  };
  return Object.hasOwn(keys, key) ? keys[key] : undefined;
}

function latestRoot(rows: Row[]): Row | undefined {
  return rows.findLast(({ depth }) => depth === 0);
}

/** All of a small graph; of a large one, where it goes on. */
function showLatest(flow: ReactFlowInstance<Box>, { rows, places }: Shown, frame: Frame): void {
  const from = rows.length <= FIT_ALL ? 0 : Math.max(rows.findLastIndex(({ depth }) => depth === 0) - FIT_ALL / 2, 0);
  const latest = rows.slice(from).flatMap(({ item }) => places.get(item.id) ?? []);
  void flow.setViewport(viewOf(latest, frame, READABLE_ZOOM));
}

function showAll(flow: ReactFlowInstance<Box>, { places }: Shown, frame: Frame): void {
  void flow.setViewport(viewOf([...places.values()], frame, LEAST_ZOOM));
}

/** Only as far as needed, so that what is on screen stays where it is. */
function bringIn(id: string, { places }: Shown, flow: ReactFlowInstance<Box>, frame: Frame): void {
  const place = places.get(id);
  if (place !== undefined) void flow.setViewport(viewWith(place, flow.getViewport(), frame));
}

/** After a fold the box that was folded is where it was, wherever the layout has put it. */
function useSteadyView({ places, asked }: Shown, flow: ReactFlowInstance<Box>): void {
  const before = useRef({ times: asked.times, places });
  useEffect(() => {
    const { times, places: old } = before.current;
    before.current = { times: asked.times, places };
    const [from, to] = [old.get(asked.about ?? ""), places.get(asked.about ?? "")];
    if (times === asked.times || from === undefined || to === undefined) return;
    const { x, y, zoom } = flow.getViewport();
    const [was, is] = [pointOf(from), pointOf(to)];
    void flow.setViewport({ x: x - (is.x - was.x) * zoom, y: y - (is.y - was.y) * zoom, zoom });
  }, [places, asked, flow]);
}

/**
 * The screens of a thread, in the order of their tabs. A screen is a folder under `screens/` whose
 * index exports a component by default; one line here makes it a tab. Each renders one state, live
 * or of a moment in the past, and cannot tell the difference but by `live`.
 */

import type { ComponentType, LazyExoticComponent } from "react";

import type { ProjectionState } from "../api/generated/projection";
import type { IconName } from "../ui";
import { lazyPart as lazy } from "./parts";

export interface ScreenProps {
  threadId: string;
  state: ProjectionState;
  /** False where the state is of a moment in the past: nothing can be said or decided there. */
  live: boolean;
}

export interface Screen {
  id: string;
  title: string;
  icon: IconName;
  Component: LazyExoticComponent<ComponentType<ScreenProps>>;
  /** A number beside the title, where it tells something. */
  count?: (state: ProjectionState) => number;
}

export const SCREENS: Screen[] = [
  { id: "conversation", title: "Conversation", icon: "message", Component: lazy(() => import("../screens/conversation")) },
  { id: "timeline", title: "Timeline", icon: "timeline", Component: lazy(() => import("../screens/timeline")) },
  { id: "graph", title: "Graph", icon: "graph", Component: lazy(() => import("../screens/graph")) },
  {
    id: "team",
    title: "Team",
    icon: "team",
    Component: lazy(() => import("../screens/team")),
    count: ({ actions }) => Object.values(actions).filter(({ status, subagentId }) => status === "pending" && subagentId != null).length,
  },
  {
    id: "artifacts",
    title: "Artifacts",
    icon: "artifact",
    Component: lazy(() => import("../screens/artifacts")),
    count: ({ artifacts }) => Object.keys(artifacts).length,
  },
  {
    id: "evidence",
    title: "Evidence",
    icon: "evidence",
    Component: lazy(() => import("../screens/evidence")),
    count: ({ evidence }) => Object.keys(evidence.items).length,
  },
  {
    id: "diagnostics",
    title: "Diagnostics",
    icon: "diagnostics",
    Component: lazy(() => import("../screens/diagnostics")),
    count: ({ diagnostics }) => diagnostics.errors + diagnostics.warnings,
  },
];

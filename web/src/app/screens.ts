/**
 * The screens of a thread, in the order of their tabs. A screen is a folder under `screens/` whose
 * index exports a component by default; one line here makes it a tab. Each renders one state, live
 * or of a moment in the past, and cannot tell the difference but by `live`.
 */

import { lazy, type ComponentType, type LazyExoticComponent } from "react";

import type { ProjectionState } from "../api/generated/projection";
import type { IconName } from "../ui";

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
];

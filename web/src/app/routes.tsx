import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";

import { onTokenChange, token } from "../api/auth";
import { Failure, Missing } from "./Failure";
import { part } from "./parts";
import { Shell } from "./Shell";

const root = createRootRoute({ notFoundComponent: Missing, errorComponent: Failure });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search: Record<string, unknown>): { next?: string } => optional("next", search.next),
  component: lazyRouteComponent(part(() => import("../screens/sign-in"))),
});

const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  beforeLoad: ({ location }) => {
    if (token() === null) throw redirect({ to: "/sign-in", search: location.href === "/" ? {} : { next: location.href } });
  },
});

const home = createRoute({
  getParentRoute: () => shell,
  path: "/",
  component: lazyRouteComponent(part(() => import("../screens/home"))),
});

const inbox = createRoute({
  getParentRoute: () => shell,
  path: "/inbox",
  component: lazyRouteComponent(part(() => import("../screens/inbox"))),
});

export interface ThreadSearch {
  /** The screen that is open; the first where none is named. */
  tab?: string;
  /** The number of a fact, its id, or a cursor: the thread is shown as it was then. */
  at?: string;
  /** The thing that is chosen on the screen, by its id. */
  item?: string;
}

const thread = createRoute({
  getParentRoute: () => shell,
  path: "/threads/$threadId",
  validateSearch: (search: Record<string, unknown>): ThreadSearch => ({ ...optional("tab", search.tab), ...optional("at", search.at), ...optional("item", search.item) }),
  component: lazyRouteComponent(part(() => import("../screens/thread"))),
});

export const router = createRouter({
  routeTree: root.addChildren([signIn, shell.addChildren([home, inbox, thread])]),
  defaultPreload: "intent",
  // Around each page, so that the frame stays when one fails.
  defaultErrorComponent: Failure,
  // Texts and nothing else, so that `?at=12` reads and writes as it looks.
  parseSearch: (query) => Object.fromEntries(new URLSearchParams(query)),
  stringifySearch: (search) => queryOf(new URLSearchParams(Object.entries(search).filter(([, value]) => typeof value === "string"))),
});

// A token that came or went changes which pages there are.
onTokenChange(() => void router.invalidate());

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

function optional<Name extends string>(name: Name, value: unknown): { [key in Name]?: string } {
  return typeof value === "string" && value !== "" ? ({ [name]: value } as { [key in Name]?: string }) : {};
}

function queryOf(parameters: URLSearchParams): string {
  return parameters.size === 0 ? "" : `?${parameters}`;
}

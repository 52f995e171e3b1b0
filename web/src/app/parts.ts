/**
 * Parts of the page that are fetched when they are first needed, or when nothing else is to be done:
 * a page that has them all goes on while its Edge is away. One that cannot be fetched fails alone,
 * with an error of its own, because a browser remembers the failure until the page is loaded again.
 */

import { lazy, type ComponentType, type LazyExoticComponent } from "react";

type Load<Module> = () => Promise<Module>;

const parts: Load<unknown>[] = [];

/** A file of the build did not come. */
export class NotLoaded extends Error {
  override name = "NotLoaded";
}

/** The same part, known to `fetchParts`. */
export function part<Module>(load: Load<Module>): Load<Module> {
  parts.push(load);
  return () =>
    load().catch((reason: unknown) => {
      throw new NotLoaded("This part of the page could not be loaded.", { cause: reason });
    });
}

export function lazyPart<Props>(load: Load<{ default: ComponentType<Props> }>): LazyExoticComponent<ComponentType<Props>> {
  return lazy(part(load)) as LazyExoticComponent<ComponentType<Props>>;
}

/** Fetch what has not been needed yet; what does not come now is asked for when it is needed. */
export function fetchParts(): void {
  const idle = window.requestIdleCallback ?? ((what: () => void) => setTimeout(what, 1));
  for (const load of parts) idle(() => void load().catch(() => undefined));
}

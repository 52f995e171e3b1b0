/** Keys that work everywhere but in a field, as one table; the help lists the same rows. */

import { useEffect } from "react";

export interface Shortcut {
  keys: string;
  does: string;
  run: () => void;
}

const PAUSE_MS = 900;

/** Two keys one after the other, as in `g h`, or one. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  useEffect(() => {
    let before = "";
    let timer = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const typed = before === "" ? event.key : `${before} ${event.key}`;
      const found = shortcuts.find((shortcut) => shortcut.keys === typed);
      window.clearTimeout(timer);
      before = found === undefined ? event.key : "";
      timer = window.setTimeout(() => (before = ""), PAUSE_MS);
      if (found === undefined) return;
      event.preventDefault();
      found.run();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [shortcuts]);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest("dialog") !== null);
}

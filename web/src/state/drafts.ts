/** What was typed and not sent, by thread, with what goes with it: it outlives a reload and a failure to send. */

import { useCallback, useState } from "react";

const PREFIX = "factwire.draft.";

export function useDraft(place: string): [string, (text: string) => void] {
  const [held, setHeld] = useState({ place, text: readDraft("text", place) ?? "" });
  if (held.place !== place) setHeld({ place, text: readDraft("text", place) ?? "" });
  const write = useCallback(
    (text: string) => {
      setHeld({ place, text });
      writeDraft("text", place, text);
    },
    [place],
  );
  return [held.text, write];
}

export type DraftPart = "text" | "files";

export function readDraft(part: DraftPart, place: string): string | null {
  return sessionStorage.getItem(keyOf(part, place));
}

export function writeDraft(part: DraftPart, place: string, value: string): void {
  if (value === "") sessionStorage.removeItem(keyOf(part, place));
  else sessionStorage.setItem(keyOf(part, place), value);
}

function keyOf(part: DraftPart, place: string): string {
  return `${PREFIX}${part}.${place}`;
}

/** Forget them all: somebody signs out, and the next one at this tab is somebody else. */
export function forgetDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}

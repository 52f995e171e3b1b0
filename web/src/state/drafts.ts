/** What was typed and not sent, by thread: it outlives a reload and a failure to send. */

import { useCallback, useState } from "react";

const PREFIX = "factwire.draft.";

export function useDraft(place: string): [string, (text: string) => void] {
  const key = PREFIX + place;
  const [held, setHeld] = useState({ key, text: sessionStorage.getItem(key) ?? "" });
  if (held.key !== key) setHeld({ key, text: sessionStorage.getItem(key) ?? "" });
  const write = useCallback(
    (text: string) => {
      setHeld({ key, text });
      if (text === "") sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, text);
    },
    [key],
  );
  return [held.text, write];
}

/** Forget them all: somebody signs out, and the next one at this tab is somebody else. */
export function forgetDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}

import { useEffect, useState } from "react";

import { scriptAddress } from "../api/trusted";
import type { DiffLine } from "./lines";
import type { Texts } from "./worker";
import address from "./worker.ts?worker&url";

/** The lines of a comparison; null until it is made. A worker that fails is thrown to the page. */
export function useComparison(before: string, after: string): DiffLine[] | null {
  const [made, setMade] = useState<{ lines: DiffLine[] } | { error: string } | null>(null);
  useEffect(() => {
    const worker = new Worker(scriptAddress(address), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<DiffLine[]>) => setMade({ lines: data });
    worker.onerror = ({ message }) => setMade({ error: message || "the comparison failed" });
    worker.postMessage({ before, after } satisfies Texts);
    setMade(null);
    return () => worker.terminate();
  }, [before, after]);
  if (made !== null && "error" in made) throw new Error(made.error);
  return made?.lines ?? null;
}

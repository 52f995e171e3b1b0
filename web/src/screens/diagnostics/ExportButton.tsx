import { useEffect, useRef, useState } from "react";

import { wordsOf } from "../../api/refusal";
import type { FactLog, FactRow } from "../../state/moments";
import { Button, toast } from "../../ui";
import { pagesOf } from "./search";

/** Save the facts that are listed, one JSON object a line, as any of Factwire's tools reads them. */
export function ExportButton({ threadId, log, rows }: { threadId: string; log: FactLog; rows: readonly FactRow[] }) {
  const [busy, setBusy] = useState(false);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const save = async () => {
    const stop = new AbortController();
    running.current = stop;
    setBusy(true);
    try {
      const parts: Blob[] = [];
      for await (const { found } of pagesOf(log, rows, stop.signal)) parts.push(new Blob(found.map(({ fact }) => `${JSON.stringify(fact)}\n`)));
      download(`${fileName(threadId)}.ndjson`, new Blob(parts, { type: "application/x-ndjson" }));
    } catch (error) {
      if (!stop.signal.aborted) toast(wordsOf(error));
    } finally {
      if (!stop.signal.aborted) setBusy(false);
    }
  };
  return (
    <Button size="small" icon="down" busy={busy} disabled={rows.length === 0} onClick={() => void save()}>
      Export as NDJSON
    </Button>
  );
}

function fileName(threadId: string): string {
  return `facts-${threadId.replace(/[^\w-]+/g, "_").slice(0, 80)}`;
}

function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read by the next turn; kept longer it would hold the memory.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

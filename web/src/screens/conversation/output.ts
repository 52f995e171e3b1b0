/**
 * Long output, read piece by piece: by range from a program's log where there is one, else from the
 * blob behind a ref, of which no more is fetched than is asked for.
 */

import { send } from "../../api/client";
import { OUTPUT_PAGE_BYTES } from "../../api/limits";

/** The next piece, or null at the end. */
export interface OutputReader {
  next(): Promise<string | null>;
  /** Whether the last piece is known to have been the last one. */
  ended(): boolean;
  close(): void;
}

export function logReader(runId: string, processId: string, stream: "stdout" | "stderr"): OutputReader {
  const decoder = new TextDecoder();
  let offset = 0;
  return {
    next: async () => {
      const answer = await send("readLogs", { path: { runId }, query: { processId, stream, offset, limit: OUTPUT_PAGE_BYTES } });
      const bytes = await answer.arrayBuffer();
      offset += bytes.byteLength;
      return bytes.byteLength === 0 ? null : decoder.decode(bytes, { stream: true });
    },
    // A program that runs may always say more.
    ended: () => false,
    close: () => undefined,
  };
}

export function blobReader(ref: string): OutputReader {
  const stop = new AbortController();
  let pieces: AsyncIterator<string> | undefined;
  let ended = false;
  return {
    next: async () => {
      pieces ??= piecesOf(await send("readBlob", { path: { ref }, signal: stop.signal }));
      const { done, value } = await pieces.next();
      ended = done === true || value.length < OUTPUT_PAGE_BYTES;
      return done === true ? null : value;
    },
    ended: () => ended,
    close: () => stop.abort(),
  };
}

/** Pieces of one size, however large those are that the network brings. */
async function* piecesOf(answer: Response): AsyncGenerator<string, void> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    held += value ?? "";
    for (; held.length >= OUTPUT_PAGE_BYTES; held = held.slice(OUTPUT_PAGE_BYTES)) yield held.slice(0, OUTPUT_PAGE_BYTES);
    if (done) break;
  }
  if (held !== "") yield held;
}

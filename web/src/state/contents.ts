/**
 * What is behind a ref, up to a bound. A ref names its content by hash, so what was read once is
 * true for ever; of what is longer no more is fetched than is shown.
 */

import { useQuery } from "@tanstack/react-query";

import { send } from "../api/client";

const KEPT_MS = 60_000;

export interface Content {
  bytes: Uint8Array<ArrayBuffer>;
  /** How many bytes there are in all; null where nobody says. */
  total: number | null;
  whole: boolean;
}

export function useContent(ref: string, most: number) {
  return useQuery({
    queryKey: ["content", ref, most],
    queryFn: ({ signal }) => readContent(ref, most, signal),
    staleTime: Infinity,
    gcTime: KEPT_MS,
  });
}

/** The text that bytes are in UTF-8; null where they are something else. */
export function textIn({ bytes, whole }: Content): string | null {
  if (bytes.includes(0)) return null;
  try {
    // A piece may end within a character; the whole may not.
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !whole });
  } catch {
    return null;
  }
}

async function readContent(ref: string, most: number, signal: AbortSignal): Promise<Content> {
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  const answer = await send("readBlob", { path: { ref }, signal: stop.signal });
  const declared = answer.headers.get("content-length");
  const { bytes, ended } = await upTo(most, answer);
  if (!ended) stop.abort();
  return { bytes, total: declared === null ? null : Number(declared), whole: ended };
}

async function upTo(most: number, answer: Response): Promise<{ bytes: Uint8Array<ArrayBuffer>; ended: boolean }> {
  const reader = answer.body?.getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done || value === undefined) return { bytes: joined(pieces, length), ended: true };
    pieces.push(value);
    length += value.byteLength;
    if (length > most) return { bytes: joined(pieces, length).slice(0, most), ended: false };
  }
}

function joined(pieces: Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}

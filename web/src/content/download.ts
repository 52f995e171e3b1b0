/** Saves bytes of the Edge as a file. They need the token, so a plain link would not do. */

/** How much of how much has come. */
export interface Progress {
  bytes: number;
  total: number | null;
}

export async function saved(answer: Response, name: string, tell: (progress: Progress) => void): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await new Response(counted(answer, tell)).blob());
  link.download = safeName(name);
  link.click();
  // A browser holds on to what it has begun to save, and has begun by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function counted(answer: Response, tell: (progress: Progress) => void): ReadableStream | null {
  const declared = answer.headers.get("content-length");
  const total = declared === null ? null : Number(declared);
  let bytes = 0;
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform: (piece, out) => {
      bytes += piece.byteLength;
      tell({ bytes, total });
      out.enqueue(piece);
    },
  });
  return answer.body?.pipeThrough(counting) ?? null;
}

/** Names come from agents: the last part of a path, of characters that every system takes. */
export function safeName(name: string): string {
  const last = name.split(/[\\/]/).at(-1) ?? "";
  const safe = last.replace(/[^\p{L}\p{N}._ -]/gu, "_").replace(/^\.+/, "_").slice(0, 120).trim();
  return safe === "" ? "content" : safe;
}

const UNITS = ["bytes", "kB", "MB", "GB"];

export function sizeWords(bytes: number): string {
  const power = bytes < 1_000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  const value = bytes / 1_000 ** power;
  return `${power === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[power]}`;
}

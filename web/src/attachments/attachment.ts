/** A file that goes with a message: stored first, and then named by its ref; no bytes travel in a fact. */

export interface Attachment {
  /** Tells two apart that have the same name. */
  id: string;
  name: string;
  mediaType: string;
  bytes: number;
  phase: "storing" | "stored" | "failed";
  ref: string | null;
  message: string | null;
}

/** One part of a message's input, as the Edge takes it. */
export type AssetPart = {
  type: "asset";
  kind: string;
  ref: string;
  name: string;
  bytes: number;
  mediaType?: string;
};

const KINDS = new Set(["image", "audio", "video"]);

/** What the browser says of the file; all that is no picture, sound or film is a document. */
function kindOf(mediaType: string): string {
  const family = mediaType.split("/", 1)[0] ?? "";
  return KINDS.has(family) ? family : "document";
}

/** The parts of a message; only what has a ref can be named. */
export function partsOf(attachments: Attachment[]): AssetPart[] {
  return attachments.flatMap(({ ref, name, bytes, mediaType }) =>
    ref === null ? [] : { type: "asset" as const, kind: kindOf(mediaType), ref, name, bytes, ...(mediaType === "" ? {} : { mediaType }) },
  );
}

const UNITS = ["B", "kB", "MB"];

export function sizeWords(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1_000 && unit < UNITS.length - 1; unit += 1) value /= 1_000;
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

/** What was kept of attachments; whatever is not of their shape is left out. */
export function readKept(text: string | null): Attachment[] {
  let kept: unknown;
  try {
    kept = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  return Array.isArray(kept) ? kept.filter(isStored) : [];
}

function isStored(value: unknown): value is Attachment {
  const { id, name, mediaType, bytes, phase, ref } = (value ?? {}) as Partial<Attachment>;
  return [id, name, mediaType, ref].every((field) => typeof field === "string") && typeof bytes === "number" && phase === "stored";
}

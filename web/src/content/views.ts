/**
 * How a content is shown, by what facts say it is. Nothing is guessed from a name or from bytes: a
 * type that is not in this table, or that nobody stated, can be downloaded and is not shown.
 */

export type ViewName = "markdown" | "json" | "image" | "text" | "none";

const EXACT: Record<string, ViewName> = {
  "text/markdown": "markdown",
  "application/json": "json",
  "image/png": "image",
  "image/jpeg": "image",
  "image/gif": "image",
  "image/webp": "image",
  "image/avif": "image",
  "image/svg+xml": "image",
  "application/javascript": "text",
  "application/typescript": "text",
  "application/xml": "text",
  "application/yaml": "text",
  "application/toml": "text",
  "application/sql": "text",
  "application/x-sh": "text",
  "application/x-ndjson": "text",
};

/** Kinds that are text by themselves, where no media type is stated. */
const TEXT_KINDS = new Set(["file", "code", "diff", "patch", "log"]);

export function viewOf(mediaType: string | null, kind: string): ViewName {
  if (mediaType === null) return TEXT_KINDS.has(kind) ? "text" : "none";
  const bare = (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase();
  if (Object.hasOwn(EXACT, bare)) return EXACT[bare] ?? "none";
  if (bare.endsWith("+json")) return "json";
  return bare.startsWith("text/") || bare.endsWith("+xml") ? "text" : "none";
}

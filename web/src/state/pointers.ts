/** JSON Pointers (RFC 6901): the keys from the root on. */
export function stepsOf(path: string): string[] {
  if (path === "") return [];
  if (!path.startsWith("/")) throw new PatchFailed(`${path} is not a JSON Pointer: it must start with a slash`);
  return path
    .slice(1)
    .split("/")
    .map((key) => (key.includes("~") ? key.replaceAll("~1", "/").replaceAll("~0", "~") : key));
}

/** An operation that cannot be carried out; nothing has changed. */
export class PatchFailed extends Error {
  override name = "PatchFailed";
}

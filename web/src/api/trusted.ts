/**
 * The one way in which an address becomes a script: a file of the build, for a worker. The page's
 * policy refuses every other string that would become code or markup, whoever wrote it.
 */

interface Policy {
  createScriptURL(address: string): unknown;
}

interface Trusting {
  trustedTypes?: { createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): Policy };
}

/** The name that the Edge's content security policy lets a policy have. */
const NAME = "factwire-files";

// Browsers that know no trusted types take the text itself.
const policy = (globalThis as Trusting).trustedTypes?.createPolicy(NAME, { createScriptURL: ensureBuilt });

/** The address of a file of the build, as `Worker` takes it. */
export function scriptAddress(address: string): string {
  return (policy?.createScriptURL(address) ?? ensureBuilt(address)) as string;
}

function ensureBuilt(address: string): string {
  const { origin, pathname } = new URL(address, location.href);
  const built = import.meta.env.DEV || pathname.startsWith("/assets/");
  if (origin !== location.origin || !built) throw new TypeError(`${address} is not a script of this page`);
  return address;
}

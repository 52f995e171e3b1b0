/**
 * The token: read once from the address's fragment, which no server is ever sent, and kept for this
 * tab alone. It goes nowhere but into the Authorization header of the Edge that served the page.
 */

const KEY = "factwire.token";
const listeners = new Set<() => void>();

export function token(): string | null {
  return sessionStorage.getItem(KEY);
}

export function signIn(value: string): void {
  sessionStorage.setItem(KEY, value);
  tell();
}

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  tell();
}

/** Call `listener` whenever the token comes or goes; the answer ends that. */
export function onTokenChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Take `#token=…` out of the address, so that it is in no bookmark and no screenshot. */
export function takeTokenFromAddress(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  if (given !== "") signIn(given);
}

function tell(): void {
  for (const listener of [...listeners]) listener();
}

/**
 * Notifications of the browser, once somebody has asked for them. They stand on lock screens, so
 * they name the thread and nothing of what is asked there.
 */

import { create } from "zustand";

const KEY = "factwire.notifications";
const TITLE = "Factwire: a decision is needed";

export type Notifying = "unavailable" | "off" | "on" | "blocked";

export const useNotifying = create<{ notifying: Notifying }>(() => ({ notifying: current() }));

/** Turn them on or off; the browser is asked for leave only here, after a click. */
export async function toggleNotifications(): Promise<void> {
  const wanted = current() !== "on";
  localStorage.setItem(KEY, wanted ? "on" : "off");
  if (wanted && Notification.permission === "default") await Notification.requestPermission();
  useNotifying.setState({ notifying: current() });
}

/** Tell of a request, unless the page is being looked at. The same request is told of once. */
export function notify(requestId: string, thread: string, open: () => void): void {
  if (current() !== "on" || document.hasFocus()) return;
  const shown = shownBy(() => new Notification(TITLE, { body: thread, tag: requestId }));
  if (shown === null) return;
  shown.onclick = () => {
    window.focus();
    open();
    shown.close();
  };
}

/** Browsers of phones know the word and refuse the deed; there the bell goes away. */
function shownBy(make: () => Notification): Notification | null {
  try {
    return make();
  } catch {
    useNotifying.setState({ notifying: "unavailable" });
    return null;
  }
}

function current(): Notifying {
  if (!("Notification" in window)) return "unavailable";
  if (localStorage.getItem(KEY) !== "on") return "off";
  return Notification.permission === "granted" ? "on" : "blocked";
}

import { useSyncExternalStore } from "react";

/** One clock for the page; it ticks slowly, since no more than minutes are shown. */
const TICK_MS = 20_000;
const listeners = new Set<() => void>();
let now = Date.now();
setInterval(() => {
  now = Date.now();
  for (const listener of listeners) listener();
}, TICK_MS);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** When something was, roughly; exactly on hover. Times order nothing, they only tell. */
export function Time({ at }: { at: string | null | undefined }) {
  const current = useSyncExternalStore(subscribe, () => now);
  const moment = at == null ? NaN : Date.parse(at);
  if (Number.isNaN(moment)) return <span>unknown</span>;
  return (
    <time dateTime={at ?? undefined} title={exact.format(moment)}>
      {relative(moment - Math.max(current, Date.now() - TICK_MS))}
    </time>
  );
}

function relative(difference: number): string {
  for (const [unit, length] of UNITS) {
    if (Math.abs(difference) >= length) return words.format(Math.round(difference / length), unit);
  }
  return "now";
}

/** How long something took, in the largest unit that tells enough. */
export function durationWords(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  return `${minutes} min ${Math.round((milliseconds % 60_000) / 1_000)} s`;
}

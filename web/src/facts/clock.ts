const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
const short = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const brief = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** A time of day to the millisecond, as the fact states it. */
export function clockWords(time: number): string {
  return Number.isNaN(time) ? "time unknown" : clock.format(time);
}

export function dayWords(time: number): string {
  return Number.isNaN(time) ? "" : day.format(time);
}

/** A day and a time to the second; a year that is not over goes without saying. */
export function momentWords(time: number): string {
  if (Number.isNaN(time)) return "time unknown";
  return (new Date(time).getFullYear() === new Date().getFullYear() ? brief : short).format(time);
}

import { useEffect, useState } from "react";

import { Time } from "../ui";

const SECOND = 1_000;
const HOUR = 3_600_000;

/** How long is left, to the second once that matters. Whether it is over, only a fact says. */
export function Countdown({ until }: { until: string }) {
  const end = Date.parse(until);
  const left = useLeft(end);
  if (Number.isNaN(end) || left > HOUR) return <Time at={until} />;
  if (left <= 0) return <span>past due by this clock, but not yet expired by the runtime</span>;
  return (
    <time role="timer" aria-live="off" dateTime={until}>
      in {clockWords(left)}
    </time>
  );
}

function useLeft(end: number): number {
  const [now, setNow] = useState(Date.now);
  const over = Number.isNaN(end) || now >= end;
  useEffect(() => {
    if (over) return undefined;
    const timer = setInterval(() => setNow(Date.now()), SECOND);
    return () => clearInterval(timer);
  }, [over]);
  return end - now;
}

function clockWords(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / SECOND);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

// Runs one reducer over one turn and prints one line of JSON.
//
// Only the reducer is timed: events are made anew before each run, and what came out is looked at
// afterwards. A short turn goes first, so that no run pays for loading and compiling code.

import { readFileSync } from "node:fs";
import { argv } from "node:process";

import { outcome, steps } from "./turn.mjs";

/**
 * `events(steps)` makes the stream in the library's form, `reduce(events)` resolves to
 * { state, updates } where `updates` counts the states that an app was shown, and
 * `contents(state)` gives { texts, calls } of the last one.
 */
export async function measure(library, { events, reduce, contents }) {
  const [deltas, tools, runs] = argv.slice(2).map(Number);
  await reduce(events(steps(100, 10)));
  const seconds = [];
  let last;
  for (let run = 0; run < runs; run++) {
    const stream = events(steps(deltas, tools));
    const start = performance.now();
    const { state, updates } = await reduce(stream);
    seconds.push((performance.now() - start) / 1000);
    last = { events: stream.length, updates, ...contents(state) };
  }
  const { texts, calls, ...counts } = last;
  const report = { library, version: version(library), ...counts, runs, seconds: median(seconds) };
  console.log(JSON.stringify({ ...report, ...outcome(texts, calls) }));
}

function version(library) {
  const manifest = new URL(`./node_modules/${library}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

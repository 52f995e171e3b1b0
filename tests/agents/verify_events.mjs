// Streams of events come in as one JSON array. For each, the verdict of AG-UI's own client goes out:
// null, or the rule that it breaks. Whatever the client would strip as not of the protocol is a
// problem too.

import { readFileSync } from "node:fs";

import { enforceEvents, verifyEvents } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";

const warnings = [];
console.warn = (text) => warnings.push(text);

const verdict = async (events) => {
  warnings.length = 0;
  try {
    await lastValueFrom(from(events).pipe(enforceEvents(false), verifyEvents(false), toArray()));
  } catch (error) {
    return String(error);
  }
  return warnings[0] ?? null;
};

const verdicts = [];
for (const events of JSON.parse(readFileSync(0, "utf8"))) verdicts.push(await verdict(events));
process.stdout.write(JSON.stringify(verdicts));

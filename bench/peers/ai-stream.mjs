// ai: readUIMessageStream over UI message chunks, every message that it yields taken.
//
// That is the way of programs that read a stream without a chat around it: terminals, servers,
// agents of agents. Each message that it yields is a deep copy.

import { readUIMessageStream } from "ai";

import { contents, events, source } from "./ai-chunks.mjs";
import { measure } from "./measure.mjs";

async function reduce(events) {
  const stream = source(events);
  let state;
  let updates = 0;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    state = message;
    updates++;
  }
  return { state, updates };
}

await measure("ai", { events, reduce, contents });

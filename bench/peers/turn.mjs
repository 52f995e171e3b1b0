// One turn of an agent, the same for every library and for bench/turns.py:
//
// - piece i of the text is `word{i} `;
// - a turn with t tool calls has t + 1 steps; step s says pieces ⌊s·d/(t+1)⌋ up to ⌊(s+1)·d/(t+1)⌋
//   of d as one message, and each step but the last then makes one call;
// - call s is `call_{s}` of the tool `search`, its arguments are {"query":"word{s}","limit":10} and
//   its result is the text `{s} matches for word{s}`.

import { createHash } from "node:crypto";

export const TOOL = "search";

export function steps(deltas, tools) {
  const count = tools + 1;
  return Array.from({ length: count }, (_, s) => ({
    messageId: `message_${s}`,
    pieces: pieces(Math.floor((s * deltas) / count), Math.floor(((s + 1) * deltas) / count)),
    call: s < tools ? call(s) : undefined,
  }));
}

function pieces(from, to) {
  return Array.from({ length: to - from }, (_, i) => `word${from + i} `);
}

function call(s) {
  const args = JSON.stringify({ query: `word${s}`, limit: 10 });
  return { id: `call_${s}`, args, result: `${s} matches for word${s}` };
}

/** What a reducer ended up with: texts in order, and calls as { id, args, result }. */
export function outcome(texts, calls) {
  const text = texts.join("");
  const lines = calls.map(({ id, args, result }) => `\n${id} ${args} ${result}`);
  const digest = createHash("sha256").update(text + lines.join("")).digest("hex");
  return { textLength: text.length, toolCalls: calls.length, digest };
}

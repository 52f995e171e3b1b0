// The turn as UI message chunks of ai, as a server's toUIMessageStream sends them for an agent that
// makes one call a step, and what to read from the UI message that they become.

import { TOOL } from "./turn.mjs";

export function events(steps) {
  return [
    { type: "start", messageId: "answer_1" },
    ...steps.flatMap((step) => [
      { type: "start-step" },
      ...text(step),
      ...(step.call ? toolCall(step.call) : []),
      { type: "finish-step" },
    ]),
    { type: "finish", finishReason: "stop" },
  ];
}

function text({ messageId, pieces }) {
  return [
    { type: "text-start", id: messageId },
    ...pieces.map((delta) => ({ type: "text-delta", id: messageId, delta })),
    { type: "text-end", id: messageId },
  ];
}

function toolCall({ id, args, result }) {
  const call = { toolCallId: id };
  return [
    { type: "tool-input-start", ...call, toolName: TOOL },
    { type: "tool-input-delta", ...call, inputTextDelta: args },
    { type: "tool-input-available", ...call, toolName: TOOL, input: JSON.parse(args) },
    { type: "tool-output-available", ...call, output: result },
  ];
}

/** A stream that hands out a chunk when it is asked for one. */
export function source(events) {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      if (next < events.length) controller.enqueue(events[next++]);
      else controller.close();
    },
  });
}

export function contents({ parts }) {
  const calls = parts.filter(({ type }) => type === `tool-${TOOL}`);
  return {
    texts: parts.filter(({ type }) => type === "text").map(({ text }) => text),
    calls: calls.map((part) => ({
      id: part.toolCallId,
      args: JSON.stringify(part.input),
      result: part.output,
    })),
  };
}

// @ag-ui/client: an agent whose run() emits the events, driven by runAgent().
//
// That is the way of every app, whatever its transport: HttpAgent too only supplies run(). The
// pipeline around it (compatibility, schema checks, chunks, verification, defaultApplyEvents)
// cannot be left out. The app listens to onMessagesChanged, as one that draws messages does.

import { AbstractAgent, EventType } from "@ag-ui/client";
import { from } from "rxjs";

import { measure } from "./measure.mjs";
import { TOOL } from "./turn.mjs";

const RUN = { threadId: "thread_1", runId: "run_1" };

class Replay extends AbstractAgent {
  constructor(events) {
    super({
      threadId: RUN.threadId,
      initialMessages: [{ id: "prompt_1", role: "user", content: "Look at every file." }],
    });
    this.events = events;
  }

  run() {
    return from(this.events);
  }
}

function events(steps) {
  return [
    { type: EventType.RUN_STARTED, ...RUN },
    ...steps.flatMap((step) => [...message(step), ...(step.call ? toolCall(step) : [])]),
    { type: EventType.RUN_FINISHED, ...RUN },
  ];
}

function message({ messageId, pieces }) {
  return [
    { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
    ...pieces.map((delta) => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta })),
    { type: EventType.TEXT_MESSAGE_END, messageId },
  ];
}

function toolCall({ messageId, call }) {
  const toolCallId = call.id;
  const start = { toolCallId, toolCallName: TOOL, parentMessageId: messageId };
  const result = { messageId: `result_${toolCallId}`, toolCallId, content: call.result };
  return [
    { type: EventType.TOOL_CALL_START, ...start },
    { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: call.args },
    { type: EventType.TOOL_CALL_END, toolCallId },
    { type: EventType.TOOL_CALL_RESULT, ...result, role: "tool" },
  ];
}

async function reduce(events) {
  const agent = new Replay(events);
  let updates = 0;
  await agent.runAgent({ runId: RUN.runId }, { onMessagesChanged: () => void updates++ });
  return { state: agent.messages, updates };
}

function contents(messages) {
  const said = messages.filter(({ role }) => role === "assistant");
  const results = new Map(
    messages.filter(({ role }) => role === "tool").map((m) => [m.toolCallId, m.content]),
  );
  const calls = said.flatMap(({ toolCalls }) => toolCalls ?? []);
  return {
    texts: said.map(({ content }) => content ?? ""),
    calls: calls.map((c) => ({ id: c.id, args: c.function.arguments, result: results.get(c.id) })),
  };
}

await measure("@ag-ui/client", { events, reduce, contents });

// ai: a chat that gets its answer through a transport, as useChat does.
//
// AbstractChat reduces and leaves it to the binding of a framework how a message is kept. This one
// keeps it as the binding for React does: a new list, a new message and new parts on every update,
// none of them deep copies.

import { AbstractChat } from "ai";

import { contents, events, source } from "./ai-chunks.mjs";
import { measure } from "./measure.mjs";

class Messages {
  status = "ready";
  error = undefined;
  messages = [];
  updates = 0;

  pushMessage = (message) => this.show([...this.messages, message]);
  popMessage = () => this.show(this.messages.slice(0, -1));
  replaceMessage = (index, message) => this.show(this.messages.with(index, this.snapshot(message)));
  snapshot = (message) => ({ ...message, parts: message.parts.map((part) => ({ ...part })) });

  show(messages) {
    this.messages = messages;
    this.updates++;
  }
}

class Chat extends AbstractChat {}

async function reduce(events) {
  const state = new Messages();
  const transport = { sendMessages: async () => source(events) };
  const chat = new Chat({ state, transport });
  await chat.sendMessage({ text: "Look at every file." });
  if (chat.error) throw chat.error;
  return { state: chat.lastMessage, updates: state.updates };
}

await measure("ai", { events, reduce, contents });

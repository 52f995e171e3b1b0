// Streams of chunks come in as one JSON array. For each, what the AI SDK's own reader makes of it
// goes out: the parts of its last message, or what is wrong with it.

import { readFileSync } from "node:fs";

import { readUIMessageStream, uiMessageChunkSchema } from "ai";

const schema = uiMessageChunkSchema();

const read = async (chunks) => {
  for (const chunk of chunks) {
    const verdict = await schema.validate(chunk);
    if (!verdict.success) return { problem: `${chunk.type}: ${verdict.error.message}` };
  }
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const errors = [];
  let message = { parts: [] };
  for await (const each of readUIMessageStream({ stream, onError: (e) => errors.push(String(e)) })) {
    message = each;
  }
  return { parts: message.parts, errors };
};

const given = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(await Promise.all(given.map(read))));

// Conversations come in as one JSON array, each an array of UI messages. For each, the AI SDK's
// verdict goes out: null, or what is wrong with it.

import { readFileSync } from "node:fs";

import { safeValidateUIMessages } from "ai";

const verdict = async (messages) => {
  const { success, error } = await safeValidateUIMessages({ messages });
  return success ? null : error.message;
};

const conversations = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(await Promise.all(conversations.map(verdict))));

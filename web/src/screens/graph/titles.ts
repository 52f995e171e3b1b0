/**
 * Nodes by what people call them. A turn is called after the words that it was asked with; where
 * all that facts give as a title is the name of their class, the kind of the node says more.
 */

import type { Graph, GraphNode, Message, ProjectionState } from "../../api/generated/projection";
import { kindOf } from "./kinds";

const CLASS_NAME = /^[a-z_]+(\.[a-z_]+)+$/;
/** Characters of a prompt that a box could ever show. */
const TITLE_CHARACTERS = 80;

export function named({ graph, messages }: ProjectionState): Graph {
  const prompts = promptsOf(messages);
  const nodes: Graph["nodes"] = {};
  for (const [id, node] of Object.entries(graph.nodes)) nodes[id] = CLASS_NAME.test(node.title) ? renamed(node, prompts) : node;
  return { ...graph, nodes };
}

function renamed(node: GraphNode, prompts: ReadonlyMap<string, string>): GraphNode {
  const asked = node.nodeType === "turn" ? prompts.get(node.nodeId.slice("turn:".length)) : undefined;
  return { ...node, title: asked ?? kindOf(node.nodeType).words };
}

function promptsOf(messages: readonly Message[]): Map<string, string> {
  const prompts = new Map<string, string>();
  for (const { role, turnId, parts } of messages) {
    if (role !== "user" || turnId == null || prompts.has(turnId)) continue;
    const text = parts.find((part) => part.type === "text");
    const line = text?.type === "text" ? text.text.trim().split("\n", 1)[0] : undefined;
    if (line) prompts.set(turnId, line.slice(0, TITLE_CHARACTERS));
  }
  return prompts;
}

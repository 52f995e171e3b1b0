/** Members, each below the one that it works for, as far as facts say so. */

import type { RosterNode } from "../../api/generated/projection";

export interface Member {
  node: RosterNode;
  depth: number;
}

export function membersOf(nodes: RosterNode[]): Member[] {
  const known = new Set(nodes.map(({ memberId }) => memberId));
  const below = new Map<string | null, RosterNode[]>();
  for (const node of nodes) {
    const above = node.parentId != null && known.has(node.parentId) && node.parentId !== node.memberId ? node.parentId : null;
    below.set(above, [...(below.get(above) ?? []), node]);
  }
  const members = new Map<string, Member>();
  // Ids come from agents: members that are each other's parents hang on nobody, and are listed last.
  for (const start of [below.get(null) ?? [], nodes]) addAll(start, below, members);
  return [...members.values()];
}

function addAll(start: RosterNode[], below: ReadonlyMap<string | null, RosterNode[]>, members: Map<string, Member>): void {
  const waiting = start.map((node) => ({ node, depth: 0 })).reverse();
  for (let member = waiting.pop(); member !== undefined; member = waiting.pop()) {
    const { node, depth } = member;
    if (members.has(node.memberId)) continue;
    members.set(node.memberId, member);
    waiting.push(...(below.get(node.memberId) ?? []).map((child) => ({ node: child, depth: depth + 1 })).reverse());
  }
}

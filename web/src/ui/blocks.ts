/**
 * Cuts markdown into blocks that can be rendered apart, so that text which grows at its end costs
 * its last block and not the whole. A cut is made only where no construct can reach across: at an
 * empty line outside a fence, before a line that neither is indented nor goes on with a list.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const GOES_ON = /^(?:\s|[-*+]\s|\d{1,9}[.)]\s|>|\|)/;
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

export function blocksOf(text: string): string[] {
  // A definition may be meant by any line before or behind it.
  if (DEFINITION.test(text)) return [text];
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  let gap = false;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (gap && fence === null && !GOES_ON.test(line) && line !== "") {
      blocks.push(block.join("\n"));
      block = [];
    }
    if (mark !== undefined) fence = fenceAfter(fence, mark, line);
    gap = line.trim() === "" && fence === null;
    block.push(line);
  }
  blocks.push(block.join("\n"));
  return blocks;
}

/** A fence is closed by its own character, at least as long, and nothing behind it. */
function fenceAfter(open: string | null, mark: string, line: string): string | null {
  if (open === null) return mark;
  const closes = mark[0] === open[0] && mark.length >= open.length && line.trim() === mark;
  return closes ? null : open;
}

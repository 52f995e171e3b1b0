/** How long, how often, how much: each number with its reason. */

/** The first wait before a lost stream is asked for again; short, since most losses are brief. */
export const FIRST_WAIT_MS = 250;

/** No wait is longer, so that a page left open is live again soon after the Edge is. */
export const LONGEST_WAIT_MS = 8_000;

/** A stream that has been away for longer shows its state as stale rather than as reconnecting. */
export const STALE_AFTER_MS = 6_000;

/** Cursors of deltas that are remembered, so that one which comes twice is applied once. */
export const CURSORS_REMEMBERED = 512;

/** Hidden pages get no animation frames; they apply what came about this often instead. */
export const HIDDEN_FRAME_MS = 250;

/** Events of this long are answered with one reading of the lists. */
export const LIST_PAUSE_MS = 150;

/** Rows of a list that are asked for at once. */
export const PAGE_ROWS = 100;

/** Bytes of a long output that are read at once: some thousand lines, drawn without a pause. */
export const OUTPUT_PAGE_BYTES = 262_144;

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

/** How often it is asked how far a pack is: often enough for a bar that moves, and no load. */
export const PROGRESS_PAUSE_MS = 500;

/** Rows of a list that are asked for at once. */
export const PAGE_ROWS = 100;

/** Bytes of a long output that are read at once: some thousand lines, drawn without a pause. */
export const OUTPUT_PAGE_BYTES = 262_144;

/** Facts of a thread that are asked for at once: the most that an Edge gives. */
export const FACT_PAGE = 1_000;

/** Facts of a thread that are listed, without their payloads, so that a browser's memory has a bound. */
export const FACTS_LISTED = 200_000;

/** New facts are read this long after the state says that there are some, so that many come at once. */
export const FACTS_PAUSE_MS = 250;

/** Moments of the past that are kept: enough to step back and forth, few enough for large states. */
export const MOMENTS_KEPT = 8;

/** Neighbours of a moment are fetched ahead only where the moment itself came this fast. */
export const PREFETCH_WITHIN_MS = 400;

/** The address follows a moment once nothing has moved for this long; browsers refuse many changes a second. */
export const ADDRESS_PAUSE_MS = 300;

/** No pause while playing is longer, whatever the facts' own times say. */
export const LONGEST_PAUSE_MS = 2_000;

/** Facts that are closer together than this are played in one step. */
export const PLAY_STEP_MS = 100;

/** How long each fact is shown where they are played one by one. */
export const PLAY_FACT_MS = 200;

/** Bytes of each side of a diff: more lines than anybody reads, compared in well under a second. */
export const DIFF_BYTES = 1_048_576;

/** Bytes of a picture or of formatted text that are read to be shown; what is longer is downloaded. */
export const VIEW_BYTES = 8_388_608;

/** Bytes by which it is told whether something is text before it is shown as such. */
export const TASTE_BYTES = 65_536;

/** Bytes of one attachment: what fits into a request's body as base64. */
export const ATTACHMENT_BYTES = 6_000_000;

/** Attachments of one message; more would hide the text that they go with. */
export const ATTACHMENTS = 20;

/** A search is asked once nobody has typed for this long. */
export const SEARCH_PAUSE_MS = 150;

/** A page loads itself again at most this often, where a part of it does not come. */
export const RELOADS_APART_MS = 20_000;

/** How often the Edge is asked whether it is well; a refused message asks at once. */
export const HEALTH_PAUSE_MS = 10_000;

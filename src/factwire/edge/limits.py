"""Every number that bounds one machine, each with its reason."""

from typing import Final

NAME_CHARACTERS: Final = 200
"""Characters of a name or a title."""

PROMPT_CHARACTERS: Final = 1_000_000
"""Characters of a prompt."""

FACTS_IN_A_BATCH: Final = 10_000
"""Facts that an outside runtime may send at once."""

INTAKES_IN_MEMORY: Final = 512
"""Threads of outside runtimes whose open calls and texts are in memory; others are read again."""

INTAKES_ON_DISK: Final = 10_000
"""Threads of outside runtimes whose unfinished texts are kept across a start, the last used."""

INTAKE_OPEN: Final = 4_096
"""Calls and approvals that an outside thread may have open, and ids and ends that are remembered of
it; a longer memory would be copied with every request."""

INTAKE_CHECKPOINT: Final = 1_000
"""Facts of an outside thread after which what is open in it is saved; no more are read again."""

INTAKE_TURN_FACTS: Final = 64
"""Facts of a request that are read or judged before others have the event loop."""

INTAKE_TURN_BYTES: Final = 16 * 1024
"""Bytes of facts that are judged before others have the event loop; a bigger fact is judged beside
it."""

FORKED_TEXT_CHARACTERS: Final = 16_000
"""Characters of one fact of a forked thread's history; a longer message is cut there."""

FORKED_VERSIONS: Final = 20
"""Versions of one artifact that a forked thread begins with, the latest."""

STOP_RUN_SECONDS: Final = 1.5
"""Seconds that runs have to end or pause during a stop; the next start handles the others."""

SETTLE_SECONDS: Final = 10.0
"""Seconds after which a request that wrote something no longer waits for the lists to show it."""

WAIT_SECONDS: Final = 60
"""Seconds that a request may wait for a decision or for the end of a run."""

EXACT_REQUESTS: Final = 1_000
"""Requests of outside runtimes that are kept in memory as they were sent, the latest."""

PREVIEWS: Final = 10
"""Previews that are served at the same time; each has its own port."""

PREVIEW_IDLE_SECONDS: Final = 30 * 60.0
"""Seconds without a request after which a preview stops."""

PREVIEW_CONNECTIONS: Final = 64
"""Connections to one preview at the same time; a page with many files opens a handful."""

PREVIEW_PIECE_BYTES: Final = 256 * 1024
"""Bytes of a file that are read and sent at once; no more is in memory, however long it is."""

PREVIEW_PATH_CHARACTERS: Final = 4_096
"""Characters of a path in a preview; no file has a longer one."""

PREVIEW_STOP_SECONDS: Final = 1
"""Whole seconds in which transfers of a stopped preview may end; then they are cut."""

EXPORTS_FOLLOWED: Final = 64
"""Evidence packs being created whose progress is tracked; each of them reads the journal."""

COMPRESSED_BYTES: Final = 1_024
"""Bytes from which a file of the workbench is sent compressed; below, it saves no packet."""

SPAN_CHARACTERS: Final = 200
"""Characters of a name or an attribute in a span; ids and names of tools are shorter."""

RECENT_REQUESTS: Final = 200
"""Approvals, the newest ones, among which a proposed rule is tried: some days of work, read in
a few milliseconds."""

RUNS_WAITING: Final = 100
"""Runs that may wait for a person at the same time: they do not count as active, but need memory,
and the time of the person who decides."""

RETENTION_STEP_FACTS: Final = 50_000
"""Facts that retention removes at once; whoever writes meanwhile waits for no more."""

RETENTION_HELD_NAMES: Final = 100
"""Reasons that an answer lists for what retention left alone."""

RETENTION_BATCH_FACTS: Final = 100
"""Facts about removals that are written at once; each has the row of a thread."""

MARKED_TURNS: Final = 256
"""Turns of a thread that name a worker or a task, of which the lists remember how they began."""

UPLOAD_BYTES: Final = 2 * 1024 * 1024
"""Bytes of lines that one upload to a Hub has, more or less."""

UPLOAD_ROWS: Final = 1_000
"""Removed facts, threads or refs of blobs that one upload to a Hub has."""

UPLOAD_SECONDS: Final = 60.0
"""How long an Edge waits for a Hub to answer."""

UPLOAD_PAUSE_SECONDS: Final = 0.5
"""The first pause after an upload that failed; each one is twice as long as the one before."""

UPLOAD_PAUSE_SECONDS_MOST: Final = 30.0
"""The longest pause after an upload that failed."""

UPLOAD_HOLD_FACTS: Final = 5_000_000
"""How many facts behind the head retention waits for a Hub; a Hub that is gone for good must not
fill the disk.
"""

UPLOAD_BLOBS_REMEMBERED: Final = 65_536
"""Blobs of which an Edge remembers that the Hub has them, so that it need not ask again."""

LINK_PAUSE_SECONDS: Final = 0.5
"""The first pause after the connection to a Hub was lost; each one is twice as long as the one
before."""

LINK_PAUSE_SECONDS_MOST: Final = 30.0
"""The longest pause before an Edge connects to its Hub again."""

LINK_STEADY_SECONDS: Final = 10.0
"""Seconds that a connection to a Hub must last for the next pause to be the first one again."""

LINK_HEARTBEAT_SECONDS: Final = 20.0
"""Seconds between two heartbeats of an Edge; its Hub doubts what it said after four of them."""

LINK_RESEND_SECONDS: Final = 30.0
"""Seconds after which the end of a task is sent again that the Hub has not acknowledged."""

LINK_FRAME_BYTES: Final = 64 * 1024
"""Bytes of a frame between an Edge and its Hub."""

LINK_ANSWER_BYTES: Final = 32 * 1024
"""Bytes of a relayed answer that go into a frame; a larger one is uploaded."""

LINK_UPLOAD_BYTES: Final = 7_000_000
"""Bytes of the largest answer that is relayed; in base64, it is as much as a Hub takes."""

LINK_ANSWERS_SECONDS: Final = 7 * 24 * 3_600
"""Seconds that an Edge keeps its whole answer to a relayed command, for when it is asked again."""

LINK_ANSWERS_BYTES: Final = 4 * 1024 * 1024
"""Bytes of answers to relayed commands that an Edge keeps, the newest; of all others it knows that
it has carried them out."""

LINK_ROUTE_BYTES: Final = 24 * 1024
"""Bytes of a supervisor's decision, as JSON, that the end of a task brings: with the summary at
four bytes a character, it fits into a frame. A longer one does not count."""

LINK_SUMMARY_CHARACTERS: Final = 8_000
"""Characters of an agent's last message that the end of a task brings; the thread has all of it."""

LINK_FILES_BYTES: Final = 6 * 1024
"""Bytes of the list of changed files that the end of a task brings; the diff has all of them."""

LINK_DIFF_BYTES: Final = 20 * 1024
"""Bytes of the diff that the end of a task brings, as far as the frame has room: what a reviewer
reads at once. The blob has all of it."""

HUB_TOKEN_SPARE_SECONDS: Final = 60.0
"""Seconds before its end that an access token of the Hub is replaced."""

HUB_FILE_SECONDS: Final = 2.0
"""Seconds between two looks whether this Edge has joined or left a Hub."""

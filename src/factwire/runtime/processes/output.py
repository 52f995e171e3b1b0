"""The way of output: bytes, text, redacted text, log, batches, feed.

A log is redacted before its first byte is written: offsets count bytes of what may be kept, so that
pieces, log and ref agree about them. Past the cap, text goes to the log alone. Nothing here grows
with the output of a program: pieces that wait for their reader are bounded by the cap, those of a
protocol by making the program wait.
"""

import asyncio

from factwire.facts.delta_redaction import DeltaRedactor
from factwire.runtime.processes.batches import Batch, Batches, Stream
from factwire.runtime.processes.feed import Feed
from factwire.runtime.processes.log import ProcessLog
from factwire.runtime.processes.pipes import ReadPipe
from factwire.runtime.processes.spec import InputPiece, OutputPiece
from factwire.runtime.processes.text import Utf8Text, whole_characters

Event = OutputPiece | InputPiece


class Output:
    """Both streams of one process; without a log, it is a protocol."""

    def __init__(
        self,
        feed: Feed[Event],
        *,
        log: ProcessLog | None,
        cap: int,
        batch_seconds: float,
        batch_bytes: int,
    ) -> None:
        self._feed = feed
        self._log = log
        self._left = cap
        self._cut: dict[Stream, int] = {}
        self._redactor = DeltaRedactor()
        self._batches = Batches(seconds=batch_seconds, size=batch_bytes)
        self._timer: asyncio.TimerHandle | None = None

    async def pump(self, pipe: ReadPipe, stream: Stream) -> None:
        """Take all of a pipe; returns at its end."""
        text = Utf8Text()
        try:
            while data := await pipe.read():
                await self._take(stream, text.feed(data))
            await self._take(stream, text.end(), last=True)
        finally:
            pipe.close()

    async def finish(self) -> None:
        """Tell the rest, and where what was cut off is."""
        self._flush()
        for stream, offset in self._cut.items():
            if self._log is not None:
                written = self._log.sizes[stream]
                ref = await self._log.move(stream)
                piece = OutputPiece(
                    stream=stream,
                    offset=offset,
                    text="",
                    truncated=True,
                    bytes_written=written,
                    ref=ref,
                )
                self._feed.put(piece)

    async def _take(self, stream: Stream, text: str, *, last: bool = False) -> None:
        if self._log is None:
            # Whoever speaks a protocol waits for what was said.
            self._show(stream, text.encode())
            self._flush()
            await self._feed.room()
            return
        shown, _ = self._redactor.feed(stream, text)
        if last:
            shown += self._redactor.flush(stream)[0]
        data = shown.encode()
        if data:
            await self._log.append(stream, data)
            self._show_capped(stream, data)

    def _show_capped(self, stream: Stream, data: bytes) -> None:
        if stream in self._cut:
            return
        fits = whole_characters(data, self._left)
        self._left -= fits
        self._show(stream, data[:fits])
        if fits == len(data):
            return
        # One byte more than the cap on either stream ends both: the order stays true.
        self._left = 0
        self._flush()
        offset = self._batches.offsets[stream]
        self._cut[stream] = offset
        self._feed.put(OutputPiece(stream=stream, offset=offset, text="", truncated=True))

    def _show(self, stream: Stream, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._tell(self._batches.add(stream, data, loop.time()))
        due = self._batches.due
        if due is not None and self._timer is None:
            self._timer = loop.call_at(due, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell(self._batches.flush())

    def _tell(self, batches: list[Batch]) -> None:
        for batch in batches:
            piece = OutputPiece(stream=batch.stream, offset=batch.offset, text=batch.text)
            self._feed.put(piece, len(batch.text))
        if batches and self._timer is not None and self._batches.due is None:
            self._timer.cancel()
            self._timer = None

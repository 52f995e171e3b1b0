"""`FrameEncoder`: the facts of one selection as messages, and messages as frames of a wire.

Readers with the same selection share one channel, and the same bytes serve all of them: a WebSocket
frame from a server is not masked and its header follows from its length alone. The stored bytes of
a fact are set into its message as they are; nothing is encoded again. A filter looks at the type
and the scope of the envelope, so that it means what the reader sees. The journal's own index has
only the ids that a fact carries itself: what is stored is read by all keys that such a fact can
have, so that a read costs what it finds, and then looked at as what is live.
"""

import re
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, Literal, Protocol

import msgspec

from factwire.facts import Fact
from factwire.journal import Cursor, FactBatch, Filter
from factwire.journal.cursor import MARK
from factwire.journal.filter import CLASS_MARK, id_key
from factwire.serving.envelopes import (
    Envelope,
    PlaceOf,
    ThreadsOf,
    View,
    encode_frame,
    has_no_place,
    has_no_threads,
)
from factwire.serving.streams.journal_feed import DecodedBatch

Face = Literal["events", "facts"]
Wire = Literal["socket", "sse"]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is read; `types` are types of envelopes and stand for all below them, as classes do."""

    face: Face
    view: View = "runtime"
    filter: Filter | None = None
    types: tuple[str, ...] = ()

    @property
    def stored_filter(self) -> Filter | None:
        """The part of the filter that the keys of a fact answer exactly."""
        if self.filter is None:
            return None
        stored = msgspec.structs.replace(self.filter, project=None, run=None)
        return None if stored == Filter() else stored

    def wants(self, name: str) -> bool:
        """Whether a type of envelope is among those named."""
        return not self.types or any(
            name == wanted or name.startswith(f"{wanted}.") for wanted in self.types
        )


_SHORT: Final = 126
_LONG: Final = 1 << 16
_FINAL: Final = 0x80
_TEXT: Final = 0x81
_MORE: Final = 0x00
_SHORT_HEADER: Final = Struct(">BB").pack
_MIDDLE_HEADER: Final = Struct(">BBH").pack
_LONG_HEADER: Final = Struct(">BBQ").pack

_is_plain: Final = re.compile(rb"[A-Za-z0-9_.-]+").fullmatch
"""Whether JSON writes a text in one way only."""

COMMENT: Final = b":\n\n"
"""What keeps an idle event stream from looking dead."""


def text_frame(message: bytes) -> bytes:
    """A whole WebSocket text message, unmasked, in one frame."""
    return text_header(len(message)) + message


def text_header(size: int, kind: int = _TEXT) -> bytes:
    """What stands before so many bytes of a WebSocket text message, in one frame as a rule."""
    if size < _SHORT:
        return _SHORT_HEADER(kind, size)
    if size < _LONG:
        return _MIDDLE_HEADER(kind, 126, size)
    return _LONG_HEADER(kind, 127, size)


def text_fragments(message: bytes, size: int) -> list[bytes]:
    """A WebSocket text message in frames of at most `size` bytes of it.

    A ping may stand between two frames, never inside of one; so whoever writes a big message with
    pauses writes it in these.
    """
    if len(message) <= size:
        return [text_frame(message)]
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    kinds = [_TEXT & ~_FINAL, *[_MORE] * (len(parts) - 2), _MORE | _FINAL]
    return [text_header(len(part), kind) + part for kind, part in zip(kinds, parts, strict=True)]


class FrameReader:
    """Makes messages of frames again, for a server that frames them itself."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, frames: bytes) -> Iterator[bytes]:
        """The messages that are complete with these frames, as this module made them."""
        at = 0
        while at < len(frames):
            kind, size, at = frames[at], frames[at + 1], at + 2
            if size >= _SHORT:
                width = 2 if size == _SHORT else 8
                size, at = int.from_bytes(frames[at : at + width], "big"), at + width
            self._parts.append(frames[at : at + size])
            at += size
            if kind & _FINAL:
                yield b"".join(self._parts)
                self._parts.clear()


def server_sent_event(name: str, message: bytes, cursor: str | None = None) -> bytes:
    """An event whose id is the cursor; the message is JSON and so has no line end in it."""
    place = f"id: {cursor}\n" if cursor is not None else ""
    # A class is any text, and a line end in it would begin another field.
    shown = " ".join(name.splitlines())
    return b"%sevent: %s\ndata: %s\n\n" % (place.encode(), shown.encode(), message)


class EnvelopeBuilder(Protocol):
    """The envelope of a fact in one view; None where the view has no word for it."""

    def __call__(
        self, seq: int, fact: Fact, view: View = "runtime", *, epoch: str
    ) -> Envelope | None: ...


class StreamMessage(msgspec.Struct, frozen=True, gc=False):
    """One fact, told; `name` is its type."""

    seq: int
    name: str
    text: bytes


class EncodedFrames(msgspec.Struct, frozen=True, gc=False):
    """Frames of one batch, joined; `last` is the seq that a reader has then come to."""

    data: bytes
    last: int


class FrameEncoder:
    """Tells facts in the words of one selection."""

    def __init__(
        self,
        selection: Selection,
        *,
        envelope_of: EnvelopeBuilder,
        place_of: PlaceOf = has_no_place,
        threads_of: ThreadsOf = has_no_threads,
    ) -> None:
        self.selection = selection
        self._threads_of = threads_of
        self.stored_filter = selection.stored_filter
        self._envelope_of = envelope_of
        self._place_of = place_of
        self._project = selection.filter.project if selection.filter else None
        self._run = selection.filter.run if selection.filter else None

    def build_replay_filter(self) -> Filter | None:
        """What the journal is asked for: all that is selected, as it is placed now, and little
        else.
        """
        if self._run is not None:
            keys = _list_run_keys(self._run)
        elif self._project is not None:
            threads = self._threads_of(self._project)
            keys = {id_key("project", self._project), *(id_key("thread", each) for each in threads)}
        else:
            return self.stored_filter
        return msgspec.structs.replace(self.stored_filter or Filter(), any_keys=frozenset(keys))

    def narrow(self, batch: FactBatch) -> FactBatch:
        """A batch without the lines that cannot be about the run: an envelope names a run by the id
        of the run or of its turn, and what the two have in common stands in the line as it is.
        """
        common = (self._run or "").removeprefix("run_").encode()
        if not _is_plain(common):
            return batch
        kept = [
            (seq, line)
            for seq, line in zip(batch.seqs, batch.lines(), strict=True)
            if common in line
        ]
        return FactBatch(
            epoch=batch.epoch,
            first=batch.first,
            last=batch.last,
            seqs=[seq for seq, _ in kept],
            data=b"".join(line + b"\n" for _, line in kept),
        )

    def select(self, batch: DecodedBatch, positions: Sequence[int]) -> Sequence[int]:
        """Those of these positions whose envelopes are of the project and of the run."""
        project, run = self._project, self._run
        if project is None and run is None:
            return positions
        scopes = batch.list_scopes(self._place_of)
        return [
            position
            for position in positions
            if (project is None or scopes[position].project_id == project)
            and (run is None or scopes[position].run_id == run)
        ]

    def encode_messages(
        self, batch: DecodedBatch, positions: Sequence[int]
    ) -> Iterator[StreamMessage]:
        """What is told of the facts at these positions."""
        if self.selection.face == "facts":
            return _encode_facts(batch, positions)
        return self._encode_envelopes(batch, positions)

    def _encode_envelopes(
        self, batch: DecodedBatch, positions: Sequence[int]
    ) -> Iterator[StreamMessage]:
        raw, facts, selection = batch.raw, batch.facts, self.selection
        for position in positions:
            seq = raw.seqs[position]
            envelope = self._envelope_of(seq, facts[position], selection.view, epoch=raw.epoch)
            if envelope is not None and selection.wants(envelope.type):
                yield StreamMessage(seq, envelope.type, encode_frame(envelope))

    def encode_frames(
        self, wire: Wire, batch: DecodedBatch, positions: Sequence[int]
    ) -> EncodedFrames:
        """What is told of the facts at these positions, as it goes over a wire."""
        framed: list[bytes] = []
        last, epoch = 0, batch.raw.epoch
        for message in self.encode_messages(batch, positions):
            last = message.seq
            framed.append(
                text_frame(message.text)
                if wire == "socket"
                else server_sent_event(message.name, message.text, str(Cursor(epoch, last)))
            )
        return EncodedFrames(b"".join(framed), last)


def _list_run_keys(run: str) -> set[str]:
    """The keys of which a fact about a run has one: its own id, that of its turn, or the class of
    those that name the turn in another field.
    """
    bare = run.removeprefix("run_")
    turns = {f"trn_{bare}", bare} if bare != run else set[str]()
    named = {id_key("run", run), *(id_key("turn", turn) for turn in turns)}
    return {*named, f"{CLASS_MARK}queue.changed"}


def _encode_facts(batch: DecodedBatch, positions: Sequence[int]) -> Iterator[StreamMessage]:
    seqs, lines = batch.raw.seqs, batch.lines
    # What `str(Cursor(epoch, seq))` gives; here it is written for every fact.
    begin = b'{"cursor":"%s%s.' % (MARK.encode(), batch.raw.epoch.encode())
    for position in positions:
        seq = seqs[position]
        text = b'%s%016d","seq":%d,"fact":%s}' % (begin, seq, seq, lines[position])
        yield StreamMessage(seq, "fact", text)


def encode_checkpoint(wire: Wire, cursor: Cursor) -> bytes:
    """Says how far a reader has come although nothing was there for it."""
    text = b'{"type":"checkpoint","cursor":"%s","seq":%d}' % (str(cursor).encode(), cursor.seq)
    return frame_message(wire, "checkpoint", text, cursor)


_EVENT_NAMES: Final = {"error": "stream.error"}
"""Messages whose event has another name: `error` is what a browser calls a lost connection."""


def frame_message(wire: Wire, name: str, text: bytes, cursor: Cursor | None) -> bytes:
    """One message as it goes over a wire."""
    if wire == "socket":
        return text_frame(text)
    event = _EVENT_NAMES.get(name, name)
    return server_sent_event(event, text, None if cursor is None else str(cursor))

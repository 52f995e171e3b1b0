"""`StreamPosition`: where one reader stands in a stream, and what each message means; no I/O.

The cursor moves with every message that was handed on, checkpoints included. Whoever is cut comes
again with it, and the Edge goes on exactly behind it: nothing is missing, nothing comes twice.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

import msgspec

from factwire.client.edge_address import Query, path_of, query_of
from factwire.client.errors import CursorLost, EdgeProblem, StreamEnded, UnreadableAnswer
from factwire.client.resources import Event, HubFrame, PlacedFact, ThreadDelta, ThreadSnapshot
from factwire.facts import FactError
from factwire.facts.shapes import decode_object, decode_plain, read_checked_fact

T = TypeVar("T")

FINAL: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010, 4401})
"""Close codes after which the same stream would only be closed again."""

LOST: Final = {4400: "cursor_invalid", 4410: "cursor_expired"}
"""Close codes that mean that the cursor is of no use → what that is called."""


class _Head(msgspec.Struct):
    """What tells one message from another."""

    type: str | None = None
    cursor: str | None = None


class _ErrorDetails(msgspec.Struct, rename="camel"):
    snapshot_required: bool = False
    snapshot_url: str | None = None
    as_of_cursor: str | None = None


class _ErrorPayload(msgspec.Struct, rename="camel"):
    code: str
    message: str
    trace_id: str | None = None
    details: _ErrorDetails | None = None
    snapshot_required: bool = False


class _ErrorFrame(msgspec.Struct):
    payload: _ErrorPayload


class _FactFrame(msgspec.Struct):
    cursor: str
    seq: int
    fact: msgspec.Raw


_HEAD: Final = msgspec.json.Decoder(_Head)
_ERROR: Final = msgspec.json.Decoder(_ErrorFrame)
_FACT: Final = msgspec.json.Decoder(_FactFrame)
_EVENT: Final = msgspec.json.Decoder(Event)
_FRAME: Final = msgspec.json.Decoder(HubFrame)
_SNAPSHOT: Final = msgspec.json.Decoder(ThreadSnapshot)
_DELTA: Final = msgspec.json.Decoder(ThreadDelta)

Message = str | bytes
Read = Callable[[Message, str | None], T]
"""Reads a message, given the type that it says it has."""


class StreamPosition(Generic[T]):
    """One reader's way through a stream; `cursor` is where it would be resumed."""

    def __init__(
        self, path: str, query: Query, read: "Read[T]", *, cursor: str | None, now: bool = False
    ) -> None:
        self.path = path
        self.cursor = cursor
        self._query = query
        self._read = read
        self._now = now

    @property
    def is_awaiting_start(self) -> bool:
        """Whether the stream begins now, and the Edge has not said yet where that is."""
        return self._now and self.cursor is None

    @property
    def query(self) -> Query:
        """What to ask for, from where this reader stands."""
        if self.cursor is not None:
            return (*self._query, ("cursor", self.cursor))
        return (*self._query, ("since", "now")) if self._now else self._query

    def take(self, message: Message) -> T | None:
        """What a message brings, None for one that only says how far the stream has come."""
        try:
            head = _HEAD.decode(message)
            if head.type == "error":
                raise _to_error(message)
            item = None if head.type == "checkpoint" else self._read(message, head.type)
        except (msgspec.DecodeError, UnicodeError, FactError) as error:
            raise UnreadableAnswer(
                f"{self.path}: a message of the stream cannot be read ({error}); the Edge may be a "
                "different version"
            ) from error
        self.cursor = head.cursor or self.cursor
        return item

    def handle_close(self, code: int, reason: str) -> None:
        """Raise what a close means, unless it means to come again."""
        if code in LOST:
            raise CursorLost(LOST[code], reason, snapshot_url=None, as_of_cursor=None)
        if code in FINAL:
            raise StreamEnded(code, reason)


class FramePosition(StreamPosition[HubFrame]):
    """One reader's way through what a Hub tells a person; `auth.ok`, which comes first, says where
    it begins.
    """

    def __init__(self, *, cursor: str | None) -> None:
        super().__init__("/client/ws", (), _read_frame, cursor=cursor, now=True)

    @property
    def query(self) -> Query:
        return () if self.cursor is None else (("cursor", self.cursor),)

    def take(self, message: Message) -> HubFrame | None:
        frame = super().take(message)
        if frame is None or frame.type != "auth.ok":
            return frame
        self.cursor = self.cursor or frame.payload["cursor"]
        return None


def position_in_events(
    *, cursor: str | None, now: bool, **wanted: str | tuple[str, ...] | None
) -> StreamPosition[Event]:
    """The way through events."""
    return StreamPosition(
        path_of("events"), query_of(**wanted), _read_event, cursor=cursor, now=now
    )


def position_in_facts(
    *, cursor: str | None, now: bool, **wanted: str | tuple[str, ...] | None
) -> StreamPosition[PlacedFact]:
    """The way through facts."""
    return StreamPosition(path_of("facts"), query_of(**wanted), _read_fact, cursor=cursor, now=now)


def position_in_projection(
    thread_id: str, *, cursor: str | None
) -> StreamPosition[ThreadSnapshot | ThreadDelta]:
    """The way through the states of a thread."""
    path = path_of("threads", thread_id, "projection", "stream")
    return StreamPosition(path, (), _read_change, cursor=cursor)


def read_placed_fact(message: Message) -> PlacedFact:
    """A fact with its place, as streams and pages have it."""
    frame = _FACT.decode(message)
    line = bytes(frame.fact)
    # A stored fact is one already; those of no thread have no sequence.
    fact = decode_plain(line) or read_checked_fact(decode_object(line), "facts")
    return PlacedFact(cursor=frame.cursor, seq=frame.seq, fact=fact)


def _read_event(message: Message, _: str | None) -> Event:
    return _EVENT.decode(message)


def _read_frame(message: Message, _: str | None) -> HubFrame:
    return _FRAME.decode(message)


def _read_fact(message: Message, _: str | None) -> PlacedFact:
    return read_placed_fact(message)


def _read_change(message: Message, kind: str | None) -> ThreadSnapshot | ThreadDelta:
    return (_SNAPSHOT if kind == "projection.snapshot" else _DELTA).decode(message)


def _to_error(message: Message) -> CursorLost | EdgeProblem:
    payload = _ERROR.decode(message).payload
    details = payload.details or _ErrorDetails()
    if not (details.snapshot_required or payload.snapshot_required):
        return EdgeProblem(503, payload.code, payload.message, trace_id=payload.trace_id)
    return CursorLost(
        payload.code,
        payload.message,
        snapshot_url=details.snapshot_url,
        as_of_cursor=details.as_of_cursor,
    )


def filter_names(names: Iterable[str] | None) -> tuple[str, ...] | None:
    """Names of a filter; a single text is one name, not its letters."""
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)

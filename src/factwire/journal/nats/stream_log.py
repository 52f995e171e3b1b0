"""A JetStream stream as a log of items that are written whole, in an order nobody can disturb.

    epoch      a life of the journal begins
    chunk      facts were committed
    record     a link of the chain without facts: something was removed
    kept       what a removal left of a range: the facts that stay, and each removed fact's id,
               place and digest, because an id is taken for ever
    floors     cursors below these seqs are expired; the catalogue rows of the threads concerned
    snapshot   derived state was saved

The stream is all there is; everything else, in memory or in a checkpoint, is derived from it. It is
set up so that an acknowledged item stays: files, replicas, nothing ever dropped.
"""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from factwire.journal.chunks import Chunk, Record
from factwire.journal.errors import (
    JournalCorrupt,
    JournalUnavailable,
    JournalUnwritable,
    JournalUrlError,
)
from factwire.journal.nats.server_connection import (
    ATTEMPT,
    Lost,
    NatsConnection,
    NatsMessage,
    RequestRefused,
    read_answer,
)
from factwire.journal.thread_catalogue import CatalogueRecord


class EpochStart(msgspec.Struct, frozen=True, kw_only=True):
    epoch: str


class RetiredFact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What stays of a removed fact."""

    id: str
    seq: int
    sequence: int | None
    digest: bytes


class KeptRange(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of `first`–`last`; `chunk` is None where no fact is."""

    first: int
    last: int
    chunk: Chunk | None
    retired: tuple[RetiredFact, ...]


class RaisedFloors(msgspec.Struct, frozen=True, kw_only=True):
    """Published before anything is removed, so that no reader resumes into a hole."""

    floor: int
    threads: tuple[CatalogueRecord, ...]


class SavedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as of `seq`."""

    thread_id: str
    kind: str
    seq: int
    data: bytes
    anchor: bytes


ItemBody = EpochStart | Chunk | Record | KeptRange | RaisedFloors | SavedSnapshot

_KINDS: Final[dict[type, str]] = {
    EpochStart: "epoch",
    Chunk: "chunk",
    Record: "record",
    KeptRange: "kept",
    RaisedFloors: "floors",
    SavedSnapshot: "snapshot",
}
_DECODERS: Final[dict[str, msgspec.msgpack.Decoder[ItemBody]]] = {
    name: msgspec.msgpack.Decoder[ItemBody](kind) for kind, name in _KINDS.items()
}
_encoder: Final = msgspec.msgpack.Encoder()
_DIGEST: Final = 32


def encode_item(body_of_item: ItemBody) -> tuple[str, bytes]:
    """The kind of an item and its body; a chunk brings its own hash, all others get one."""
    kind = _KINDS[type(body_of_item)]
    body = _encoder.encode(body_of_item)
    return kind, body if kind == "chunk" else sha256(body).digest() + body


def decode_item(kind: str, body: bytes) -> ItemBody | None:
    """What an item says; None for a kind that only a later version knows."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return None
    content = body if kind == "chunk" else body[_DIGEST:]
    if kind != "chunk" and sha256(content).digest() != body[:_DIGEST]:
        raise JournalCorrupt(f"an item of kind {kind} does not match its hash")
    try:
        return decoder.decode(content)
    except msgspec.DecodeError as error:
        raise JournalCorrupt(f"an item of kind {kind} cannot be read: {error}") from error


API: Final = "$JS.API"
HEADROOM: Final = 4096
"""Bytes of a message that are left for its headers."""

SMALLEST_PART: Final = 1024
"""Bytes of a part, however little the server takes."""

FETCH_MESSAGES: Final = 512
FETCH_BYTES: Final = 4 * 1024 * 1024
"""How much one request to the server brings at most."""

BATCH_MESSAGES: Final = 1000
"""Messages that the server takes as one atomic batch."""

_PART: Final = "Factwire-Part"
_NAME: Final = "Nats-Msg-Id"
_EXPECTED: Final = "Nats-Expected-Last-Sequence"
_MOVED: Final = frozenset({10071, 10158, 10164, 10201})
"""Errors that say: the stream ends elsewhere, or has a message of this name already."""

_GONE: Final = frozenset({10037, 10043, 10059})
"""Errors that say: no such message, or no such stream."""

_FULL: Final = frozenset({10023, 10028, 10047, 10077, 10122})
"""Errors that say: no room, in the stream, the account or the server."""

_BUSY: Final = 503
_NO_STREAM: Final = 10059


class StreamConflict(Exception):
    """The stream does not end where the writer believes, but at `last` where the server says so."""

    def __init__(self, description: str) -> None:
        number = description.rpartition(" ")[2]
        self.last = int(number) if number.isdecimal() else None
        super().__init__(description)


class StreamItem(msgspec.Struct, frozen=True, gc=False):
    """One item of the log: `at` is the stream sequence of its first part."""

    at: int
    parts: int
    kind: str
    name: str
    body: bytes

    @property
    def end(self) -> int:
        return self.at + self.parts - 1


class _Piece(msgspec.Struct, frozen=True, gc=False):
    at: int
    part: int
    parts: int
    kind: str
    name: str
    data: bytes


class StreamLog:
    """The items of one stream; `subject` takes the kind of an item as its last word."""

    def __init__(self, link: NatsConnection, stream: str, subject: str) -> None:
        self._link = link
        self.stream = stream
        self.subject = subject

    async def publish(
        self, items: Sequence[tuple[str, bytes]], *, name: str, expected: int
    ) -> list[StreamItem]:
        """Write items as one, right after the stream sequence `expected`.

        Raises `StreamConflict` when the stream ends elsewhere, `Lost` when no answer came, and
        `JournalUnwritable` when the server has no room.
        """
        cut = [(kind, self._split_body(body)) for kind, body in items]
        total = sum(len(parts) for _, parts in cut)
        if total > BATCH_MESSAGES:
            raise JournalUnwritable(
                f"the append needs {total} messages of the server's max_payload, but a batch can "
                f"have at most {BATCH_MESSAGES}; append fewer facts at once, or raise max_payload"
            )
        number = 0
        written: list[StreamItem] = []
        for kind, parts in cut:
            at = expected + 1 + number
            written.append(StreamItem(at, len(parts), kind, "" if number else name, b""))
            for place, part in enumerate(parts, 1):
                number += 1
                headers = _build_headers(name, expected, number, total)
                if len(parts) > 1:
                    headers[_PART] = f"{place}/{len(parts)}"
                await self._send(f"{self.subject}.{kind}", part, headers, last=number == total)
        return written

    async def _send(
        self, subject: str, part: bytes, headers: dict[str, str], *, last: bool
    ) -> None:
        if last:
            self._ensure_taken(await self._link.attempt(subject, part, headers))
        else:
            await self._link.send(subject, part, headers)

    async def items(
        self, start: int, tip: int = 0, *, beyond: bool = True
    ) -> AsyncIterator[StreamItem]:
        """Every whole item from a stream sequence on, as far as there are any now.

        `tip` is a stream sequence that is known to be there; what lies beyond it is asked for.
        """
        open_parts: list[_Piece] = []
        while True:
            ahead = await self._find_ahead(start) if start > tip and beyond else None
            if start > tip and ahead is None:
                return
            pieces = await self._load_pieces(start, FETCH_MESSAGES)
            if not pieces:
                # A replica that is behind, or nothing but deleted messages up to the tip.
                ahead = ahead or await self._find_ahead(start)
                if ahead is None:
                    return
                pieces = [ahead]
            start = pieces[-1].at + 1
            for piece in pieces:
                if piece.part == 1:
                    open_parts = [piece]
                elif open_parts and open_parts[-1].part == piece.part - 1:
                    open_parts.append(piece)
                else:
                    # What is left of an item that was being deleted when the server went down.
                    open_parts = []
                    continue
                if piece.part == piece.parts:
                    yield _join_pieces(open_parts)
                    open_parts = []

    async def fetch(self, places: Sequence[tuple[int, int]]) -> dict[int, StreamItem]:
        """The items at (stream sequence, parts), by sequence; without those that are gone."""
        found: dict[int, _Piece] = {}
        runs = _find_runs(places)
        for start in range(0, len(runs), 16):
            fetched = [self._run(first, last) for first, last in runs[start : start + 16]]
            for pieces in await asyncio.gather(*fetched):
                found.update((piece.at, piece) for piece in pieces)
        items: dict[int, StreamItem] = {}
        for at, parts in places:
            pieces = [found[place] for place in range(at, at + parts) if place in found]
            if len(pieces) < parts:
                requested = [await self._get({"seq": place}) for place in range(at, at + parts)]
                pieces = [piece for piece in requested if piece is not None]
            if len(pieces) == parts:
                items[at] = _join_pieces(pieces)
        return items

    async def newest(self, kind: str) -> StreamItem | None:
        """The last item of a kind."""
        end = await self._get({"last_by_subj": f"{self.subject}.{kind}"})
        if end is None or end.part != end.parts:
            return None
        at = end.at - end.parts + 1
        return (await self.fetch([(at, end.parts)])).get(at)

    async def delete(self, at: int, parts: int) -> None:
        """Remove an item; what is gone already is no error."""
        for place in range(at, at + parts):
            try:
                await self._link.ask(f"{API}.STREAM.MSG.DELETE.{self.stream}", {"seq": place})
            except RequestRefused as error:
                if error.number not in _GONE:
                    raise build_unusable(self.stream, error) from error

    async def purge(self, kind: str, below: int) -> None:
        """Remove every item of a kind below a stream sequence."""
        request = {"filter": f"{self.subject}.{kind}", "seq": below}
        try:
            await self._link.ask(f"{API}.STREAM.PURGE.{self.stream}", request)
        except RequestRefused as error:
            raise build_unusable(self.stream, error) from error

    async def last(self) -> int:
        """The last stream sequence that was ever given out."""
        info = await self.info()
        return 0 if info is None else int(info["state"]["last_seq"])

    def parts(self, body: bytes) -> int:
        """How many messages a body needs."""
        return len(self._split_body(body))

    def _split_body(self, body: bytes) -> list[bytes]:
        size = max(SMALLEST_PART, self._link.max_payload - HEADROOM)
        return [body[start : start + size] for start in range(0, len(body), size)]

    def _ensure_taken(self, answer: NatsMessage) -> None:
        try:
            read_answer(answer)
        except RequestRefused as error:
            if error.number in _MOVED:
                raise StreamConflict(error.description) from None
            if error.code == _BUSY and error.number not in _FULL:
                raise Lost(error.description) from error
            raise JournalUnwritable(error.description) from error

    async def info(self) -> dict[str, Any] | None:
        """What the server says of the stream; None where there is none."""
        try:
            return await self._link.ask(f"{API}.STREAM.INFO.{self.stream}", {})
        except RequestRefused as error:
            if error.number == _NO_STREAM:
                return None
            raise build_unusable(self.stream, error) from error

    async def _run(self, first: int, last: int) -> list[_Piece]:
        found: list[_Piece] = []
        start = first
        while start <= last:
            pieces = await self._load_pieces(start, min(FETCH_MESSAGES, last - start + 1))
            found += [piece for piece in pieces if piece.at <= last]
            if not pieces or pieces[-1].at >= last:
                break
            start = pieces[-1].at + 1
        return found

    async def _load_pieces(self, start: int, count: int) -> list[_Piece]:
        deadline = self._link.deadline()
        request = {"seq": start, "batch": count, "max_bytes": FETCH_BYTES}
        while True:
            await self._link.wait_until_up(deadline)
            pieces: list[_Piece] = []

            def take(msg: NatsMessage, pieces: list[_Piece] = pieces) -> bool:
                headers = msg.headers or {}
                if "Status" in headers:
                    return False
                at, subject = int(headers["Nats-Sequence"]), headers["Nats-Subject"]
                pieces.append(_build_piece(at, subject, headers, msg.data))
                return True

            try:
                await self._link.collect(f"{API}.DIRECT.GET.{self.stream}", request, take, ATTEMPT)
            except Lost:
                await self._link.pause(deadline)
            else:
                return pieces

    async def _find_ahead(self, start: int) -> _Piece | None:
        """The first message from `start` on, from the leader: a replica may be behind."""
        return await self._get({"seq": start, "next_by_subj": f"{self.subject}.*"})

    async def _get(self, request: dict[str, Any]) -> _Piece | None:
        try:
            answer = await self._link.ask(f"{API}.STREAM.MSG.GET.{self.stream}", request)
        except RequestRefused as error:
            if error.number in _GONE:
                return None
            raise build_unusable(self.stream, error) from error
        message: dict[str, Any] = answer["message"]
        headers = _parse_headers(b64decode(message.get("hdrs", "")))
        data = b64decode(message.get("data", ""))
        return _build_piece(int(message["seq"]), message["subject"], headers, data)


def build_unusable(stream: str, error: RequestRefused) -> JournalUnavailable:
    """An answer of the server that leaves nothing to be done with a stream."""
    return JournalUnavailable(f"the stream {stream!r} cannot be used: {error}")


def _build_headers(name: str, expected: int, number: int, total: int) -> dict[str, str]:
    headers = {_NAME: name, _EXPECTED: str(expected)} if number == 1 else {}
    if total > 1:
        headers["Nats-Batch-Id"] = name
        headers["Nats-Batch-Sequence"] = str(number)
        if number == total:
            headers["Nats-Batch-Commit"] = "1"
    return headers


def _build_piece(at: int, subject: str, headers: dict[str, str], data: bytes) -> _Piece:
    part, _, parts = headers.get(_PART, "1/1").partition("/")
    kind = subject.rpartition(".")[2]
    return _Piece(at, int(part), int(parts), kind, headers.get(_NAME, ""), data)


def _join_pieces(pieces: Sequence[_Piece]) -> StreamItem:
    head = pieces[0]
    body = head.data if len(pieces) == 1 else b"".join(piece.data for piece in pieces)
    return StreamItem(head.at, len(pieces), head.kind, head.name, body)


def _find_runs(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places as stretches of adjacent stream sequences."""
    runs: list[tuple[int, int]] = []
    for at, parts in sorted(places):
        if runs and runs[-1][1] == at - 1:
            runs[-1] = (runs[-1][0], at + parts - 1)
        else:
            runs.append((at, at + parts - 1))
    return runs


def _parse_headers(raw: bytes) -> dict[str, str]:
    lines = raw.decode().split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if line)
    return {name: value.strip() for name, _, value in pairs}


_IN_USE: Final = 10058


async def set_up(
    link: NatsConnection, log: StreamLog, replicas: int | None, hints: str | None = None
) -> dict[str, Any]:
    """Create the stream of a log, or find it; answers its configuration as the server has it.

    `hints` is a subject on which the server says of each message that it was stored.
    """
    wanted = _build_settings(log, replicas or 1, hints)
    info = await log.info()
    if info is None:
        try:
            info = await link.ask(f"{API}.STREAM.CREATE.{log.stream}", wanted)
        except RequestRefused as error:
            if error.number != _IN_USE:
                raise build_unusable(log.stream, error) from error
            info = await log.info() or {"config": {}}
    found: dict[str, Any] = info["config"]
    if found.get("subjects") != wanted["subjects"]:
        raise JournalUrlError(
            f"the stream {log.stream!r} exists but is not a journal; choose another name"
        )
    if replicas is not None and found.get("num_replicas") != replicas:
        return await _update(link, log, {**found, "num_replicas": replicas})
    return found


def _build_settings(log: StreamLog, replicas: int, hints: str | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "name": log.stream,
        "subjects": [f"{log.subject}.*"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "num_replicas": replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "allow_direct": True,
        "allow_atomic": True,
    }
    if hints is not None:
        republish = {"src": f"{log.subject}.*", "dest": hints, "headers_only": True}
        settings["republish"] = republish
    return settings


async def _update(link: NatsConnection, log: StreamLog, config: dict[str, Any]) -> dict[str, Any]:
    try:
        made = await link.ask(f"{API}.STREAM.UPDATE.{log.stream}", config)
    except RequestRefused as error:
        raise build_unusable(log.stream, error) from error
    return made["config"]

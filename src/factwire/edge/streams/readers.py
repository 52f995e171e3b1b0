"""`Readers`: everybody who reads a stream, and the broadcasts that they share.

A broadcast is opened by its first reader and closed after its last. Whatever keeps a reader from
its stream ends it with a code, and never reaches another one.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import msgspec

from factwire.edge.streams.broadcast import Broadcast
from factwire.edge.streams.catching_up import CatchingUp
from factwire.edge.streams.closing import FAULT, RESTART, UNAVAILABLE
from factwire.edge.streams.cursors import closing_of, error_envelope, read_cursor
from factwire.edge.streams.feed import Feed, FeedStopped
from factwire.edge.streams.messages import EnvelopeOf, Teller, framed
from factwire.edge.streams.projections import Projections
from factwire.edge.streams.query import Query, Start
from factwire.edge.streams.selection import Selection, Wire
from factwire.edge.streams.sink import Sink
from factwire.journal import Cursor, CursorError, Filter, JournalUnavailable

_Key = tuple[Selection, Wire]


class StreamStats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures about the streams of an Edge; `held_bytes` is kept for readers that are behind.
    `opened` and `closed`, by why, are since the start.
    """

    readers: int
    catching_up: int
    broadcasts: int
    watched_threads: int
    held_bytes: int
    opened: int = 0
    closed: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class Reader(msgspec.Struct, frozen=True, eq=False):
    """One reader, and how to find it in the log."""

    sink: Sink
    wire: Wire
    trace_id: str


class Readers:
    """Brings readers to their streams and ends them all."""

    def __init__(self, feed: Feed, *, edge_id: str, envelope_of: EnvelopeOf) -> None:
        self.projections = Projections(feed)
        self._feed = feed
        self._edge_id = edge_id
        self._envelope_of = envelope_of
        self._broadcasts: dict[_Key, Broadcast] = {}
        self._entering: dict[Reader, None] = {}

    def stats(self) -> StreamStats:
        broadcasts = [broadcast.channel for broadcast in self._broadcasts.values()]
        channels = [*broadcasts, *self.projections.channels()]
        return StreamStats(
            readers=sum(channel.members for channel in channels),
            catching_up=len(self._entering),
            broadcasts=len(broadcasts),
            watched_threads=self.projections.watched,
            held_bytes=sum(channel.held for channel in channels),
        )

    async def enter(self, reader: Reader, query: Query) -> None:
        """Bring a reader to the live facts of a selection, or close it."""
        with self._entered(reader, query.selection.filter):
            after = await self._cursor(query.start)
            broadcast = self._broadcast(query.selection, reader.wire)
            catching_up = CatchingUp(self._feed, broadcast, reader.sink)
            if query.start.now:
                catching_up.join_now()
            else:
                await catching_up.join(after)

    async def enter_thread(self, reader: Reader, thread_id: str, start: Start) -> None:
        """Bring a viewer to the live state of a thread, or close it."""
        with self._entered(reader, Filter(thread=thread_id)):
            after = await self._cursor(start)
            await self.projections.view(thread_id, reader.sink, reader.wire, after)

    async def level(self) -> None:
        """Return when everything that is durable now has been handed to the readers."""
        head = await self._feed.journal.head()
        await self._feed.reached(head.seq)

    def close(self) -> None:
        """End every stream."""
        for broadcast in tuple(self._broadcasts.values()):
            broadcast.end(RESTART)
        self.projections.close()
        for reader in tuple(self._entering):
            reader.sink.close(RESTART)

    async def _cursor(self, start: Start) -> Cursor | None:
        if start.cursor is None:
            return None
        return await read_cursor(self._feed.journal, start.cursor)

    def _broadcast(self, selection: Selection, wire: Wire) -> Broadcast:
        key = selection, wire
        broadcast = self._broadcasts.get(key)
        if broadcast is None:
            teller = Teller(selection, edge_id=self._edge_id, envelope_of=self._envelope_of)
            broadcast = Broadcast(self._feed, teller, wire, partial(self._deserted, key))
            self._broadcasts[key] = broadcast
        return broadcast

    def _deserted(self, key: _Key) -> None:
        broadcast = self._broadcasts.pop(key, None)
        if broadcast is not None:
            broadcast.close()

    @contextmanager
    def _entered(self, reader: Reader, wanted: Filter | None) -> Generator[None]:
        """What goes wrong on the way to a stream ends that stream alone."""
        self._entering[reader] = None
        try:
            yield
        except CursorError as error:
            self._refuse(reader, error, wanted)
        except FeedStopped:
            reader.sink.close(RESTART)
        except JournalUnavailable:
            reader.sink.close(UNAVAILABLE)
        except Exception:
            reader.sink.close(FAULT)
            raise
        finally:
            del self._entering[reader]

    def _refuse(self, reader: Reader, error: CursorError, wanted: Filter | None) -> None:
        head = error.head or self._feed.cursor
        text = error_envelope(error, wanted, head, edge_id=self._edge_id, trace_id=reader.trace_id)
        reader.sink.write(framed(reader.wire, "error", text, None))
        reader.sink.close(closing_of(error))

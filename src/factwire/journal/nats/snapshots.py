"""Snapshots as items of the journal's own stream, and verifying it along the chain.

Snapshots are as durable as the facts. A verification fetches every page anew from the server.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from factwire.journal.chain_verifier import ChainVerifier, SnapshotAnchor, build_anchor
from factwire.journal.chunks import GENESIS, ChainPoint, Record, ensure_reached, find_chain_point
from factwire.journal.cursor import Cursor, check_cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.nats.segments import StreamSegment
from factwire.journal.nats.stream_log import ItemBody, SavedSnapshot, decode_item
from factwire.journal.nats.stream_view import StreamView
from factwire.journal.protocol import Damage, StoredSnapshot, VerifyReport


async def save_snapshot(
    mirror: StreamView, thread_id: str, cursor: Cursor, data: bytes, kind: str
) -> StoredSnapshot:
    """Write a snapshot; one of the same thread, kind and place is replaced."""
    async with mirror.lock:
        seq = check_cursor(cursor, mirror.state.bounds())
        anchor = (await _find_chain_point(mirror, seq)).hash if seq else GENESIS
        old = mirror.state.snapshots.get((thread_id, kind), {}).get(seq)
        saved = SavedSnapshot(thread_id=thread_id, kind=kind, seq=seq, data=data, anchor=anchor)

        async def build() -> Sequence[ItemBody]:
            return [saved]

        await mirror.write(build)
    if old is not None:
        await mirror.log.delete(*old)
    return _to_snapshot(saved, mirror.state.epoch)


async def find_snapshot(
    mirror: StreamView, thread_id: str, kind: str, at: Cursor | None
) -> StoredSnapshot | None:
    """The newest snapshot of a thread at or before a cursor."""
    state = mirror.state
    top = state.head if at is None else check_cursor(at, state.bounds())
    places = state.snapshots.get((thread_id, kind), {})
    seq = max((each for each in places if each <= top), default=None)
    if seq is None:
        return None
    return await _fetch_snapshot(mirror, thread_id, seq, places[seq])


async def load_anchors(mirror: StreamView) -> list[SnapshotAnchor]:
    """Where each snapshot says that it stands, fetched anew from the server."""
    kept = mirror.state.snapshots
    found: list[SnapshotAnchor] = []
    for thread_id, kind in list(kept):
        for seq, place in list(kept[thread_id, kind].items()):
            try:
                found.append(build_anchor(await _fetch_snapshot(mirror, thread_id, seq, place)))
            except JournalCorrupt:
                # One that was saved again meanwhile is elsewhere.
                if kept[thread_id, kind].get(seq) == place:
                    raise
    return found


async def _fetch_snapshot(
    mirror: StreamView, thread_id: str, seq: int, place: tuple[int, int]
) -> StoredSnapshot:
    item = (await mirror.log.fetch([place])).get(place[0])
    item_body = item and decode_item(item.kind, item.body)
    if not isinstance(item_body, SavedSnapshot):
        raise JournalCorrupt(f"the stream lost a snapshot of {thread_id!r}", first=seq, last=seq)
    return _to_snapshot(item_body, mirror.state.epoch)


async def load_chain_point(mirror: StreamView, seq: int) -> ChainPoint:
    """Where the chain stands behind the commit of a seq."""
    async with mirror.lock:
        return await _find_chain_point(mirror, ensure_reached(seq, mirror.state.bounds()))


async def _find_chain_point(mirror: StreamView, seq: int) -> ChainPoint:
    state = mirror.state
    base = ChainPoint(state.base, state.base_hash)
    if seq <= state.base:
        return base
    page = (await mirror.load_pages([state.directory.find_holding(seq)], locked=True))[0]
    return base if page.chunk is None else find_chain_point(page.chunk, seq)


def _to_snapshot(saved: SavedSnapshot, epoch: str) -> StoredSnapshot:
    return StoredSnapshot(
        thread_id=saved.thread_id,
        kind=saved.kind,
        cursor=Cursor(epoch, saved.seq),
        data=saved.data,
        anchor=saved.anchor,
    )


_BATCH: Final = 64


async def verify(mirror: StreamView) -> VerifyReport:
    """What a walk over the chain as it is now finds."""
    state = mirror.state
    head, end, records = state.head, state.hash, state.records()
    anchors, lost = await _load_anchors_or_damage(mirror)
    walk = ChainVerifier(state.base, state.base_hash, records, anchors)
    ahead = _Records(records)
    ahead.walk(walk, state.base)
    after = state.base
    while after < head and walk.damage is None:
        segments = state.directory.list_after(after, head, _BATCH)
        await _verify_segments(mirror, walk, ahead, segments)
        after = segments[-1].last
    walk.finish(head, end)
    report = walk.report()
    return report if report.damage else msgspec.structs.replace(report, damage=lost)


async def _load_anchors_or_damage(mirror: StreamView) -> tuple[list[SnapshotAnchor], Damage | None]:
    """The anchors of all snapshots, or what is wrong with one of them."""
    try:
        return await load_anchors(mirror), None
    except JournalCorrupt as error:
        seq = error.first or mirror.state.head
        return [], Damage(first=seq, last=seq, reason=error.reason)


async def _verify_segments(
    mirror: StreamView, walk: ChainVerifier, ahead: "_Records", segments: list[StreamSegment]
) -> None:
    for segment in segments:
        try:
            found = await mirror.pages.get([segment], fresh=True)
        except JournalCorrupt as error:
            walk.fail(error.reason, segment.last)
            return
        page = found.get(segment.at)
        if page is None or page.chunk is None:
            walk.fail("the stream lost facts", segment.last)
            return
        walk.take_chunk(page.chunk)
        ahead.walk(walk, segment.last)


class _Records:
    """Records in the order of the chain, each to be walked after the fact it follows."""

    def __init__(self, records: list[Record]) -> None:
        self._left: Iterator[Record] = iter(records)
        self._next = next(self._left, None)

    def walk(self, walk: ChainVerifier, seq: int) -> None:
        while self._next is not None and self._next.after <= seq:
            walk.take_record(self._next)
            self._next = next(self._left, None)

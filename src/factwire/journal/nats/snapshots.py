"""Snapshots: items of the journal's own stream, so that they are as durable as its facts."""

from collections.abc import Sequence

from factwire.journal.chain import GENESIS
from factwire.journal.chain_point import ChainPoint, ensure_reached, point_in
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.wire import Said, Saved, decode
from factwire.journal.protocol import Snapshot
from factwire.journal.resume import check_cursor
from factwire.journal.walk import Anchor, snapshot_anchor


async def save_snapshot(
    mirror: Mirror, thread_id: str, cursor: Cursor, data: bytes, kind: str
) -> Snapshot:
    """Write a snapshot; one of the same thread, kind and place is replaced."""
    async with mirror.lock:
        seq = check_cursor(cursor, mirror.state.bounds())
        anchor = (await _point(mirror, seq)).hash if seq else GENESIS
        old = mirror.state.snapshots.get((thread_id, kind), {}).get(seq)
        saved = Saved(thread_id=thread_id, kind=kind, seq=seq, data=data, anchor=anchor)

        async def build() -> Sequence[Said]:
            return [saved]

        await mirror.write(build)
    if old is not None:
        await mirror.log.delete(*old)
    return _snapshot(saved, mirror.state.epoch)


async def find_snapshot(
    mirror: Mirror, thread_id: str, kind: str, at: Cursor | None
) -> Snapshot | None:
    """The newest snapshot of a thread at or before a cursor."""
    state = mirror.state
    top = state.head if at is None else check_cursor(at, state.bounds())
    places = state.snapshots.get((thread_id, kind), {})
    seq = max((each for each in places if each <= top), default=None)
    if seq is None:
        return None
    return await _fetch(mirror, thread_id, seq, places[seq])


async def saved_anchors(mirror: Mirror) -> list[Anchor]:
    """Where each snapshot says that it stands, fetched anew from the server."""
    kept = mirror.state.snapshots
    found: list[Anchor] = []
    for thread_id, kind in list(kept):
        for seq, place in list(kept[thread_id, kind].items()):
            try:
                found.append(snapshot_anchor(await _fetch(mirror, thread_id, seq, place)))
            except JournalCorrupt:
                # One that was saved again meanwhile is elsewhere.
                if kept[thread_id, kind].get(seq) == place:
                    raise
    return found


async def _fetch(mirror: Mirror, thread_id: str, seq: int, place: tuple[int, int]) -> Snapshot:
    item = (await mirror.log.fetch([place])).get(place[0])
    said = item and decode(item.kind, item.body)
    if not isinstance(said, Saved):
        raise JournalCorrupt(f"the stream lost a snapshot of {thread_id!r}", first=seq, last=seq)
    return _snapshot(said, mirror.state.epoch)


async def chain_point(mirror: Mirror, seq: int) -> ChainPoint:
    """Where the chain stands behind the commit of a seq."""
    async with mirror.lock:
        return await _point(mirror, ensure_reached(seq, mirror.state.bounds()))


async def _point(mirror: Mirror, seq: int) -> ChainPoint:
    state = mirror.state
    base = ChainPoint(state.base, state.base_hash)
    if seq <= state.base:
        return base
    page = (await mirror.pages_of([state.directory.holding(seq)], locked=True))[0]
    return base if page.chunk is None else point_in(page.chunk, seq)


def _snapshot(saved: Saved, epoch: str) -> Snapshot:
    return Snapshot(
        thread_id=saved.thread_id,
        kind=saved.kind,
        cursor=Cursor(epoch, saved.seq),
        data=saved.data,
        anchor=saved.anchor,
    )

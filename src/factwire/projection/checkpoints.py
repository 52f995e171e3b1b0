"""Checkpoints: a projection as bytes, from which it goes on as if it had never stopped.

A snapshot is what a screen needs. A checkpoint also holds what the projection itself needs to take
the next fact: what it remembers of those before, and what it holds back.
"""

from typing import Annotated, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.issues import FactError
from factwire.facts.shapes import decode_fact, encode_fact
from factwire.projection.lanes import NOTHING, Lane
from factwire.projection.recent import Recent
from factwire.projection.state import (
    STATE_VERSION,
    ProjectionState,
    decode_state,
    encode_state,
)


class UnreadableCheckpoint(ValueError):
    """Bytes that are no checkpoint of this version; the facts themselves must be projected."""

    code = "unreadable_checkpoint"


class SavedLane(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One lane, with the facts it holds as their bytes."""

    thread_id: str | None
    start: int | None
    expected: int | None
    held: list[bytes]
    lost: list[tuple[int, int]]
    covered: int = NOTHING


class Checkpoint(msgspec.Struct, kw_only=True):
    """Everything that a projection consists of. The first of `lanes` is the main one."""

    version: str
    state: ProjectionState
    lanes: list[SavedLane]
    current: str | None
    ids: list[list[str]]
    bodies: list[dict[str, bytes]]


class _Bytes(msgspec.Struct, kw_only=True):
    """A checkpoint on its way. The state is JSON, which has whole numbers of any size."""

    version: str
    state: bytes
    lanes: Annotated[list[SavedLane], msgspec.Meta(min_length=1)]
    current: str | None
    ids: tuple[list[str], list[str]]
    bodies: tuple[dict[str, bytes], dict[str, bytes]]


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Bytes)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    fields = {name: getattr(checkpoint, name) for name in Checkpoint.__struct_fields__}
    return _encoder.encode({**fields, "state": encode_state(checkpoint.state)})


def decode_checkpoint(data: bytes) -> Checkpoint:
    """What `encode_checkpoint` wrote; raises `UnreadableCheckpoint` for anything else."""
    try:
        saved = _decoder.decode(data)
        state = decode_state(saved.state)
        for lane in saved.lanes:
            restored_lane(lane)
    except (msgspec.DecodeError, FactError, RecursionError, ValueError) as error:
        raise UnreadableCheckpoint(f"these bytes are no checkpoint: {error}") from error
    if saved.version != STATE_VERSION:
        raise UnreadableCheckpoint(f"expected a checkpoint of {STATE_VERSION}, got {saved.version}")
    return Checkpoint(
        version=saved.version,
        state=state,
        lanes=saved.lanes,
        current=saved.current,
        ids=list(saved.ids),
        bodies=list(saved.bodies),
    )


def saved_lane(lane: Lane) -> SavedLane:
    return SavedLane(
        thread_id=lane.thread_id,
        start=lane.start,
        expected=lane.expected,
        held=[encode_fact(fact) for fact in lane.held.values()],
        lost=lane.lost,
        covered=lane.covered,
    )


def restored_lane(saved: SavedLane) -> Lane:
    lane = Lane(saved.thread_id, saved.start)
    lane.expected = saved.expected
    lane.lost = list(saved.lost)
    lane.covered = saved.covered
    for line in saved.held:
        fact: Fact = decode_fact(line)
        lane.hold(fact, fact.sequence or 0)
    return lane


def restored_recent(checkpoint: Checkpoint) -> Recent:
    recent = Recent()
    recent.load(checkpoint.ids, checkpoint.bodies)
    return recent

"""`Vitals`: the figures of an Edge at one moment, for metrics and for its own health.

They are read off what the Edge keeps anyway; between two looks they cost nothing.
"""

from collections import Counter
from datetime import datetime
from typing import Final, get_args

import msgspec

from factwire.edge.machine import Machine
from factwire.edge.records import Records
from factwire.edge.records.rows import RunStatus
from factwire.edge.streams import FeedHealth, Streams, StreamStats

RUN_STATUSES: Final[tuple[str, ...]] = get_args(RunStatus)
UNFINISHED: Final = frozenset({"queued", "running", "waiting"})
"""Statuses of a run that has not ended."""


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """`head` and `feed.lag` are None while the journal cannot be asked; `runs` has every status."""

    feed: FeedHealth
    head: int | None
    runs: dict[str, int]
    active: int
    active_most: int
    pending: int
    oldest_pending: float | None
    previews: int
    streams: StreamStats


async def look(machine: Machine, streams: Streams) -> Vitals:
    """The figures of an Edge now."""
    feed = await machine.feed.health()
    counted = Counter(run.status for run in machine.records.runs.rows.values())
    waiting = _pending_since(machine.records)
    ages = [age for since in waiting if (age := _age(since, machine.mint.clock())) is not None]
    return Vitals(
        feed=feed,
        head=None if feed.lag is None else feed.cursor.seq + feed.lag,
        runs={status: counted[status] for status in RUN_STATUSES},
        active=sum(thread.turn is not None for thread in machine.runtime.live),
        active_most=machine.runtime.settings.active_turns,
        pending=len(waiting),
        oldest_pending=max(ages, default=None),
        previews=len(machine.previews.served),
        streams=streams.stats(),
    )


def unfinished(records: Records) -> frozenset[str]:
    """The runs that have not ended."""
    return frozenset(key for key, run in records.runs.rows.items() if run.status in UNFINISHED)


def recovered(records: Records, before: frozenset[str]) -> dict[str, int]:
    """What became of runs that a former process left: closed, or going on as what they are."""
    after = Counter(run.status for key in before if (run := records.runs.get(key)) is not None)
    going_on = {status: after[status] for status in sorted(UNFINISHED)}
    return {"closed": sum(after.values()) - sum(going_on.values()), **going_on}


def _pending_since(records: Records) -> list[str]:
    rows = records.approvals.rows.values()
    return [row.created_at for row in rows if row.status == "pending"]


def _age(since: str, now: str) -> float | None:
    """Seconds from one time to another; None where the first is none, as in facts of others."""
    try:
        return max(
            0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
        )
    except (ValueError, TypeError, OverflowError):
        return None

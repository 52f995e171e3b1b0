"""The figures of an Edge at one moment, for Prometheus and for its own health.

They are read off what the Edge keeps anyway; between two looks they cost nothing. One table says
what each figure is called and what it means. Labels have fixed sets of values, so the number of
series does not depend on what is asked or on how much is kept.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from time import monotonic
from typing import Final, Self, get_args

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from factwire import __version__
from factwire.edge.edge_context import EdgeContext, RetentionLog
from factwire.edge.records import Records
from factwire.facts.resources import RunStatus
from factwire.serving.request_observing import FigureRegistry, LoopLag, RequestMetrics, Tracing
from factwire.serving.streams import FeedHealth, Streams, StreamStats

RUN_STATUSES: Final[tuple[str, ...]] = get_args(RunStatus)
UNFINISHED: Final = frozenset({"queued", "held", "running", "waiting", "cancelling"})
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


async def read_vitals(edge: EdgeContext, streams: Streams) -> Vitals:
    """The figures of an Edge now."""
    feed = await edge.feed.health()
    counted = edge.records.runs.count_by("status")
    waiting = _pending_since(edge.records)
    ages = [age for since in waiting if (age := _age(since, edge.mint.clock())) is not None]
    return Vitals(
        feed=feed,
        head=None if feed.lag is None else feed.cursor.seq + feed.lag,
        runs={status: counted.get(status, 0) for status in RUN_STATUSES},
        active=sum(thread.turn is not None for thread in edge.runtime.live),
        active_most=edge.runtime.settings.active_turns,
        pending=len(waiting),
        oldest_pending=max(ages, default=None),
        previews=len(edge.previews.preview_ids),
        streams=streams.stats(),
    )


def unfinished_runs(records: Records) -> frozenset[str]:
    """The runs that have not ended."""
    return frozenset(
        place.key
        for status in sorted(UNFINISHED)
        for place, _ in records.runs.newest_by_key(status=status)
    )


def count_recovered(records: Records, before: frozenset[str]) -> dict[str, int]:
    """What became of runs that a former process left: closed, or going on as what they are."""
    after = Counter(run.status for key in before if (run := records.runs.get(key)) is not None)
    going_on = {status: after[status] for status in sorted(UNFINISHED)}
    return {"closed": sum(after.values()) - sum(going_on.values()), **going_on}


def _pending_since(records: Records) -> list[str]:
    return [row.created_at for row in records.approvals.newest(status="pending")]


def _age(since: str, now: str) -> float | None:
    """Seconds from one time to another; None where the first is none, as in facts of others."""
    try:
        return max(
            0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
        )
    except (ValueError, TypeError, OverflowError):
        return None


_PREFIX: Final = "factwire_edge_"
_STATES: Final = ("live", "degraded", "stopped")

Read = Callable[[Vitals], "float | None"]

_GAUGES: Final[dict[str, tuple[str, Read]]] = {
    "journal_head": ("Position of the newest fact in the journal.", lambda v: v.head),
    "feed_lag_facts": ("Durable facts that have not been delivered yet.", lambda v: v.feed.lag),
    "runs_active": ("Runs that are active on this Edge or about to start.", lambda v: v.active),
    "runs_active_most": ("Maximum number of concurrent runs.", lambda v: v.active_most),
    "approvals_pending": ("Approvals waiting for a decision.", lambda v: v.pending),
    "approvals_oldest_pending_seconds": (
        "Age of the oldest waiting approval; 0 if there is none.",
        lambda v: v.oldest_pending or 0.0,
    ),
    "previews": ("Previews being served.", lambda v: v.previews),
    "streams": ("Readers that follow a stream live.", lambda v: v.streams.readers),
    "streams_catching_up": ("Readers that are still catching up.", lambda v: v.streams.catching_up),
    "stream_channels": (
        "Distinct streams shared by readers.",
        lambda v: v.streams.broadcasts + v.streams.watched_threads,
    ),
    "stream_held_bytes": (
        "Bytes buffered for slow readers.",
        lambda v: v.streams.held_bytes,
    ),
}
"""Name without its prefix → what it means, and where it is read; None is left out."""


def build_gauges(vitals: Vitals) -> Iterator[Metric]:
    for name, (meaning, read) in _GAUGES.items():
        value = read(vitals)
        if value is not None:
            yield GaugeMetricFamily(f"{_PREFIX}{name}", meaning, value=value)


def build_labelled(vitals: Vitals) -> Iterator[Metric]:
    """Figures by status, state or reason; every value of the label is told, even at zero."""
    states = {state: float(state == vitals.feed.state) for state in _STATES}
    yield _add_labels(
        GaugeMetricFamily(
            f"{_PREFIX}feed_state",
            "State of the journal feed; 1 for the current state.",
            labels=("state",),
        ),
        states,
    )
    yield _add_labels(
        GaugeMetricFamily(f"{_PREFIX}runs", "Listed runs by status.", labels=("status",)),
        vitals.runs,
    )
    yield _add_labels(
        CounterMetricFamily(
            f"{_PREFIX}streams_closed", "Ended streams by reason.", labels=("reason",)
        ),
        vitals.streams.closed,
    )
    yield CounterMetricFamily(
        f"{_PREFIX}streams_opened",
        "Streams started.",
        value=vitals.streams.opened,
    )


def build_fact_counter(first: int, vitals: Vitals) -> Metric:
    """Facts since the start, by places in the journal: nothing is counted as they pass."""
    return CounterMetricFamily(
        f"{_PREFIX}facts",
        "Durable facts from any writer that were delivered since the start.",
        value=max(0, vitals.feed.cursor.seq - first),
    )


def build_retention_counters(done: RetentionLog) -> Iterator[Metric]:
    """What retention has removed since the start."""
    rows: dict[str, tuple[str, float]] = {
        "retention_runs": ("Runs of retention that ended.", done.runs),
        "retention_failures": ("Scheduled runs of retention that failed.", done.failures),
        "retention_facts": ("Facts that retention removed.", done.removed_facts),
        "retention_bytes": ("Bytes of facts that retention removed.", done.freed_bytes),
        "retention_blobs": ("Blobs that retention removed.", done.removed_blobs),
    }
    for name, (meaning, value) in rows.items():
        yield CounterMetricFamily(f"{_PREFIX}{name}", meaning, value=value)


def build_info(version: str, edge_id: str) -> Metric:
    """Which Edge this is."""
    info = GaugeMetricFamily(f"{_PREFIX}build_info", "Always 1.", labels=("version", "edge_id"))
    info.add_metric((version, edge_id), 1)
    return info


def _add_labels(
    family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]
) -> Metric:
    for label, value in values.items():
        family.add_metric((label,), value)
    return family


class EdgeObserver:
    """Figures and traces of one Edge."""

    def __init__(self, edge: EdgeContext, streams: Streams, tracing: Tracing) -> None:
        self.requests = RequestMetrics()
        self.tracing = tracing
        self.lag = LoopLag()
        self._edge = edge
        self._streams = streams
        self._since = monotonic()
        self._first = edge.feed.cursor.seq
        self._registry = FigureRegistry()

    def __enter__(self) -> Self:
        self.lag.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lag.stop()

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._since

    async def vitals(self) -> Vitals:
        """The figures now."""
        return await read_vitals(self._edge, self._streams)

    async def exposition(self) -> bytes:
        """Everything that is counted, in Prometheus' text form."""
        return self._registry.expose(self._families(await self.vitals()))

    def _families(self, vitals: Vitals) -> Iterator[Metric]:
        yield build_info(__version__, self._edge.edge_id)
        yield build_fact_counter(self._first, vitals)
        yield from build_gauges(vitals)
        yield from build_labelled(vitals)
        yield from build_retention_counters(self._edge.retention)
        yield from self.requests.families(_PREFIX)
        yield from self.lag.families(_PREFIX)

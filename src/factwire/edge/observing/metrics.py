"""Metrics: the figures of an Edge in Prometheus' families.

One table says what each figure is called and what it means. Labels have fixed sets of values, so
the number of series does not depend on what is asked or on how much is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from factwire.edge.observing.vitals import Vitals

_STATES: Final = ("live", "degraded", "stopped")

Read = Callable[[Vitals], "float | None"]

_GAUGES: Final[dict[str, tuple[str, Read]]] = {
    "journal_head": ("Place of the newest fact in the journal.", lambda v: v.head),
    "feed_lag_facts": ("Facts that are durable and not handed out yet.", lambda v: v.feed.lag),
    "runs_active": ("Runs that this Edge works on, or is about to.", lambda v: v.active),
    "runs_active_most": ("Runs that may be active at once.", lambda v: v.active_most),
    "approvals_pending": ("Approvals that wait for a person.", lambda v: v.pending),
    "approvals_oldest_pending_seconds": (
        "Age of the approval that has waited longest; 0 where none waits.",
        lambda v: v.oldest_pending or 0.0,
    ),
    "previews": ("Previews that are served.", lambda v: v.previews),
    "streams": ("Readers of live streams.", lambda v: v.streams.readers),
    "streams_catching_up": ("Readers on their way there.", lambda v: v.streams.catching_up),
    "stream_channels": (
        "Different streams that readers share.",
        lambda v: v.streams.broadcasts + v.streams.watched_threads,
    ),
    "stream_held_bytes": (
        "Bytes kept for readers that are behind.",
        lambda v: v.streams.held_bytes,
    ),
}
"""Name without its prefix → what it means, and where it is read; None is left out."""


def gauges(vitals: Vitals) -> Iterator[Metric]:
    for name, (meaning, read) in _GAUGES.items():
        value = read(vitals)
        if value is not None:
            yield GaugeMetricFamily(f"factwire_edge_{name}", meaning, value=value)


def labelled(vitals: Vitals) -> Iterator[Metric]:
    """Figures by status, state or reason; every value of the label is told, even at zero."""
    states = {state: float(state == vitals.feed.state) for state in _STATES}
    yield _by_label(
        GaugeMetricFamily(
            "factwire_edge_feed_state", "1 for the state of the feed.", labels=("state",)
        ),
        states,
    )
    yield _by_label(
        GaugeMetricFamily(
            "factwire_edge_runs", "Runs in the lists, by status.", labels=("status",)
        ),
        vitals.runs,
    )
    yield _by_label(
        CounterMetricFamily(
            "factwire_edge_streams_closed", "Streams that have ended, by why.", labels=("reason",)
        ),
        vitals.streams.closed,
    )
    yield CounterMetricFamily(
        "factwire_edge_streams_opened",
        "Streams that were begun.",
        value=vitals.streams.opened,
    )


def facts_since(first: int, vitals: Vitals) -> Metric:
    """Facts since the start, by places in the journal: nothing is counted as they pass."""
    return CounterMetricFamily(
        "factwire_edge_facts",
        "Facts that became durable, by whomever, and were handed out since the start.",
        value=max(0, vitals.feed.cursor.seq - first),
    )


def build(version: str, edge_id: str) -> Metric:
    """Which Edge this is."""
    info = GaugeMetricFamily("factwire_edge_build_info", "Always 1.", labels=("version", "edge_id"))
    info.add_metric((version, edge_id), 1)
    return info


def _by_label(
    family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]
) -> Metric:
    for label, value in values.items():
        family.add_metric((label,), value)
    return family

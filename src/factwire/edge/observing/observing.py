"""`Observing`: everything by which one Edge is observed; a context manager.

Each Edge has a registry of its own, so that two in a process never share a figure.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Self

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from factwire import __version__
from factwire.edge.machine import Machine
from factwire.edge.observing import metrics
from factwire.edge.observing.loop_lag import LoopLag
from factwire.edge.observing.request_figures import RequestFigures
from factwire.edge.observing.tracer import Tracing
from factwire.edge.observing.vitals import Vitals, look
from factwire.edge.streams import Streams


class Observing:
    """Figures and traces of one Edge."""

    def __init__(self, machine: Machine, streams: Streams, tracing: Tracing) -> None:
        self.requests = RequestFigures()
        self.tracing = tracing
        self.lag = LoopLag()
        self._machine = machine
        self._streams = streams
        self._since = monotonic()
        self._first = machine.feed.cursor.seq
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

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
        return await look(self._machine, self._streams)

    async def exposition(self) -> bytes:
        """Everything that is counted, in Prometheus' text form."""
        own = CollectorRegistry()
        own.register(_Families(self._families(await self.vitals())))
        return generate_latest(own) + generate_latest(self._registry)

    def _families(self, vitals: Vitals) -> Iterator[Metric]:
        yield metrics.build(__version__, self._machine.edge_id)
        yield metrics.facts_since(self._first, vitals)
        yield from metrics.gauges(vitals)
        yield from metrics.labelled(vitals)
        yield from self.requests.families()
        yield from self.lag.families()


class _Families(Collector):
    """Families that were made for one answer."""

    def __init__(self, families: Iterator[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> list[Metric]:
        return self._families

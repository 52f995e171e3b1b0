"""The figures of a Hub at one moment, read off its database when somebody asks for them."""

from collections.abc import Iterator
from typing import Final, Self

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from factwire import __version__
from factwire.hub.people.accounts import HubServices
from factwire.hub.records import people_records
from factwire.hub.records.hub_tables import ROLES, Role
from factwire.serving.request_observing import FigureRegistry, LoopLag, RequestMetrics, Tracing

_PREFIX: Final = "factwire_hub_"


class HubObserver:
    """Figures and traces of one Hub."""

    def __init__(self, hub: HubServices, tracing: Tracing) -> None:
        self.requests = RequestMetrics()
        self.tracing = tracing
        self.lag = LoopLag()
        self._hub = hub
        self._registry = FigureRegistry()

    def __enter__(self) -> Self:
        self.lag.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lag.stop()

    async def exposition(self) -> bytes:
        """Everything that is counted, in Prometheus' text form."""
        async with self._hub.database.read() as connection:
            people = await people_records.count_people(connection)
            open_sessions = await people_records.count_sessions(connection, self._hub.now())
        return self._registry.expose(self._families(people, open_sessions))

    def _families(self, people: dict[Role, int], open_sessions: int) -> Iterator[Metric]:
        info = GaugeMetricFamily(f"{_PREFIX}build_info", "Always 1.", labels=("version",))
        info.add_metric((__version__,), 1)
        yield info
        enabled = GaugeMetricFamily(
            f"{_PREFIX}people", "People who may sign in, by role.", labels=("role",)
        )
        for role in ROLES:
            enabled.add_metric((role,), people.get(role, 0))
        yield enabled
        yield GaugeMetricFamily(f"{_PREFIX}sessions", "Open sessions.", value=open_sessions)
        yield from self.requests.families(_PREFIX)
        yield from self.lag.families(_PREFIX)

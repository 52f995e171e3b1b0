"""The figures of a Hub at one moment, read off its database when somebody asks for them."""

from collections.abc import Iterator
from itertools import chain
from typing import Final, Self

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from factwire import __version__
from factwire.hub.approvals.approval_records import count_approvals
from factwire.hub.notifications.notification_ledger import count_deliveries
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
            deliveries = await count_deliveries(connection)
            approvals = await count_approvals(connection)
        return self._registry.expose(
            chain(
                self._families(people, open_sessions),
                _build_notification_families(deliveries, approvals),
            )
        )

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
        connections = self._hub.connections
        sockets = GaugeMetricFamily(
            f"{_PREFIX}sockets", "Open sockets of this process, by kind.", labels=("kind",)
        )
        sockets.add_metric(("device",), connections.device_count)
        sockets.add_metric(("screen",), connections.screen_count)
        yield sockets
        yield GaugeMetricFamily(
            f"{_PREFIX}events", "Number of the last event that was passed on.", connections.live.seq
        )
        yield from self.requests.families(_PREFIX)
        yield from self.lag.families(_PREFIX)


def _build_notification_families(
    deliveries: dict[tuple[str, str], int], approvals: dict[str, int]
) -> Iterator[Metric]:
    sent = GaugeMetricFamily(
        f"{_PREFIX}notification_deliveries",
        "Deliveries of notifications in the ledger, by channel and state.",
        labels=("channel", "state"),
    )
    for (channel, state), count in sorted(deliveries.items()):
        sent.add_metric((channel, state), count)
    yield sent
    by_state = GaugeMetricFamily(
        f"{_PREFIX}approvals", "Approvals of all devices, by state.", labels=("state",)
    )
    for state, count in sorted(approvals.items()):
        by_state.add_metric((state,), count)
    yield by_state

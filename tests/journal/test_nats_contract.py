"""The contract and the model, held against JetStream on a real server."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

from factwire.journal.nats import reader, retention, segments, stream_log, stream_view, writer
from tests.journal.contract import JournalContract
from tests.journal.model import JournalMachine, check_model
from tests.journal.nats_server import NatsBackend, NatsServer, nats_server
from tests.journal.restore_contract import RestoreContract

__all__ = ["nats_server"]


def on_nats(server: NatsServer) -> AbstractContextManager[NatsBackend]:
    @contextmanager
    def place() -> Generator[NatsBackend]:
        yield NatsBackend(server)

    return place()


class TestNats(JournalContract, RestoreContract):
    @pytest.fixture
    def backend(self, nats_server: NatsServer) -> NatsBackend:
        return NatsBackend(nats_server)


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.model")
def test_nats_equals_the_model(nats_server: NatsServer):
    check_model(lambda: on_nats(nats_server))


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.model")
def test_nats_equals_the_model_with_tiny_messages_pages_and_checkpoints(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream_log, "HEADROOM", 1 << 30)
    monkeypatch.setattr(stream_log, "SMALLEST_PART", 300)
    monkeypatch.setattr(stream_log, "FETCH_MESSAGES", 3)
    monkeypatch.setattr(writer, "GROUP_BYTES", 600)
    monkeypatch.setattr(stream_view, "EVERY", 7)
    monkeypatch.setattr(stream_view, "ON_CLOSE", 1)
    monkeypatch.setattr(stream_view, "PAGE", 4)
    monkeypatch.setattr(segments, "CACHE_BYTES", 1)
    monkeypatch.setattr(reader, "BATCH", 2)
    monkeypatch.setattr(retention, "ENOUGH", 2)
    monkeypatch.setattr(retention, "FACTS", 5)
    places = staticmethod(lambda: on_nats(nats_server))
    run_state_machine_as_test(
        type("Machine", (JournalMachine,), {"places": places}),
        settings=settings(
            max_examples=min(100, settings.default.max_examples if settings.default else 20),
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )

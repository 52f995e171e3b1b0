"""The client's types of event payloads are those of the Edge's own table."""

import msgspec
import pytest

from factwire.client.event_payloads import EVENT_PAYLOADS
from factwire.edge.events.event_types import EVENT_TYPES
from tests.edge.event_samples import SAMPLES, to_envelope
from tools.event_payloads import TARGET, write_payloads


@pytest.mark.requirement("client.payloads")
def test_the_payloads_are_written_from_the_table_of_event_types():
    assert TARGET.read_text("utf-8") == write_payloads(), "run `make schemas`"
    assert EVENT_PAYLOADS.keys() == EVENT_TYPES.keys()


@pytest.mark.requirement("client.payloads")
def test_a_payload_that_an_edge_emits_is_of_the_clients_type():
    for sample in SAMPLES:
        for view in sample.views:
            envelope = to_envelope(sample.fact, view)
            emitted = msgspec.to_builtins(envelope.payload)
            assert msgspec.convert(emitted, EVENT_PAYLOADS[envelope.type]) == emitted

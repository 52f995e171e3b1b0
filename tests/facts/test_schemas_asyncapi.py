"""The AsyncAPI document is valid AsyncAPI 3.0 and its messages take the facts they are for."""

import re
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator

from factwire.facts.classes.class_tables import RUNTIME_CLASSES
from factwire.facts.schemas import asyncapi_document
from tools.node import packages

pytestmark = pytest.mark.requirement("schemas.asyncapi")

DOCUMENT = asyncapi_document()

FACT = {
    "id": "f1",
    "kind": "model",
    "status": "running",
    "title": "Words",
    "createdAt": "2026-01-01T00:00:00Z",
    "schemaVersion": "1",
    "runtimeId": "r1",
    "sequence": 1,
    "eventClass": "model.delta",
    "payload": {"delta": "Hel"},
}


@pytest.fixture(scope="session")
def specification() -> Any:
    """The official JSON Schema of AsyncAPI 3.0.0."""
    path = packages.install() / "@asyncapi" / "specs" / "schemas" / "3.0.0.json"
    return Draft7Validator(msgspec.json.decode(path.read_bytes()))


def at(pointer: str) -> Any:
    """What a local ref of the document points at."""
    found: Any = DOCUMENT
    for key in pointer.removeprefix("#/").split("/"):
        found = found[key]
    return found


def accepts(message: str, value: Any) -> bool:
    reference = {"$ref": f"#/components/messages/{message}/payload"}
    validator: Any = Draft7Validator(DOCUMENT | reference)
    return validator.is_valid(value)


def test_the_document_is_valid_asyncapi(specification: Any):
    errors = [error.message for error in specification.iter_errors(DOCUMENT)]
    assert errors == []


@pytest.mark.parametrize(
    "broken",
    [
        {"asyncapi": "2.6.0"},
        {"operations": {"x": {"action": "shout", "channel": {"$ref": "#/channels/fact"}}}},
        {"channels": {"fact": {"messages": ["model.delta"]}}},
    ],
)
def test_a_broken_document_is_not(specification: Any, broken: dict[str, Any]):
    assert not specification.is_valid(DOCUMENT | broken)


def test_every_ref_of_the_document_leads_somewhere():
    text = msgspec.json.encode(DOCUMENT).decode()
    assert [ref for ref in re.findall(r'"\$ref":"([^"]+)"', text) if not at(ref)] == []


def test_every_runtime_class_is_a_message_of_the_facts_channel():
    messages = DOCUMENT["channels"]["fact"]["messages"]
    assert list(messages) == [*RUNTIME_CLASSES, "Fact"]
    assert [at(message["$ref"])["name"] for message in messages.values()] == list(messages)


def test_a_message_is_grouped_with_its_family_and_refers_to_its_payload():
    message = DOCUMENT["components"]["messages"]["tool.started"]
    assert message["tags"] == [{"name": "tool"}]
    _, own = message["payload"]["allOf"]
    reference = own["properties"]["payload"]["anyOf"][0]["$ref"]
    assert at(reference)["title"] == "ToolCallPayload"


def test_channels_carry_the_three_shapes():
    assert {
        name: list(channel["messages"])[-1] for name, channel in DOCUMENT["channels"].items()
    } == {"fact": "Fact", "runtime-event": "RuntimeEvent", "ui-event": "UiEvent"}


@pytest.mark.parametrize(
    ("message", "value", "accepted"),
    [
        ("model.delta", FACT, True),
        ("model.delta", FACT | {"payload": None, "custom": 1}, True),
        ("model.delta", FACT | {"payload": {"delta": 7}}, False),
        ("model.delta", FACT | {"id": None}, False),
        ("tool.started", FACT, False),
        ("Fact", FACT | {"eventClass": "acme.reindexed"}, True),
        ("UiEvent", {"type": "text.delta", "payload": {"delta": "Hel"}}, True),
        ("UiEvent", {"type": "text.delta", "payload": {"delta": 7}}, False),
        ("RuntimeEvent", FACT, False),
    ],
)
def test_a_message_takes_the_facts_it_is_for(message: str, value: Any, accepted: bool):
    assert accepts(message, value) == accepted

"""Correlation ids: where each is found, and what never is one."""

import pytest

from factwire.facts import CORRELATION_IDS, id_in_payload, id_of
from tests.facts import spec
from tests.facts.samples import fact


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


@pytest.mark.requirement("facts.ids.list")
@pytest.mark.parametrize("name", spec.CORRELATION_IDS)
def test_an_id_at_the_top_level_is_a_field_of_the_fact(name: str):
    found = fact("run.status", **{name: "x1"})
    assert getattr(found, snake(name)) == "x1"
    assert found.extra == {}


@pytest.mark.requirement("facts.ids.lookup")
@pytest.mark.parametrize("name", [name for name in CORRELATION_IDS if name != "runtimeId"])
def test_an_id_is_found_at_the_top_then_in_camel_then_in_snake_case(name: str):
    both = {name: "camel", snake(name): "snake"}
    assert id_of(fact(payload=both, **{name: "top"}), name) == "top"
    assert id_of(fact(payload=both), name) == "camel"
    assert id_of(fact(payload={snake(name): "snake"}), name) == "snake"
    assert id_of(fact(), name) is None


@pytest.mark.requirement("facts.ids.lookup")
@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("requestId", "actionId"),
        ("request_id", "actionId"),
        ("callId", "toolCallId"),
        ("call_id", "toolCallId"),
    ],
)
def test_an_id_is_found_under_its_other_names(key: str, name: str):
    assert id_in_payload({key: "x1"}, name) == "x1"


@pytest.mark.requirement("facts.ids.lookup")
@pytest.mark.parametrize("value", ["", None, 7, True, ["x"], {"id": "x"}])
def test_only_text_that_is_not_empty_is_an_id(value: object):
    assert id_of(fact(payload={"toolCallId": value, "tool_call_id": "x1"}), "toolCallId") == "x1"


@pytest.mark.requirement("facts.ids.lookup")
def test_an_empty_id_at_the_top_gives_way_to_the_payload():
    assert id_of(fact(turnId="", payload={"turnId": "t1"}), "turnId") == "t1"


@pytest.mark.requirement("facts.ids.lookup")
def test_no_id_is_read_from_text():
    found = fact("tool.result", title="toolCallId: x1", payload={"text": "toolCallId=x1"})
    assert id_of(found, "toolCallId") is None

"""Spilling: what moves to a blob, and that nothing is lost by it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    Blob,
    Spill,
    content_ref,
    inspect_fact,
    is_valid,
    json_characters,
    missing_fields,
    parse_ref,
    plan_spill,
)
from factwire.facts.limits import PAYLOAD_CHARACTERS, PREVIEW_CHARACTERS
from tests.facts import spec, strategies
from tests.facts.samples import fact, full_fact

LIMIT = 8_000
"""Small enough to be crossed by small examples, big enough for refs with previews."""

BIG = "x" * PAYLOAD_CHARACTERS


def content_of(blob: Blob) -> Any:
    if blob.ref.media_type == "application/json":
        return msgspec.json.decode(blob.content)
    return blob.content.decode()


def restore_payload(spill: Spill) -> dict[str, Any]:
    """The whole payload, from the smaller one and the blobs."""
    contents = {blob.ref.ref: content_of(blob) for blob in spill.blobs}
    payload: dict[str, Any] = {}
    for key, value in spill.fact.payload.items():
        ref: Any = value.get("ref") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if not isinstance(ref, str) or ref not in contents:
            payload[key] = value
        elif key == "payloadRef":
            return contents[ref]
        else:
            payload[key.removesuffix("Ref")] = contents[ref]
    return payload


values = st.one_of(
    strategies.json_values,
    st.integers(900, 6_000).map(lambda size: "é" * size),
    st.integers(100, 900).map(lambda size: "\x01" * size),
    st.integers(200, 900).map(lambda size: [1.5] * size),
    st.integers(50, 200).map(lambda size: {f"k{n}": {"a": n} for n in range(size)}),
)
names = st.sampled_from(
    ["output", "outputRef", "outputRefRef", "text", "payload", "payloadRef", "toolCallId", "", "a"]
)
payloads = st.one_of(
    st.dictionaries(names, values, max_size=6),
    st.integers(0, 1_500).map(lambda size: {f"k{n}": "small" for n in range(size)}),
)


@pytest.mark.requirement("spill.fits")
@pytest.mark.requirement("spill.nothing-lost")
@pytest.mark.requirement("spill.refs-verify")
@pytest.mark.requirement("spill.preview")
@pytest.mark.requirement("spill.idempotent")
@given(payloads)
def test_the_laws_of_spilling(payload: dict[str, Any]):
    source = fact("run.status", payload=payload)
    spill = plan_spill(source, LIMIT)
    if spill is None:
        assert json_characters(payload) <= LIMIT
        return
    assert json_characters(payload) > LIMIT
    assert json_characters(spill.fact.payload) <= LIMIT
    assert restore_payload(spill) == payload
    assert plan_spill(spill.fact, LIMIT) is None
    for blob in spill.blobs:
        assert parse_ref(blob.ref.ref)[0] == blob.ref.kind == "output"
        assert blob.ref.ref == content_ref("output", blob.content)
        assert blob.ref.bytes == len(blob.content)
        assert blob.ref.preview is not None
        assert len(blob.ref.preview) <= PREVIEW_CHARACTERS
        assert blob.content.decode().startswith(blob.ref.preview)
        assert blob.ref.ref in spill.fact.ref_ids
    assert msgspec.structs.replace(spill.fact, payload=payload, ref_ids=()) == source


@pytest.mark.requirement("spill.idempotent")
def test_a_payload_at_the_limit_is_left_alone():
    size = PAYLOAD_CHARACTERS - len('{"text":""}')
    assert plan_spill(fact(payload={"text": "x" * size})) is None
    assert plan_spill(fact(payload={"text": "x" * (size + 1)})) is not None
    assert plan_spill(fact(payload={"text": "é" * size})) is None


@pytest.mark.requirement("spill.fits")
def test_the_biggest_value_moves_and_the_others_stay():
    source = fact(
        "tool.result",
        toolCallId="c1",
        refIds=["theirs"],
        payload={"output": BIG, "summary": "y" * 2_000, "exitCode": 0},
    )
    spill = plan_spill(source)
    assert spill is not None
    (blob,) = spill.blobs
    assert spill.fact.payload == {
        "summary": "y" * 2_000,
        "exitCode": 0,
        "outputRef": {
            "ref": blob.ref.ref,
            "kind": "output",
            "bytes": PAYLOAD_CHARACTERS,
            "mediaType": "text/plain",
            "preview": "x" * 512,
        },
    }
    assert spill.fact.ref_ids == ("theirs", blob.ref.ref)
    assert blob.content == BIG.encode()
    assert inspect_fact(spill.fact) == []


@pytest.mark.requirement("spill.nothing-lost")
def test_a_ref_that_is_there_already_is_not_overwritten():
    source = fact("tool.result", toolCallId="c1", payload={"output": BIG, "outputRef": "theirs"})
    spill = plan_spill(source)
    assert spill is not None
    assert restore_payload(spill) == source.payload


@pytest.mark.requirement("spill.fits")
def test_when_many_small_values_are_the_cause_all_move_but_the_ids():
    payload = {f"k{n}": "small value" for n in range(3_000)} | {"messageId": "m1", "partId": "p1"}
    spill = plan_spill(fact("model.completed", payload=payload))
    assert spill is not None
    (blob,) = spill.blobs
    assert set(spill.fact.payload) == {"messageId", "partId", "payloadRef"}
    assert msgspec.json.decode(blob.content) == payload
    assert blob.ref.media_type == "application/json"


@pytest.mark.requirement("spill.fits")
def test_ids_that_are_too_big_move_as_well():
    payload = {"toolCallId": "c" * 900, **{f"k{n}": "x" * 900 for n in range(50)}}
    for name in ("toolCallId", "messageId", "partId", "turnId", "taskId"):
        payload |= {name: "c" * 1_000 * 9}
    spill = plan_spill(fact(payload=payload))
    assert spill is not None
    assert json_characters(spill.fact.payload) <= PAYLOAD_CHARACTERS


@pytest.mark.requirement("spill.keeps-needs")
@pytest.mark.parametrize("many", [False, True], ids=["one big value", "many small values"])
@pytest.mark.parametrize("name", spec.RUNTIME_CLASSES)
def test_a_fact_that_was_spilled_still_carries_what_its_class_needs(name: str, many: bool):
    filler = {f"k{n}": "small value" for n in range(3_000)} if many else {"filler": BIG}
    source = full_fact(name, payload=filler)
    own = {"patchId": "p1", "commandId": "m1", "testRunId": "r1"}
    source = msgspec.structs.replace(
        source, tool_call_id=None, payload={**source.payload, **own, "toolCallId": "c1"}
    )
    assert missing_fields(source) == []
    spill = plan_spill(source)
    assert spill is not None
    assert inspect_fact(spill.fact) == []


@pytest.mark.requirement("spill.keeps-needs")
@pytest.mark.parametrize("result", [BIG, {"cases": ["passed"] * 6_000}])
def test_a_big_result_of_a_test_run_is_still_a_result(result: object):
    spill = plan_spill(full_fact("test.completed", payload={"result": result}))
    assert spill is not None
    assert inspect_fact(spill.fact) == []


@pytest.mark.requirement("spill.note")
def test_what_was_spilled_is_noted():
    source = fact("tool.result", 7, toolCallId="c1", threadId="t1", payload={"output": BIG})
    spill = plan_spill(source)
    assert spill is not None
    note, (blob,) = spill.note, spill.blobs
    assert note.event_class == note.title == "output.spilled"
    assert note.id == "fact_7#output.spilled"
    assert (note.thread_id, note.tool_call_id, note.sequence) == ("t1", "c1", None)
    assert note.ref_ids == (blob.ref.ref,)
    assert note.payload == {
        "eventId": "fact_7",
        "spilled": [{"ref": blob.ref.ref, "bytes": blob.ref.bytes}],
    }
    assert is_valid(inspect_fact(note))


@pytest.mark.requirement("spill.preview")
def test_a_preview_counts_characters_and_is_whole_text():
    spill = plan_spill(fact(payload={"text": "é" * PAYLOAD_CHARACTERS}))
    assert spill is not None
    assert spill.blobs[0].ref.preview == "é" * 512


def test_characters_of_json_are_counted_compactly():
    assert json_characters({"a": ["é", None]}) == len('{"a":["é",null]}')

"""One fact, three wire shapes: what each needs, how it is recognised, and that nothing is lost."""

import json
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    REQUIRED_FIELDS,
    SHAPES,
    Fact,
    InvalidFacts,
    Issue,
    Shape,
    UnreadableInput,
    decode_fact,
    decode_json,
    encode_fact,
    inspect_fact,
    kind_of,
    read_fact,
    shape_issues,
    shape_of,
    status_of,
    write_fact,
)
from factwire.facts.limits import NESTING_DEPTH, SEQUENCE_MAX
from tests.facts import spec, strategies
from tests.facts.samples import fact, runtime_event, wire, without

MINIMAL: dict[Shape, dict[str, Any]] = {
    "facts": wire(),
    "runtime-event": runtime_event("run.status"),
    "ui": {"type": "run.status"},
}
NEEDED = [(shape, name) for shape in SHAPES for name in spec.REQUIRED[shape]]


@pytest.mark.requirement("facts.shapes.required")
def test_the_required_fields_are_those_of_the_specification():
    assert {shape: list(names) for shape, names in REQUIRED_FIELDS.items()} == spec.REQUIRED


@pytest.mark.requirement("facts.shapes.required")
@pytest.mark.parametrize(("shape", "name"), NEEDED)
def test_a_missing_or_null_field_is_a_mismatch_at_its_place(shape: Shape, name: str):
    for value in (without(MINIMAL[shape], name), {**MINIMAL[shape], name: None}):
        issues = shape_issues(value, shape)
        assert [(issue.code, issue.path) for issue in issues] == [("schema_mismatch", f"$.{name}")]
        with pytest.raises(InvalidFacts) as caught:
            read_fact(value, shape)
        assert caught.value.issues == issues


@pytest.mark.requirement("facts.shapes.required")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_minimal_object_of_each_shape_is_a_fact(shape: Shape):
    assert shape_issues(MINIMAL[shape], shape) == []
    assert inspect_fact(MINIMAL[shape]) == []


@pytest.mark.requirement("facts.shapes.required")
@pytest.mark.parametrize(
    ("shape", "name"), [("facts", "id"), ("runtime-event", "eventId"), ("ui", "type")]
)
def test_an_identity_is_never_empty(shape: Shape, name: str):
    (issue,) = shape_issues({**MINIMAL[shape], name: ""}, shape)
    assert (issue.code, issue.path) == ("schema_mismatch", f"$.{name}")
    assert inspect_fact(json.dumps({**MINIMAL[shape], name: ""}), shape)[0].path == f"$.{name}"


@pytest.mark.requirement("validation.schema_mismatch")
@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("id", 7, "$.id"),
        ("kind", [], "$.kind"),
        ("title", {}, "$.title"),
        ("sequence", "1", "$.sequence"),
        ("sequence", True, "$.sequence"),
        ("sequence", 1.5, "$.sequence"),
        ("sequence", 1.0, "$.sequence"),
        ("turnId", 1, "$.turnId"),
        ("payload", [], "$.payload"),
        ("payload", "text", "$.payload"),
        ("refIds", "ref_1", "$.refIds"),
        ("artifactRefs", ["a", 1], "$.artifactRefs[1]"),
        ("evidenceRefs", {"0": "a"}, "$.evidenceRefs"),
        ("owner", False, "$.owner"),
        ("completedAt", 0, "$.completedAt"),
    ],
)
def test_a_wrong_type_is_a_mismatch_at_its_place(name: str, value: object, path: str):
    damaged = wire(**{name: value})
    for item in (damaged, json.dumps(damaged)):
        assert [(issue.code, issue.path) for issue in inspect_fact(item)] == [
            ("schema_mismatch", path)
        ]


@pytest.mark.requirement("validation.schema_mismatch")
def test_every_mismatch_of_a_fact_is_reported_at_once():
    damaged = without(wire(turnId=1, payload=[]), "title", "kind")
    assert [issue.path for issue in inspect_fact(damaged)] == [
        "$.kind",
        "$.title",
        "$.turnId",
        "$.payload",
    ]


@pytest.mark.requirement("validation.schema_mismatch")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([], "array"),
        ("x", "string"),
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
    ],
)
def test_what_is_no_object_is_no_fact(value: object, found: str):
    expected = [Issue("schema_mismatch", "$", f"expected an object, got {found}")]
    for shape in SHAPES:
        assert shape_issues(value, shape) == expected
    assert inspect_fact(json.dumps(value)) == expected
    with pytest.raises(InvalidFacts) as caught:
        decode_fact(json.dumps(value))
    assert caught.value.issues == expected


@pytest.mark.requirement("facts.shapes.detection")
@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (wire(), "facts"),
        (without(wire(), "eventClass"), "facts"),
        (without(wire(), "kind"), "facts"),
        (runtime_event("tool.started"), "runtime-event"),
        (without(runtime_event("tool.started"), "eventId"), "runtime-event"),
        (without(runtime_event("tool.started"), "timestamp", "payload"), "runtime-event"),
        (without(runtime_event("tool.started"), "type"), "runtime-event"),
        ({"type": "text.delta"}, "ui"),
        ({"type": "text.delta", "surface": "conversation", "sequence": 3}, "ui"),
        (wire(type="their field"), "facts"),
        (wire(eventId="their field"), "facts"),
        (wire(timestamp="their field"), "facts"),
        ({}, "facts"),
    ],
)
def test_the_shape_is_found_by_the_fields_that_only_it_has(value: dict[str, Any], shape: Shape):
    assert shape_of(value) == shape


@pytest.mark.requirement("facts.shapes.round-trip")
@given(strategies.facts())
def test_shape_a_written_and_read_is_the_same_fact(source: Fact):
    assert decode_fact(encode_fact(source), "facts") == source
    assert decode_fact(encode_fact(source).decode(), "facts") == source
    assert read_fact(write_fact(source), "facts") == source
    assert decode_json(encode_fact(source)) == decode_json(msgspec.json.encode(write_fact(source)))


@pytest.mark.requirement("facts.shapes.round-trip")
@pytest.mark.requirement("facts.shapes.conversion")
@given(strategies.runtime_facts())
def test_shape_b_written_and_read_is_the_same_fact(source: Fact):
    written = write_fact(source, "runtime-event")
    assert read_fact(written, "runtime-event") == source
    assert decode_fact(msgspec.json.encode(written), "runtime-event") == source


def _to_messages_snapshot(source: Fact) -> Fact:
    """Of a UI these may be a window of history, of a runtime they are all there are."""
    return msgspec.structs.replace(source, event_class="messages.snapshot")


@pytest.mark.requirement("facts.shapes.round-trip")
@pytest.mark.requirement("facts.shapes.conversion")
@given(strategies.facts() | strategies.facts().map(_to_messages_snapshot))
def test_shape_c_written_and_read_is_the_same_fact(source: Fact):
    written = write_fact(source, "ui")
    assert read_fact(written, "ui") == source
    assert decode_fact(msgspec.json.encode(written), "ui") == source


@pytest.mark.requirement("facts.shapes.round-trip")
@given(
    st.fixed_dictionaries(
        {"type": strategies.class_names | st.sampled_from([*spec.ALIASES, "unknown"])},
        optional={
            "kind": st.sampled_from(spec.KINDS),
            "title": strategies.texts,
            "turnId": st.none() | strategies.words,
            "payload": st.none() | strategies.payloads,
            "sequence": strategies.sequences,
            "": strategies.json_values,
            "custom": strategies.json_values,
        },
    )
)
def test_an_event_without_an_id_is_the_same_fact_each_time_it_is_read(event: dict[str, Any]):
    once = read_fact(event, "ui")
    assert read_fact(event, "ui") == once
    assert read_fact(write_fact(once, "ui"), "ui") == once
    assert "id" not in write_fact(once, "ui")


@pytest.mark.requirement("facts.shapes.round-trip")
@pytest.mark.parametrize("nothing", ["", None])
def test_an_event_with_an_empty_id_has_none(nothing: str | None):
    assert read_fact({"type": "text.delta", "id": nothing}) == read_fact({"type": "text.delta"})


@pytest.mark.requirement("facts.shapes.round-trip")
def test_events_that_differ_have_different_ids():
    ids = {
        read_fact(event, "ui").id
        for event in (
            {"type": "text.delta"},
            {"type": "text.final"},
            {"type": "text.delta", "payload": {"delta": "a"}},
            {"type": "text.delta", "sequence": 1},
            {"type": "text.delta", "custom": None},
        )
    }
    assert len(ids) == 5


@pytest.mark.requirement("facts.shapes.conversion")
def test_the_names_of_a_runtime_event():
    source = fact("tool.started", 4, sessionId="s1", toolCallId="c1", payload={"toolName": "grep"})
    assert write_fact(source, "runtime-event") == {
        "eventId": "fact_4",
        "kind": "state",
        "title": "A fact",
        "timestamp": "2026-06-10T00:00:00.000Z",
        "schemaVersion": "lime-runtime-event/v0.1",
        "runtimeId": "app-server",
        "sequence": 4,
        "type": "tool.started",
        "sessionId": "s1",
        "toolCallId": "c1",
        "payload": {"toolName": "grep"},
    }


@pytest.mark.requirement("facts.shapes.conversion")
def test_a_fact_is_written_without_what_it_does_not_say():
    assert (
        encode_fact(fact("run.status"))
        == json.dumps(wire("run.status"), separators=(",", ":")).encode()
    )
    assert write_fact(fact("run.status")) == wire("run.status")


@pytest.mark.requirement("facts.shapes.conversion")
@pytest.mark.parametrize("shape", ["runtime-event", "ui"])
def test_a_fact_without_a_class_is_of_unknown_type_and_comes_back_without_one(shape: Shape):
    source = msgspec.structs.replace(fact(), event_class=None, session_id="s1")
    written = write_fact(source, shape)
    assert written["type"] == "unknown"
    assert read_fact(written, shape) == source


@pytest.mark.requirement("facts.title-default")
@pytest.mark.requirement("facts.kind-default")
@pytest.mark.requirement("facts.status-default")
@pytest.mark.parametrize("name", [*spec.CLASSES, "never.heard"])
def test_kind_status_and_title_follow_from_the_class(name: str):
    for value in (runtime_event(name), {"type": name}):
        found = read_fact(value)
        assert (found.event_class, found.title) == (name, name)
        assert (found.kind, found.status) == (kind_of(name), status_of(name))


@pytest.mark.requirement("facts.title-default")
def test_what_a_provider_says_itself_is_kept():
    found = read_fact(runtime_event("tool.started", kind="skill", status="blocked", title="Hm"))
    assert (found.kind, found.status, found.title) == ("skill", "blocked", "Hm")


@pytest.mark.requirement("facts.aliases")
@pytest.mark.parametrize(("alias", "name"), spec.ALIASES.items())
def test_an_alias_is_normalised_in_every_shape(alias: str, name: str):
    assert decode_fact(json.dumps(wire(alias))).event_class == name
    assert read_fact(wire(alias, custom=1)).event_class == name
    for value in (runtime_event(alias), {"type": alias}):
        found = read_fact(value)
        assert (found.event_class, found.title) == (name, name)
        assert (found.kind, found.status) == (kind_of(name), status_of(name))


@pytest.mark.requirement("facts.unknown-fields")
@pytest.mark.parametrize("shape", SHAPES)
@given(extra=strategies.unknown_fields)
def test_unknown_fields_survive_in_every_shape(shape: Shape, extra: dict[str, Any]):
    found = read_fact({**MINIMAL[shape], **extra}, shape)
    assert found.extra == extra
    for target in SHAPES:
        written = write_fact(found, target)
        assert {key: written[key] for key in extra} == extra
    again = decode_json(encode_fact(found))
    assert isinstance(again, dict)
    assert {key: again[key] for key in extra} == extra


@pytest.mark.requirement("facts.unknown-fields")
@pytest.mark.parametrize("value", [{}, {"a": 1}, [], None, 0, ""])
def test_a_field_whose_name_is_empty_is_one_more_unknown_field(value: object):
    source = {**wire(), "": value}
    assert decode_fact(json.dumps(source)).extra == {"": value}
    assert read_fact(source).extra == {"": value}


@pytest.mark.requirement("facts.unknown-classes")
def test_an_unknown_class_is_kept():
    assert decode_fact(json.dumps(wire("never.heard"))).event_class == "never.heard"


@pytest.mark.requirement("vocabulary.open")
@pytest.mark.parametrize(
    "name",
    [
        *("kind", "status", "owner", "scope", "phase", "surface", "persistence", "control"),
        *("topology", "runtimeEntity"),
    ],
)
def test_a_word_outside_its_list_is_kept_and_valid(name: str):
    value = wire("run.status", **{name: "their own word"})
    assert inspect_fact(value) == []
    assert write_fact(read_fact(value)) == value


@pytest.mark.requirement("facts.shapes.null-is-absent")
def test_a_known_field_that_is_null_is_absent():
    value = wire(turnId=None, payload=None, refIds=None, eventClass=None)
    found = decode_fact(json.dumps(value))
    assert found == read_fact(value) == msgspec.structs.replace(fact(), event_class=None)


@pytest.mark.requirement("facts.sequence.range")
@pytest.mark.parametrize("sequence", [SEQUENCE_MAX + 1, -SEQUENCE_MAX - 1, 10**30, -(10**30)])
def test_a_sequence_that_a_reader_cannot_keep_exact_is_a_mismatch(sequence: int):
    for shape in SHAPES:
        value = {**MINIMAL[shape], "sequence": sequence}
        for item in (value, json.dumps(value)):
            (issue,) = inspect_fact(item, shape)
            assert (issue.code, issue.path) == ("schema_mismatch", "$.sequence")


@pytest.mark.requirement("facts.sequence.range")
def test_a_runtime_event_counts_from_zero_and_a_fact_from_anywhere():
    (issue,) = inspect_fact(runtime_event("run.status", -1))
    assert (issue.code, issue.path) == ("schema_mismatch", "$.sequence")
    assert inspect_fact(runtime_event("run.status", 0)) == []
    assert inspect_fact(wire("run.status", -1)) == []
    assert inspect_fact({"type": "run.status", "sequence": -1}) == []


@pytest.mark.requirement("facts.text-increments")
def test_increment_and_whole_text_stand_under_their_own_keys():
    found = read_fact(runtime_event("model.delta", payload={"delta": " a", "text": "so far a"}))
    assert found.payload == {"delta": " a", "text": "so far a"}


@pytest.mark.requirement("facts.shapes.round-trip")
def test_any_mapping_is_read():
    assert read_fact(MappingProxyType(wire(custom=1))) == read_fact(wire(custom=1))
    assert inspect_fact(MappingProxyType(wire("run.status", custom=1))) == []


@pytest.mark.requirement("validation.schema_mismatch")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"{}{}", "not JSON"),
        (b"nul", "not JSON"),
        (b"NaN", "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b"1" * 5_000, "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'"\\ud800"', "not JSON"),
        (b'{"ok": "caf\xc3\xa9", "a": "b\xff"}', "not UTF-8 at byte 23"),
        ('"\ud800"', "not UTF-8"),
        (b"[" * 100_000, "nested deeper than 200 levels"),
        (b"[" * 201 + b"]" * 201, "nested deeper than 200 levels"),
    ],
)
def test_text_that_cannot_be_read_says_why(data: bytes | str, reason: str):
    with pytest.raises(UnreadableInput) as caught:
        decode_json(data)
    assert caught.value.reason.startswith(reason)
    assert caught.value.code == "unreadable_input"
    with pytest.raises(UnreadableInput):
        decode_fact(data)
    (issue,) = inspect_fact(data)
    assert (issue.code, issue.path) == ("schema_mismatch", "$")
    assert issue.message.startswith(reason)


def nest_objects(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.requirement("facts.shapes.fast-is-slow")
@pytest.mark.parametrize("field", ["payload", "custom"])
def test_every_way_in_knows_the_same_depth(field: str):
    # The fact itself is the first level.
    deepest = wire("run.status", **{field: nest_objects(NESTING_DEPTH - 1)})
    too_deep = wire("run.status", **{field: nest_objects(NESTING_DEPTH)})
    for item in (deepest, msgspec.json.encode(deepest)):
        assert inspect_fact(item) == []
    for item in (too_deep, msgspec.json.encode(too_deep)):
        assert inspect_fact(item) == [
            Issue("schema_mismatch", "$", f"nested deeper than {NESTING_DEPTH} levels")
        ]


@pytest.mark.requirement("facts.shapes.round-trip")
def test_a_repeated_key_means_its_last_value():
    text = json.dumps(wire("run.status"))[:-1] + ', "title": 7, "title": "Last"}'
    assert decode_fact(text).title == "Last"

"""Validation of single facts and streams: every code, exact paths, nothing raised."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    INFORMATION,
    ISSUE_CODES,
    KNOWN_CLASSES,
    PAYLOAD_TYPES,
    SHAPES,
    AnyShape,
    Fact,
    FactError,
    InvalidFacts,
    Issue,
    IssueCode,
    StreamInspector,
    UnreadableInput,
    encode_fact,
    inspect_fact,
    inspect_fixture,
    inspect_stream,
    is_valid,
    read_fact,
    validate_fact,
    validate_stream,
)
from factwire.facts.limits import PAYLOAD_CHARACTERS, PREVIEW_CHARACTERS
from tests.facts import spec, strategies
from tests.facts.samples import complete, fact, runtime_event, wire, without

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEowIBAAKCAQEA' * 4}\n-----END RSA PRIVATE KEY-----\n"


def find_issues(item: Any, shape: AnyShape = "auto") -> list[tuple[str, str]]:
    return [(issue.code, issue.path) for issue in inspect_fact(item, shape)]


@pytest.mark.requirement("validation.collector")
def test_the_codes_are_those_of_the_specification():
    assert list(ISSUE_CODES) == spec.ISSUE_CODES == list(get_args(IssueCode))
    assert frozenset({"unknown_event_type"}) == INFORMATION


@pytest.mark.requirement("facts.legacy-terminals")
@pytest.mark.requirement("validation.schema_mismatch")
@pytest.mark.parametrize("name", spec.LEGACY_TERMINALS)
def test_a_legacy_terminal_is_a_mismatch_in_every_shape(name: str):
    assert find_issues(wire(name)) == [("schema_mismatch", "$.eventClass")]
    assert find_issues({"type": name}) == [("schema_mismatch", "$.type")]
    event = runtime_event(name, threadId="t1", turnId="u1")
    assert find_issues(event) == [("schema_mismatch", "$.type")]
    assert "turn.canceled" in inspect_fact(wire(name))[0].message


@pytest.mark.requirement("validation.unknown_event_type")
@pytest.mark.requirement("facts.unknown-classes")
def test_an_unknown_class_is_information_and_leaves_the_fact_valid():
    issues = inspect_fact(wire("never.heard"))
    assert issues == [
        Issue("unknown_event_type", "$.eventClass", "'never.heard' is not in the vocabulary")
    ]
    assert is_valid(issues)
    assert validate_fact(wire("never.heard")).event_class == "never.heard"
    assert find_issues({"type": "never.heard"}) == [("unknown_event_type", "$.type")]


@pytest.mark.requirement("validation.unknown_event_type")
@pytest.mark.parametrize("name", spec.CLASSES)
def test_no_class_of_the_specification_is_unknown(name: str):
    assert [code for code, _ in find_issues(complete(name))] == []


@pytest.mark.requirement("validation.missing_scope_id")
@pytest.mark.requirement("validation.paths")
def test_a_missing_id_is_reported_at_the_place_where_it_belongs():
    assert inspect_fact(wire("tool.started")) == [
        Issue("missing_scope_id", "$.toolCallId", "tool.started needs toolCallId")
    ]


SECRETS = [
    ({"api_key": "abc"}, "$.payload.api_key"),
    ({"apiKey": "abc"}, "$.payload.apiKey"),
    ({"Authorization": "abc"}, "$.payload.Authorization"),
    ({"password": "abc"}, "$.payload.password"),
    ({"clientSecret": "abc"}, "$.payload.clientSecret"),
    ({"token": "abc"}, "$.payload.token"),
    ({"a": [{"b": {"access_token": "abc"}}]}, "$.payload.a[0].b.access_token"),
    ({"note": f"see {JWT}"}, "$.payload.note"),
    ({"a": [["x", JWT]]}, "$.payload.a[0][1]"),
    ({"url": "https://me:hunter22@example.org/"}, "$.payload.url"),
    ({"pem": PEM}, "$.payload.pem"),
]


@pytest.mark.requirement("validation.secret_leak_risk")
@pytest.mark.parametrize(("payload", "path"), SECRETS, ids=[path for _, path in SECRETS])
def test_a_secret_in_a_payload_is_reported_at_its_place(payload: dict[str, Any], path: str):
    assert ("secret_leak_risk", path) in find_issues(wire("run.status", payload=payload))
    assert all(JWT not in issue.message for issue in inspect_fact(wire(payload=payload)))


@pytest.mark.requirement("validation.secret_leak_risk")
@pytest.mark.parametrize("name", ["title", "detail", "custom"])
def test_a_secret_outside_the_payload_is_reported_too(name: str):
    assert find_issues(wire("run.status", **{name: JWT})) == [("secret_leak_risk", f"$.{name}")]


@pytest.mark.requirement("validation.secret_leak_risk")
@pytest.mark.parametrize("key", ["totalTokens", "inputTokens", "max_tokens", "outputTokens"])
def test_a_counter_is_no_secret(key: str):
    assert find_issues(wire("run.status", payload={key: 7, "usage": {key: 7}})) == []


def pad_payload(size: int) -> dict[str, str]:
    """A payload of exactly `size` JSON characters."""
    return {"note": "x" * (size - len('{"note":""}'))}


@pytest.mark.requirement("validation.large_payload_inline")
def test_a_payload_may_have_32000_characters_and_no_more():
    for item in (wire(payload=pad_payload(32_000)), json.dumps(wire(payload=pad_payload(32_000)))):
        assert find_issues(item) == []
    for item in (wire(payload=pad_payload(32_001)), json.dumps(wire(payload=pad_payload(32_001)))):
        assert find_issues(item) == [("large_payload_inline", "$.payload")]


@pytest.mark.requirement("validation.large_payload_inline")
def test_characters_are_counted_and_not_bytes():
    payload = {"note": "é" * (PAYLOAD_CHARACTERS - len('{"note":""}'))}
    assert find_issues(wire(payload=payload)) == []
    assert find_issues(msgspec.json.encode(wire(payload=payload))) == []


@pytest.mark.requirement("validation.large_payload_inline")
@pytest.mark.requirement("facts.shapes.fast-is-slow")
def test_a_payload_that_grows_when_it_is_written_again_is_measured_as_written():
    text = json.dumps(wire())[:-1] + ',"payload":{"n":[' + ",".join(["1e15"] * 4_000) + "]}}"
    assert len(text) < PAYLOAD_CHARACTERS
    assert (
        find_issues(text)
        == find_issues(json.loads(text))
        == [("large_payload_inline", "$.payload")]
    )


@pytest.mark.requirement("validation.large_payload_inline")
@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"ref": "raw:1", "preview": "x" * 513}, "$.payload.preview"),
        ({"outputRef": {"ref": "raw:1", "preview": "x" * 513}}, "$.payload.outputRef.preview"),
        ({"a": [{"ref": "raw:1", "preview": "x" * 513}]}, "$.payload.a[0].preview"),
        ({"a b": {"ref": "raw:1", "preview": "x" * 513}}, '$.payload["a b"].preview'),
        (
            {"a": [["x", {"b": {"ref": "raw:1", "preview": "x" * 513}}]]},
            "$.payload.a[0][1].b.preview",
        ),
    ],
)
def test_a_preview_may_have_512_characters_and_no_more(payload: dict[str, Any], path: str):
    value = wire("never.heard", payload=payload)
    expected = [("unknown_event_type", "$.eventClass"), ("large_payload_inline", path)]
    assert find_issues(value) == find_issues(json.dumps(value)) == expected
    shorter = json.loads(json.dumps(value).replace("x" * 513, "x" * PREVIEW_CHARACTERS))
    assert find_issues(shorter) == expected[:1]


@pytest.mark.requirement("validation.large_payload_inline")
def test_what_a_tool_calls_a_preview_is_as_long_as_it_likes():
    assert find_issues(wire("run.status", payload={"args": {"preview": "x" * 5_000}})) == []


@pytest.mark.requirement("validation.refs")
@pytest.mark.parametrize("name", ["refIds", "artifactRefs", "evidenceRefs"])
@pytest.mark.parametrize(
    ("ref", "code"),
    [
        ("/etc/passwd", "schema_mismatch"),
        ("file:///etc/passwd", "schema_mismatch"),
        ("data:text/plain,hello", "large_payload_inline"),
        ("https://me:hunter22@example.org/x", "secret_leak_risk"),
    ],
)
def test_a_bad_ref_is_reported_at_its_place(name: str, ref: str, code: str):
    assert find_issues(wire("run.status", **{name: ["fine", ref]})) == [(code, f"$.{name}[1]")]


@pytest.mark.requirement("validation.refs")
@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"outputRef": "/etc/passwd"}, "$.payload.outputRef"),
        (
            {"outputRef": {"ref": "~/x", "kind": "output", "bytes": 1}},
            "$.payload.outputRef.ref",
        ),
    ],
)
def test_a_bad_ref_in_a_typed_payload_is_reported_at_its_place(payload: dict[str, Any], path: str):
    value = wire("tool.result", toolCallId="c1", payload=payload)
    assert find_issues(value) == find_issues(json.dumps(value)) == [("schema_mismatch", path)]


@pytest.mark.requirement("payloads.types")
@pytest.mark.parametrize("name", PAYLOAD_TYPES)
def test_a_typed_payload_field_of_a_wrong_type_is_a_mismatch(name: str):
    for field in msgspec.structs.fields(PAYLOAD_TYPES[name]):
        if field.type == str | None:
            payload = {field.encode_name: ["no text"]}
            path = f"$.payload.{field.encode_name}"
            assert ("schema_mismatch", path) in find_issues(complete(name, payload=payload))


@pytest.mark.requirement("payloads.types")
def test_every_wrong_field_of_a_payload_is_reported_in_place():
    payload = {"toolName": 1, "exitCode": "0", "outputRef": {"ref": 1}, "theirs": [1]}
    issues = find_issues(wire("tool.result", toolCallId="c1", payload=payload))
    assert [path for _, path in issues] == [
        "$.payload.toolName",
        "$.payload.outputRef",
        "$.payload.exitCode",
    ] or [path for _, path in issues] == [
        "$.payload.toolName",
        "$.payload.outputRef.ref",
        "$.payload.exitCode",
    ]


@pytest.mark.requirement("payloads.types")
def test_null_payload_fields_and_fields_of_others_are_free():
    value = wire("tool.result", toolCallId="c1", payload={"toolName": None, "theirs": {"a": 1}})
    assert find_issues(value) == []


@pytest.mark.requirement("payloads.types")
def test_only_classes_without_a_fixed_payload_have_no_type():
    untyped = {name.split(".")[0] for name in KNOWN_CLASSES if name not in PAYLOAD_TYPES}
    assert untyped == {
        *("session", "thread", "messages", "hook", "team", "run", "state", "diagnostic", "metric")
    } - {"hook"}


@pytest.mark.requirement("validation.strict")
def test_the_strict_variant_raises_one_error_with_every_issue():
    damaged = wire("tool.started", payload={"password": "abc", "toolName": 1})
    with pytest.raises(InvalidFacts) as caught:
        validate_fact(damaged)
    assert caught.value.issues == inspect_fact(damaged)
    assert len(caught.value.issues) == 3
    assert caught.value.code == "invalid_facts"
    assert str(caught.value).startswith("missing_scope_id at $.toolCallId: ")
    assert str(caught.value).endswith("(and 2 more)")
    assert isinstance(caught.value, FactError)


@pytest.mark.requirement("validation.strict")
def test_a_valid_fact_is_returned():
    value = complete("tool.started")
    assert validate_fact(value) == validate_fact(json.dumps(value)) == read_fact(value)
    assert validate_fact(read_fact(value)) == read_fact(value)


@pytest.mark.requirement("validation.strict")
def test_a_stream_is_validated_as_a_whole():
    stream = [complete("turn.started", 1), wire("tool.started", 3)]
    with pytest.raises(InvalidFacts) as caught:
        validate_stream(stream)
    assert [(issue.code, issue.path) for issue in caught.value.issues] == [
        ("missing_scope_id", "$[1].toolCallId"),
        ("sequence_gap", "$[1].sequence"),
    ]
    validate_stream([complete("turn.started", 1), wire("never.heard", 2)])


@pytest.mark.requirement("validation.paths")
def test_issues_of_a_stream_stand_at_the_index_of_their_fact():
    stream = [
        fact("run.status", 1),
        json.dumps(without(wire("run.status", 2), "title")),
        "{",
        runtime_event("model.delta", 3),
    ]
    assert [(issue.code, issue.path) for issue in inspect_stream(stream)] == [
        ("schema_mismatch", "$[1].title"),
        ("schema_mismatch", "$[2]"),
        ("missing_scope_id", "$[3].threadId"),
        ("missing_scope_id", "$[3].turnId"),
    ]


@pytest.mark.requirement("validation.sequence_violation")
def test_a_violation_is_an_issue_of_the_fact_that_commits_it():
    stream = [complete("turn.started", 1), complete("tool.result", 2)]
    assert inspect_stream(stream) == [
        Issue(
            "sequence_violation",
            "$[1]",
            "tool_result_without_start: tool call_1 was never opened, or is closed already",
        )
    ]
    assert inspect_stream(stream, mode="off") == []


@pytest.mark.requirement("validation.sequence_violation")
@pytest.mark.requirement("lifecycle.modes")
def test_failing_closed_ends_with_the_first_violation():
    inspector = StreamInspector(mode="fail-closed")
    assert inspector.feed(complete("turn.started", 1)) == []
    assert [issue.code for issue in inspector.feed(complete("tool.result", 2))] == [
        "sequence_violation"
    ]
    assert inspector.stopped
    assert inspector.feed(complete("tool.result", 3)) == []
    assert inspector.facts == 2


@pytest.mark.requirement("validation.sequence_violation")
def test_two_equal_ui_events_without_ids_are_two_events():
    delta = {"type": "text.delta", "payload": {"delta": "ha"}}
    assert inspect_stream([delta, delta]) == []


@pytest.mark.requirement("validation.collector")
def test_unreadable_text_in_a_stream_inspector_is_the_callers_to_handle():
    with pytest.raises(UnreadableInput):
        StreamInspector().feed(b"{")


@pytest.mark.requirement("validation.collector")
@given(strategies.python_values)
def test_the_collector_raises_for_no_value(value: Any):
    for shape in ("auto", *SHAPES):
        for issue in inspect_fact(value, shape):
            assert issue.code in ISSUE_CODES
            assert issue.path.startswith("$")


@pytest.mark.requirement("validation.collector")
@given(
    st.dictionaries(
        st.sampled_from([*wire(), *runtime_event("x"), "refIds", "turnId", "expected", "events"]),
        strategies.python_values,
    )
)
def test_the_collector_raises_for_no_object_with_fields_of_facts(value: dict[str, Any]):
    whole = {**wire("tool.result"), **value}
    for shape in ("auto", *SHAPES):
        assert isinstance(inspect_fact(whole, shape), list)
        assert isinstance(inspect_stream([value, whole, value], shape), list)
    assert isinstance(inspect_fixture({"events": [value, whole], **value}), list)


@pytest.mark.requirement("validation.collector")
@pytest.mark.parametrize(
    "payload",
    [
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": float("nan")},
        {"a": 10**5000},
        {"a": object()},
    ],
)
def test_what_json_cannot_say_is_an_issue_and_no_error(payload: dict[str, Any]):
    for shape in SHAPES:
        value = {**wire(), **runtime_event("run.status"), "payload": payload}
        issues = inspect_fact(value, shape)
        assert [issue.code for issue in issues if issue.code != "schema_mismatch"] == []
        if payload.get("a") == payload.get("a"):
            assert issues[0].message.startswith("cannot be written as JSON")


@pytest.mark.requirement("validation.collector")
@pytest.mark.parametrize("levels", [300, 900, 5_000])
def test_a_value_that_is_nested_without_end_is_an_issue(levels: int):
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    assert find_issues(wire(payload={"a": value})) == [("schema_mismatch", "$")]


@pytest.mark.requirement("facts.shapes.fast-is-slow")
@given(strategies.facts())
def test_text_of_a_whole_fact_is_judged_like_the_object(source: Fact):
    text = encode_fact(source)
    value = msgspec.json.decode(text)
    assert inspect_fact(text, "facts") == inspect_fact(value, "facts")
    assert inspect_fact(text.decode(), "facts") == inspect_fact(value, "facts")


@pytest.mark.requirement("facts.shapes.fast-is-slow")
@given(strategies.Mutation.wires())
def test_text_of_a_damaged_fact_is_judged_like_the_object(value: dict[str, Any]):
    text = msgspec.json.encode(value)
    again = msgspec.json.decode(text)
    assert inspect_fact(text) == inspect_fact(again)
    assert inspect_stream([text, text]) == inspect_stream([again, again])


@pytest.mark.requirement("facts.shapes.fast-is-slow")
@given(strategies.facts())
def test_a_typed_fact_is_judged_like_its_object(source: Fact):
    assert inspect_fact(source) == inspect_fact(msgspec.json.decode(encode_fact(source)), "facts")


TIMES = [
    "2026-06-10T00:00:00Z",
    "2026-06-10t23:59:60.123456789z",
    "2024-02-29T12:00:00+05:30",
    "0001-01-01T00:00:00-00:00",
]
NO_TIMES = [
    "",
    "now",
    "unknown",
    "2026-06-10",
    "2026-06-10T00:00:00",
    "2026-06-10 00:00:00Z",
    "2026-13-10T00:00:00Z",
    "2026-06-32T00:00:00Z",
    "2026-06-10T24:00:00Z",
    "2026-06-10T00:60:00Z",
    "2026-06-10T00:00:00.Z",
    "2026-06-10T00:00:00+0530",
    "2026-06-10T00:00:00Z\n",
    "٢٠٢٦-06-10T00:00:00Z",
    "1781049600",
]


@pytest.mark.requirement("validation.timestamp")
@pytest.mark.parametrize("at", TIMES)
def test_a_time_is_one_by_rfc_3339(at: str):
    assert find_issues(wire("turn.started", threadId="t", turnId="t", createdAt=at)) == []
    event = runtime_event("turn.started", threadId="t1", turnId="u1", timestamp=at)
    assert find_issues(event) == []


@pytest.mark.requirement("validation.timestamp")
@pytest.mark.parametrize("at", NO_TIMES)
def test_a_time_that_is_none_is_a_mismatch_in_its_place(at: str):
    value = wire("turn.started", threadId="t", turnId="t", createdAt=at)
    assert find_issues(value) == [("schema_mismatch", "$.createdAt")]
    assert find_issues(json.dumps(value).encode()) == [("schema_mismatch", "$.createdAt")]
    event = runtime_event("turn.started", threadId="t1", turnId="u1", timestamp=at)
    assert find_issues(event) == [("schema_mismatch", "$.timestamp")]


@pytest.mark.requirement("validation.timestamp")
def test_an_event_of_a_user_interface_may_have_no_time_and_none_that_is_wrong():
    assert find_issues({"type": "queue.changed"}) == []
    assert find_issues({"type": "queue.changed", "createdAt": "soon"}) == [
        ("schema_mismatch", "$.createdAt")
    ]


@pytest.mark.requirement("validation.timestamp")
def test_a_long_text_instead_of_a_time_is_cut_in_the_message():
    (issue,) = inspect_fact(wire("turn.started", threadId="t", turnId="t", createdAt="x" * 5_000))
    assert len(issue.message) < 200


@pytest.mark.fuzz
@pytest.mark.requirement("validation.timestamp")
@given(
    st.datetimes(), st.sampled_from(["Z", "z", ".5Z", ".123456Z", "+05:30", "-23:59", "", "+05"])
)
def test_every_moment_is_a_time_if_it_has_an_offset(moment: Any, rest: str):
    at = moment.isoformat(timespec="seconds") + rest
    issues = find_issues(wire("turn.started", threadId="t", turnId="t", createdAt=at))
    assert (issues == []) is (rest not in ("", "+05"))

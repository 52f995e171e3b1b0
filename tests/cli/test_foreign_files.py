"""Files that Factwire did not write: read leniently, and shown without their secrets."""

import zipfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import factwire.conformance
from factwire.facts import Intake, InvalidFacts, inspect_fact
from tests.cli.cli_commands import Factwire, lines
from tests.facts.secret_corpus import POSITIVES

TIME = "2026-06-10T00:00:00.000Z"

SEED_EVENTS: dict[str, dict[str, Any]] = {
    "turn.submitted": {
        "id": "evt_turn_submitted",
        "schemaVersion": "lime-runtime-event/v0.1",
        "runtimeId": "app-server",
        "threadId": "thread_1",
        "turnId": "turn_1",
        "eventClass": "turn.submitted",
        "kind": "state",
        "status": "pending",
        "sequence": 1,
        "title": "Turn submitted",
        "createdAt": TIME,
    },
    "model.delta": {
        "id": "evt_model_delta_1",
        "eventClass": "model.delta",
        "kind": "model",
        "status": "running",
        "sequence": 3,
        "payload": {"messageId": "msg_1", "delta": "Hello, Lime."},
        "title": "Assistant text",
        "createdAt": TIME,
    },
    "tool.started": {
        "id": "evt_tool_started",
        "eventClass": "tool.started",
        "kind": "tool",
        "status": "running",
        "taskId": "task_1",
        "toolCallId": "tool_search_1",
        "title": "Search started",
        "payload": {"toolName": "search"},
        "createdAt": TIME,
    },
    "action.required": {
        "id": "evt_action_required",
        "eventClass": "action.required",
        "kind": "action",
        "status": "blocked",
        "taskId": "task_1",
        "actionId": "action_approval_1",
        "title": "Approval required",
        "createdAt": TIME,
    },
    "artifact.changed": {
        "id": "evt_artifact_changed",
        "eventClass": "artifact.changed",
        "kind": "draft",
        "owner": "artifact",
        "status": "completed",
        "taskId": "task_1",
        "artifactId": "artifact_1",
        "artifactRefs": ["artifact_1"],
        "title": "Artifact changed",
        "createdAt": TIME,
    },
    "subagent.started": {
        "type": "subagent.started",
        "eventId": "evt_subagent_started",
        "sequence": 7,
        "schemaVersion": "lime-runtime-event/v0.1",
        "runtimeId": "app-server",
        "sessionId": "session_1",
        "taskId": "task_2",
        "subagentId": "subagent_1",
        "payload": {"role": "researcher", "parentTaskId": "task_1", "title": "Search"},
    },
}
"""The example objects of seeds 000 and 001, as they are but for the language of a text."""

FILLED: dict[str, str] = {
    "turn.submitted": "",
    "model.delta": "schemaVersion (1), runtimeId (1)",
    "tool.started": "schemaVersion (1), runtimeId (1), sequence (1)",
    "action.required": "schemaVersion (1), runtimeId (1), sequence (1)",
    "artifact.changed": "schemaVersion (1), runtimeId (1), sequence (1)",
    "subagent.started": "timestamp (1)",
}


def remark_on(path: Path, fields: str, facts: str = "1 fact lacks") -> str:
    sentence = f"{facts} fields; filled in from the rest of the file or left unknown: {fields}"
    return f"note: fields_filled_in: {path}: {sentence}\n" if fields else ""


@pytest.mark.requirement("reading.lenient")
@pytest.mark.parametrize("name", SEED_EVENTS)
def test_each_example_of_the_seeds_is_projected_played_converted_and_compared(
    factwire: Factwire, name: str
):
    event = SEED_EVENTS[name]
    path = factwire.file(lines(event))
    remark = remark_on(path, FILLED[name])
    projected = factwire("project", path, "--json")
    assert (projected.code, projected.err) == (0, remark)
    fact_id = event.get("id") or event["eventId"]
    assert msgspec.json.decode(projected.out)["hydration"]["eventCount"] == 1
    assert msgspec.json.decode(projected.out)["runtime"]["latestEventId"] == fact_id
    played = factwire("play", path)
    assert (played.code, played.err) == (0, remark)
    assert factwire("diff", path, path).code == 0
    checked = factwire("validate", path)
    assert (checked.code, checked.out, checked.err) == (0, "valid: 1 fact, no issues\n", remark)
    for target in ("facts", "ui", "ag-ui", "ai-sdk"):
        converted = factwire("convert", path, "--to", target)
        assert (converted.code, converted.err) == (0, remark), target
    pack = factwire.folder / f"{name}.pack"
    assert factwire("evidence", "export", "--facts", path, "--unsigned", "--output", pack).code == 0


@pytest.mark.requirement("reading.lenient")
def test_the_examples_in_one_file_fill_in_for_each_other(factwire: Factwire):
    path = factwire.file(lines(*SEED_EVENTS.values()))
    report = factwire("validate", path, "--json", "--mode", "off")
    [gap] = msgspec.json.decode(report.out)["issues"]
    assert (gap["code"], gap["path"]) == ("sequence_gap", "$[1].sequence")
    done = factwire("convert", path)
    facts = [msgspec.json.decode(line) for line in done.out.splitlines()]
    fields = "schemaVersion (4), runtimeId (4), sequence (3), timestamp (1)"
    assert (done.code, done.err) == (0, remark_on(path, fields, "5 facts lack"))
    assert [fact["sequence"] for fact in facts] == [1, 3, 4, 5, 6, 7]
    assert {fact["runtimeId"] for fact in facts} == {"app-server"}
    assert {fact["schemaVersion"] for fact in facts} == {"lime-runtime-event/v0.1"}
    assert [fact["createdAt"] for fact in facts] == [TIME] * 5 + ["unknown"]
    for given_event, fact in zip(SEED_EVENTS.values(), facts, strict=True):
        stated = {**given_event}
        if "eventId" in stated:
            stated |= {"id": stated.pop("eventId"), "eventClass": stated.pop("type")}
        assert {name: fact[name] for name in stated} == stated


@pytest.mark.requirement("reading.lenient")
@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ([None, None, None], [1, 2, 3]),
        ([5, None, 7], [5, 6, 7]),
        ([None, None, 9], [7, 8, 9]),
        ([None, None, 1], [None, 0, 1]),
        ([5, None, 6], [5, None, 6]),
        ([3, None, None], [3, 4, 5]),
        ([9, None, 1], [1, 9, 10]),
    ],
)
def test_a_sequence_is_filled_in_by_place_where_no_fact_has_it(
    factwire: Factwire, stated: list[int | None], read: list[int | None]
):
    base = SEED_EVENTS["tool.started"]
    facts = [
        {**base, "id": f"f{place}", **({} if number is None else {"sequence": number})}
        for place, number in enumerate(stated)
    ]
    done = factwire("convert", factwire.file(lines(*facts)))
    found = [msgspec.json.decode(line).get("sequence") for line in done.out.splitlines()]
    assert found == read


@pytest.mark.requirement("reading.lenient")
def test_what_the_shape_to_write_requires_is_filled_in_with_a_remark(factwire: Factwire):
    path = factwire.file(lines(*SEED_EVENTS.values()))
    done = factwire("convert", path, "--to", "runtime-event")
    rows = [msgspec.json.decode(line) for line in done.out.splitlines()]
    lacking = sum("sessionId" not in event for event in SEED_EVENTS.values())
    assert (done.code, f"sessionId ({lacking})" in done.err) == (0, True)
    assert [row["sequence"] for row in rows] == [1, 3, 4, 5, 6, 7]
    assert sum(row["sessionId"] == "unknown" for row in rows) == lacking
    assert factwire("convert", factwire.file(lines(*rows)), "--to", "runtime-event").err == ""


@pytest.mark.requirement("reading.lenient")
@pytest.mark.parametrize("target", ["facts", "runtime-event"])
@pytest.mark.parametrize(
    ("stated", "read"), [([None, None, None], [1, 2, 3]), ([5, None, 7], [5, 6, 7])]
)
def test_events_of_a_screen_without_a_sequence_are_converted_in_their_order(
    factwire: Factwire, target: str, stated: list[int | None], read: list[int]
):
    events = [
        {"type": "text.delta", "id": f"u{place}", "payload": {"messageId": "m", "delta": "ha"}}
        | {"threadId": "thread", "turnId": "turn", "sessionId": "session", "createdAt": TIME}
        | ({} if number is None else {"sequence": number})
        for place, number in enumerate(stated)
    ]
    path = factwire.file(lines(*events))
    done = factwire("convert", path, "--from", "ui", "--to", target)
    rows = [msgspec.json.decode(line) for line in done.out.splitlines()]
    count = stated.count(None)
    fields = remark_on(
        path, f"sequence ({count})", f"{count} facts lack" if count > 1 else "1 fact lacks"
    )
    assert (done.code, done.err) == (0, fields)
    assert [row["sequence"] for row in rows] == read
    assert [row.get("id") or row["eventId"] for row in rows] == ["u0", "u1", "u2"]


@pytest.mark.requirement("reading.gate-strict")
@pytest.mark.parametrize("name", [name for name in SEED_EVENTS if FILLED[name]])
def test_the_gate_refuses_what_a_reader_fills_in(factwire: Factwire, name: str):
    event = SEED_EVENTS[name]
    missing = {f"$.{each.split()[0]}" for each in FILLED[name].split(", ")}
    assert {issue.path for issue in inspect_fact(event)} == missing
    with pytest.raises(InvalidFacts) as refused:
        Intake().feed(msgspec.json.encode(event))
    assert {issue.path for issue in refused.value.issues} == missing
    assert factwire("validate", factwire.file(lines(event)), "--strict").code == 1


FIXTURES: list[list[dict[str, Any]]] = [
    msgspec.json.decode(path.read_bytes())["events"]
    for path in sorted((Path(factwire.conformance.__file__).parent / "fixtures").glob("*.json"))
]


def text_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every text in a fact, and of every object, which can take one more entry."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        yield (*path, "added")
        for key, item in cast("dict[str, Any]", value).items():
            yield from text_places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from text_places(item, (*path, index))


def plant(fact: dict[str, Any], place: tuple[Any, ...], text: str, *, as_key: bool) -> None:
    """Put a text where another one is, or under a new key, or as one."""
    target: Any = fact
    for step in place[:-1]:
        target = target[step]
    if as_key and isinstance(target, dict):
        target[text] = "value"
    else:
        target[place[-1]] = text


@st.composite
def planted_files(draw: st.DrawFn) -> tuple[bytes, str]:
    events = deepcopy(draw(st.sampled_from(FIXTURES)))
    case = draw(st.sampled_from(POSITIVES))
    fact = draw(st.sampled_from(events))
    place = draw(st.sampled_from(list(text_places(fact))))
    plant(fact, place, case.text, as_key=draw(st.booleans()))
    return lines(*events).encode(), case.secret


def all_output(factwire: Factwire, path: Path) -> Iterator[tuple[str, bytes]]:
    """Everything that any command makes of a file, by the command."""
    commands: list[tuple[str | Path, ...]] = [
        ("project", path),
        ("project", path, "--json"),
        ("play", path),
        ("diff", path, path),
        ("diff", path, path, "--json"),
        ("validate", path),
        ("validate", path, "--json"),
        ("conformance", "--facts", path, "--level", "projection"),
        *(
            ("convert", path, "--to", target)
            for target in ("facts", "runtime-event", "ui", "ag-ui", "ai-sdk")
        ),
    ]
    for command in commands:
        done = factwire(*command)
        yield " ".join(map(str, command)), (done.out + done.err).encode()
    pack = factwire.folder / "planted.pack"
    done = factwire(
        "evidence", "export", "--facts", path, "--unsigned", "--force", "--output", pack
    )
    yield "export", (done.out + done.err).encode()
    if done.code == 0:
        with zipfile.ZipFile(pack) as archive:
            for name in archive.namelist():
                yield f"pack {name}", archive.read(name)


@pytest.mark.requirement("redaction.foreign-files")
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(planted_files())
def test_a_secret_planted_anywhere_in_a_file_comes_out_nowhere(
    factwire: Factwire, planted: tuple[bytes, str]
):
    data, secret = planted
    path = factwire.file(data)
    for command, output in all_output(factwire, path):
        assert secret.encode() not in output, command
        assert msgspec.json.encode(secret)[1:-1] not in output, command


@pytest.mark.requirement("redaction.foreign-files")
@pytest.mark.parametrize("raw", [b'{"type": "odd", "note": "%s"}\n', b"not JSON: %s\n"])
def test_a_raw_item_is_kept_without_its_secrets(factwire: Factwire, raw: bytes):
    secret = b"ghp_" + b"a1B2c3D4" * 5
    path, blobs = factwire.file(raw % secret), factwire.folder / "blobs"
    done = factwire("convert", path, "--from", "claude-code", "--blobs", blobs)
    kept = [file.read_bytes() for file in blobs.rglob("*") if file.is_file()]
    assert done.code == 0
    assert secret not in b"".join([done.out.encode(), done.err.encode(), *kept])
    assert b"[redacted]" in b"".join(kept)

"""No ref is lost: whatever field of whatever class holds one, it is in the timeline and on the
surface of the thing it belongs to.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact, decode_fact, refs_of
from factwire.facts.classes.class_tables import KNOWN_CLASSES
from factwire.facts.fact import snake_case
from factwire.facts.refs import PLAIN_NAMES, REF_HOLDERS, REF_NAME
from factwire.projection import ProjectionState, project
from factwire.projection.limits import DIFF_CHARACTERS
from tests.projection.fact_maker import FactMaker, as_json, project_facts
from tests.sources.recordings import RECORDINGS, name_of
from tests.sources.recordings import facts_of as facts_of_recording

ROOT = Path(__file__).resolve().parents[2]
STREAMS = sorted((ROOT / "examples" / "streams").glob("*.ndjson"))
FIXTURES = sorted((ROOT / "src" / "factwire" / "conformance" / "fixtures").glob("*.json"))

REF = f"output:sha256:{'4' * 64}"

IDS: dict[str, Any] = {
    "turnId": "turn",
    "runId": "run",
    "messageId": "message",
    "partId": "part",
    "toolCallId": "call",
    "actionId": "action",
    "artifactId": "artifact",
    "evidenceId": "evidence",
    "reviewId": "review",
    "taskId": "task",
    "attemptId": "attempt",
    "subagentId": "subagent",
    "handoffId": "handoff",
    "jobId": "job",
    "jobItemId": "item",
    "processId": "process",
    "path": "a.py",
    "patchId": "patch",
    "commandId": "command",
    "testRunId": "tests",
    "trialId": "trial",
    "hookId": "hook",
    "reasonCode": "denied",
    "failureCategory": "io",
    "exitCode": 0,
    "result": "passed",
    "delta": "x",
    "text": "x",
}
LISTS = ("refIds", "artifactRefs", "evidenceRefs")
NAMES = (
    *("ref", "outputRef", "previewRef", "contentRef", "diffRef", "exportRef", "summaryRef"),
    *("replayRef", "reviewRef", "packRef", "snapshotRef", "resultRef", "transcriptRef", "rawRef"),
    *("trajectoryRef", "encryptedRef", "somethingNewRef"),
)


def build_forms() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way in which a fact can state one ref."""
    yield from ((name, {name: [REF]}) for name in LISTS)
    yield from ((f"payload.{name}", {"payload": {name: [REF]}}) for name in LISTS)
    for name in (*NAMES, "refIds", "outputRefs"):
        value = [REF] if name.endswith("s") else REF
        for spelling in dict.fromkeys((name, snake_case(name))):
            yield f"payload.{spelling}", {"payload": {spelling: value}}
    described = {"ref": REF, "kind": "output", "bytes": 3}
    yield "object", {"payload": {"outputRef": described}}
    yield "objects", {"payload": {"outputRefs": [described]}}
    yield "outputs", {"payload": {"outputs": [{"title": "log", "ref": REF}]}}
    yield "outputs as texts", {"payload": {"outputs": [REF]}}
    yield "attachments as texts", {"payload": {"attachments": [REF]}}
    yield "refs beside the payload", {"refs": [REF]}
    yield "ref beside the payload", {"outputRef": {"ref": REF}}


FORMS = dict(build_forms())


def make_fact(tell: FactMaker, event_class: str, fields: dict[str, Any]) -> Fact:
    required = {"refIds": ["log"]} if event_class == "command.output" else {}
    ids = dict(IDS)
    if not event_class.startswith(("evidence.", "review.", "benchmark.")):
        ids.pop("evidenceId", None)  # There it is a ref itself, which has a test of its own.
    return tell(event_class, **{**ids, **required, **fields})


@pytest.mark.requirement("refs.found")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_ref_is_found_in_a_fact(form: str):
    assert refs_of(make_fact(FactMaker(), "tool.result", FORMS[form])) == [REF]


@pytest.mark.requirement("refs.found")
@given(st.text(max_size=12), st.sampled_from(["ref", "Ref", "_ref"]), st.sampled_from(["", "s"]))
def test_a_field_holds_refs_if_its_name_ends_in_a_word_for_one(start: str, word: str, many: str):
    name = f"{'' if word == 'ref' else start}{word}{many}"
    assert refs_of(FactMaker()("tool.result", payload={name: REF})) == [REF]
    assert refs_of(FactMaker()("tool.result", payload={f"{name}erence": REF, "href": REF})) == []


@pytest.mark.requirement("refs.found")
def test_no_field_that_is_passed_over_can_hold_a_ref():
    assert [name for name in PLAIN_NAMES if REF_NAME.search(name) or name in REF_HOLDERS] == []


@pytest.mark.requirement("refs.found")
def test_what_is_no_ref_is_left_out_and_the_order_is_kept():
    fact = FactMaker()(
        "tool.result",
        refIds=["a", "b"],
        evidenceRefs=["c"],
        payload={
            "outputRef": "b",
            "diffRef": {"ref": "d"},
            "previewRef": 3,
            "packRef": {"ref": None},
            "outputRefs": ["e", "", None, {"ref": "f"}, [["g"]]],
            "args": {"ref": "main"},
            "input": [{"type": "image", "assetRef": "h"}, "i"],
        },
    )
    assert refs_of(fact) == ["a", "b", "c", "d", "e", "f", "h"]


@pytest.mark.requirement("projection.refs.timeline")
@pytest.mark.parametrize("event_class", KNOWN_CLASSES)
def test_a_ref_of_any_class_in_any_field_is_in_the_timeline(event_class: str):
    for form, fields in FORMS.items():
        tell = FactMaker()
        first = make_fact(tell, event_class, fields)
        begun = project([first], "thread")
        assert _is_in_timeline(begun, first), form
        tell = FactMaker()
        plain, second = (make_fact(tell, event_class, each) for each in ({}, fields))
        continued = project([plain, second], "thread")
        assert _is_in_timeline(continued, plain) or _is_in_timeline(continued, second), form


def _is_in_timeline(state: ProjectionState, fact: Fact) -> bool:
    entries = (entry for entry in state.timeline if fact.id in entry.source_event_ids)
    return any(REF in (entry.refs or ()) for entry in entries)


Surface = Callable[[ProjectionState], object]

SURFACES: dict[str, Surface] = {
    "tool": lambda state: state.tools["call"],
    "action": lambda state: state.actions["action"],
    "artifact": lambda state: state.artifacts["artifact"],
    "file": lambda state: state.coding.files["a.py"],
    "patch": lambda state: state.coding.patches["patch"],
    "test": lambda state: state.coding.tests["tests"],
    "process": lambda state: state.processes["process"],
    "command": lambda state: state.processes["command"],
    "hook": lambda state: state.hooks["hook"],
    "evidence": lambda state: state.evidence.items["evidence"],
    "review": lambda state: state.evidence.reviews["review"],
    "subagent": lambda state: state.subagents,
    "task": lambda state: state.tasks["task"],
    "handoff": lambda state: state.team_workbench.handoff_events["handoff"],
}
WITHOUT_SURFACE = {
    "tool.catalog.resolved": "it is about no call",
    "tool.args.delta": "a piece of input; the whole input has the refs",
}
CLASSES_WITH_SURFACE = [
    name
    for name in KNOWN_CLASSES
    if name.partition(".")[0] in SURFACES and name not in WITHOUT_SURFACE
]


@pytest.mark.requirement("projection.refs.surfaces")
@pytest.mark.parametrize("event_class", CLASSES_WITH_SURFACE)
def test_a_ref_is_on_the_surface_of_the_thing_it_belongs_to(event_class: str):
    surface = SURFACES[event_class.partition(".")[0]]
    for form, fields in FORMS.items():
        state = project_facts(make_fact(FactMaker(), event_class, fields))
        assert REF in _find_texts(as_json(surface(state))), form


NAMED: list[tuple[str, dict[str, Any], str]] = [
    ("tool.result", {"refIds": [REF]}, "tools.call.outputRef"),
    ("tool.result", {"payload": {"refIds": [REF]}}, "tools.call.outputRef"),
    ("tool.result", {"payload": {"output_ref": REF}}, "tools.call.outputRef"),
    ("tool.failed", {"refIds": [REF]}, "tools.call.outputRef"),
    ("artifact.exported", {"payload": {"ref": REF}}, "artifacts.artifact.exportRef"),
    (
        "artifact.export.completed",
        {"payload": {"ref": {"ref": REF}}},
        "artifacts.artifact.exportRef",
    ),
    ("artifact.diff.ready", {"payload": {"ref": REF}}, "artifacts.artifact.diffRef"),
    ("artifact.preview.ready", {"payload": {"preview_ref": REF}}, "artifacts.artifact.previewRef"),
    ("artifact.created", {"payload": {"ref": REF}}, "artifacts.artifact.contentRef"),
    ("evidence.changed", {"payload": {"replayRef": REF}}, "evidence.items.evidence.replayRef"),
    ("evidence.changed", {"payload": {"reviewRef": REF}}, "evidence.items.evidence.reviewRef"),
    ("evidence.exported", {"payload": {"packRef": REF}}, "evidence.items.evidence.packRef"),
    ("evidence.exported", {"payload": {"ref": REF}}, "evidence.items.evidence.exportRef"),
    ("review.completed", {"payload": {"review_ref": REF}}, "evidence.reviews.review.reviewRef"),
    ("review.completed", {"payload": {"reviewRef": REF}}, "evidence.items.evidence.reviewRef"),
    (
        "context.compaction.completed",
        {"payload": {"summaryRef": REF}},
        "context.compactions.0.summaryRef",
    ),
    ("history.compacted", {"payload": {"summary_ref": REF}}, "context.compactions.0.summaryRef"),
    ("action.required", {"payload": {"diffRef": {"ref": REF}}}, "actions.action.diffRef"),
    ("command.output", {"payload": {"output_ref": REF}}, "processes.command.outputRef"),
    (
        "subagent.completed",
        {"payload": {"result_ref": REF}},
        "subagents.threads.subagent.resultRef",
    ),
    (
        "benchmark.trial.completed",
        {"payload": {"trajectory_ref": REF}},
        "evidence.trials.trial.trajectoryRef",
    ),
]


@pytest.mark.requirement("projection.refs.surfaces")
@pytest.mark.parametrize(("event_class", "fields", "place"), NAMED)
def test_a_ref_whose_meaning_is_stated_has_a_field_of_its_own(
    event_class: str, fields: dict[str, Any], place: str
):
    found = as_json(project_facts(make_fact(FactMaker(), event_class, fields)))
    for step in place.split("."):
        found = found[int(step) if isinstance(found, list) else step]
    assert found == REF


@pytest.mark.requirement("projection.refs.surfaces")
def test_refs_of_input_are_not_taken_for_output():
    tell = FactMaker()
    state = project_facts(
        make_fact(tell, "tool.started", {"refIds": ["input"], "payload": {"argsRef": "input"}}),
        make_fact(tell, "tool.output.delta", {"payload": {"delta": "x", "stream": "stdout"}}),
        make_fact(tell, "tool.result", {"refIds": ["data", "log"], "payload": {"dataRef": "data"}}),
    )
    tool = state.tools["call"]
    assert (tool.output_ref, tool.ref_ids) == ("log", ["input", "data", "log"])


@pytest.mark.requirement("projection.refs.makers")
def test_an_artifact_keeps_the_task_and_the_subagent_that_any_of_its_facts_names():
    tell = FactMaker()
    state = project_facts(
        tell("artifact.created", artifactId="a", turnId="turn"),
        tell("artifact.updated", artifactId="a", payload={"task_id": "task"}),
        tell("artifact.updated", artifactId="a", subagentId="subagent", taskId="another"),
    )
    made = state.artifacts["a"]
    assert (made.task_id, made.subagent_id) == ("task", "subagent")


def _find_refs(value: Any, *, is_ref: bool = False) -> Iterator[str]:
    """Every ref at any depth, by the ends of names alone: a second opinion on `refs_of`."""
    if isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            ends = name.lower().endswith(("ref", "refs", "refids")) and name != "href"
            yield from _find_refs(item, is_ref=ends)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _find_refs(item, is_ref=is_ref)
    elif is_ref and isinstance(value, str) and value:
        yield value


def _read_facts(path: Path) -> list[Fact]:
    if path.suffix == ".json":
        events = msgspec.json.decode(path.read_bytes())["events"]
        return [decode_fact(msgspec.json.encode(event)) for event in events]
    return [decode_fact(line) for line in path.read_bytes().splitlines()]


@pytest.mark.requirement("projection.refs.timeline")
@pytest.mark.parametrize("path", [*STREAMS, *FIXTURES], ids=lambda path: path.stem)
def test_every_ref_of_every_stream_and_fixture_is_in_the_state(path: Path):
    assert _find_lost(_read_facts(path)) == []


@pytest.mark.requirement("projection.refs.timeline")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_every_ref_of_every_recording_is_in_the_state(path: Path):
    assert _find_lost(facts_of_recording(path)) == []


def _find_lost(facts: list[Fact]) -> list[str]:
    shown = set(_find_texts(as_json(project(facts))))
    return [
        f"{fact.event_class}: {ref}"
        for fact in facts
        for ref in _find_refs(as_json(fact))
        if ref not in shown
    ]


def _find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            yield name
            yield from _find_texts(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _find_texts(item)
    elif isinstance(value, str):
        yield value


DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.mark.requirement("projection.diff.inline")
def test_an_inline_diff_is_shown_with_what_it_changes():
    tell = FactMaker()
    changed = tell("file.changed", artifactId="file", path="a.py", diff=DIFF)
    versioned = tell("artifact.versioned", artifactId="doc", versionId="1", diff=DIFF)
    applied = tell("patch.applied", patchId="patch", diff=DIFF)
    ready = tell("artifact.diff.ready", artifactId="turn", diff=DIFF)
    called = tell("tool.result", toolCallId="call", diff=DIFF)
    waiting = tell("action.required", actionId="action", actionType="tool_approval", diff=DIFF)
    state = project_facts(changed, versioned, applied, ready, called, waiting)
    assert state.actions["action"].diff == DIFF
    assert state.coding.files["a.py"].diff == DIFF
    assert state.coding.patches["patch"].diff == DIFF
    assert state.tools["call"].diff == DIFF
    assert {name: made.diff for name, made in state.artifacts.items()} == {
        "file": DIFF,
        "doc": None,
        "turn": DIFF,
    }
    assert [version.diff for version in state.artifacts["doc"].versions] == [DIFF]


@pytest.mark.requirement("projection.diff.inline")
def test_the_next_diff_takes_the_place_of_the_last_inline_or_not():
    tell = FactMaker()
    facts = [
        tell(event_class, artifactId="file", actionId="action", path="a.py", **fields)
        for fields in ({"diff": DIFF}, {"diffRef": REF}, {"diff": DIFF}, {})
        for event_class in ("file.changed", "action.updated")
    ]
    shown = [
        (made.diff, made.diff_ref)
        for count in range(2, 9, 2)
        for made in (
            project_facts(*facts[:count]).artifacts["file"],
            project_facts(*facts[:count]).coding.files["a.py"],
            project_facts(*facts[:count]).actions["action"],
        )
    ]
    expected = [(DIFF, None), (None, REF), (DIFF, None), (DIFF, None)]
    assert shown == [each for each in expected for _ in range(3)]


@pytest.mark.requirement("projection.diff.inline")
@given(st.lists(st.integers(1, 9_000), min_size=1, max_size=20))
def test_a_diff_past_the_limit_ends_with_a_whole_line_and_is_marked(lengths: list[int]):
    diff = "".join(f"+{'x' * length}\n" for length in lengths)
    made = project([FactMaker()("file.changed", artifactId="a", path="a", diff=diff)])
    file = made.coding.files["a"]
    assert file.diff is not None
    assert diff.startswith(file.diff)
    assert file.diff.endswith("\n")
    assert len(file.diff) <= DIFF_CHARACTERS
    assert file.diff_truncated is (True if len(diff) > DIFF_CHARACTERS else None)
    assert (file.diff == diff) is (len(diff) <= DIFF_CHARACTERS)


@pytest.mark.requirement("projection.refs.timeline")
@pytest.mark.parametrize(
    "payload",
    [
        {"outer": {"outputRef": "log:1"}},
        {"outer": {"inner": {"outputRef": {"ref": "log:1"}}}},
        {"rows": [{"cells": [{"refs": ["log:1"]}]}]},
        {"a": [[{"b": {"c": {"d": {"logRef": "log:1"}}}}]]},
    ],
    ids=["in an object", "two deep", "in lists", "far down"],
)
def test_a_ref_at_any_depth_of_an_unknown_class_is_in_its_entry(payload: dict[str, Any]):
    make = FactMaker()
    state = project_facts(make("vendor.thing.happened", turnId="turn", payload=payload))
    [entry] = state.timeline
    assert entry.refs == ["log:1"]

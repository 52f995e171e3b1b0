"""How things end: by class, status and payload, with their turn, and at which times."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import KNOWN_CLASSES, Fact, decode_fact, inspect_fact, is_valid, status_of
from factwire.facts.outcomes import (
    CLASS_STATUSES,
    ENDING_CLASSES,
    OPEN_STATUSES,
    STATED_STATUSES,
)
from factwire.facts.vocabulary import STATUSES
from factwire.outlets.outlet import OUTLETS
from factwire.projection import Projection, ProjectionState, project
from factwire.projection.coding import Process
from factwire.projection.turn_closing import TURN_ENDINGS
from tests.facts.samples import complete
from tests.projection.fact_maker import FactMaker, as_json, codes, project_facts
from tests.projection.generated_streams import THREAD, build_stream

TURN = {"turnId": "turn"}
CALL = {**TURN, "toolCallId": "call"}
ENDS = ("turn.completed", "turn.failed", "turn.canceled")
STREAMS = sorted(Path("examples/streams").glob("*.ndjson"))


def read_stream(path: Path) -> list[Fact]:
    return [decode_fact(line) for line in path.read_bytes().splitlines() if line.strip()]


# A failure is a failure on every surface.


FAILED_RESULTS: list[dict[str, Any]] = [
    {"status": "failed"},
    {"payload": {"status": "failed"}},
    {"payload": {"status": "error"}},
    {"payload": {"isError": True}},
    {"payload": {"is_error": True}},
]


@pytest.mark.requirement("projection.outcome.tool")
@pytest.mark.parametrize("fields", FAILED_RESULTS)
def test_a_result_that_states_a_failure_is_one_on_every_surface(fields: dict[str, Any]):
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("tool.started", **CALL, toolName="shell"),
        tell("tool.result", **CALL, **fields),
    )
    (remark,) = state.diagnostics.items.values()
    (part,) = as_json(state.messages[0].parts)
    entry = next(entry for entry in state.timeline if entry.entry_id == "tool:call")
    assert {
        "tool": state.tools["call"].state,
        "preview": part["status"],
        "timeline": entry.status,
        "graph": state.graph.nodes["tool:call"].status,
        "diagnostic": (remark.code, remark.severity, remark.subject),
    } == {
        "tool": "output-error",
        "preview": "output-error",
        "timeline": "failed",
        "graph": "output-error",
        "diagnostic": ("tool.failed", "warning", "call"),
    }


@pytest.mark.requirement("facts.outcome-mismatch")
@pytest.mark.parametrize(("name", "status"), sorted(product(STATED_STATUSES, STATUSES)))
def test_a_status_that_contradicts_its_class_is_an_issue_and_no_other(name: str, status: str):
    fact = {**complete(name), "status": status}
    found = [issue for issue in inspect_fact(fact) if issue.code == "outcome_mismatch"]
    allowed = status in STATED_STATUSES[name]
    assert [issue.path for issue in found] == ([] if allowed else ["$.status"])
    assert is_valid(found) is allowed


@pytest.mark.requirement("facts.outcome-mismatch")
@pytest.mark.parametrize("flag", ["isError", "is_error"])
def test_a_result_flagged_as_an_error_is_an_issue(flag: str):
    for value, paths in ((True, [f"$.payload.{flag}"]), (False, []), ("true", [])):
        issues = inspect_fact(complete("tool.result", payload={flag: value}))
        assert [issue.path for issue in issues if issue.code == "outcome_mismatch"] == paths


@pytest.mark.requirement("facts.outcome-mismatch")
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_the_status_that_a_class_implies_never_contradicts_it(name: str):
    assert status_of(name) in STATED_STATUSES.get(name, STATUSES)


CONTRADICTIONS = [
    ("turn.completed", "failed", "failed"),
    ("turn.completed", "canceled", "canceled"),
    ("turn.failed", "completed", "failed"),
    ("turn.failed", "canceled", "failed"),
    ("turn.canceled", "completed", "canceled"),
    ("turn.canceled", "failed", "canceled"),
]


@pytest.mark.requirement("projection.outcome.turn")
@pytest.mark.parametrize(("name", "status", "outcome"), CONTRADICTIONS)
def test_a_turn_is_shown_no_better_than_class_or_status_say(name: str, status: str, outcome: str):
    tell = FactMaker()
    state = project_facts(tell("turn.started", **TURN), tell(name, **TURN, status=status))
    assert state.runtime.latest_turn_status == outcome
    assert state.graph.nodes["turn:turn"].status == outcome
    assert [entry.status for entry in state.timeline] == [outcome]


SHOWN = [
    ("tool.started", "pending", "pending"),
    ("tool.started", "completed", "running"),
    ("tool.failed", "completed", "failed"),
    ("tool.failed", "canceled", "canceled"),
    ("tool.result", "partial", "partial"),
    ("evidence.changed", "pending", "completed"),
    ("evidence.changed", "failed", "failed"),
    ("file.read", "pending", "completed"),
    ("model.requested", "pending", "completed"),
    ("task.updated", "pending", "unknown"),
    ("task.cancelled", "pending", "canceled"),
    ("task.timed_out", "pending", "failed"),
    ("process.terminated", "pending", "canceled"),
    ("permission.denied", "pending", "failed"),
    ("patch.applied", "pending", "completed"),
    ("vendor.special", "pending", "unknown"),
    ("vendor.special", "completed", "completed"),
]


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize(("name", "status", "shown"), SHOWN)
def test_the_stated_status_is_shown_where_it_says_more_than_the_class(
    name: str, status: str, shown: str
):
    fields = {"toolCallId": "c", "evidenceId": "e", "taskId": "t", "processId": "p"}
    payload = {"path": "x", "reasonCode": "x", "patchId": "p"}
    state = project_facts(FactMaker()(name, **TURN, **fields, status=status, payload=payload))
    assert state.timeline[0].status == shown


@pytest.mark.requirement("projection.outcome.status")
def test_a_fact_that_says_nothing_of_its_subject_leaves_its_status():
    tell = FactMaker()
    state = project_facts(tell("task.started", taskId="t"), tell("task.updated", taskId="t"))
    assert [entry.status for entry in state.timeline] == ["running"]


ROWS = {
    "task": {"taskId": "t"},
    "subagent": {"subagentId": "s", "taskId": "t"},
    "job": {"jobId": "j"},
}


def row_of(state: ProjectionState, family: str) -> str:
    lists = {"task": state.tasks, "subagent": state.subagents.threads, "job": state.jobs}
    (key,) = {"task": "t", "subagent": "s", "job": "j"}[family]
    return lists[family][key].status


STATED_ROWS = [
    *(
        (name, status, row)
        for name in ("task.updated", "subagent.status")
        for status, row in (
            ("running", "running"),
            ("completed", "completed"),
            ("failed", "failed"),
            ("canceled", "cancelled"),
            ("pending", "unknown"),
        )
    ),
    ("task.updated", "blocked", "blocked"),
    ("subagent.status", "blocked", "waiting"),
    *((f"{family}.failed", "canceled", "cancelled") for family in ROWS),
    *((f"{family}.completed", "failed", "failed") for family in ROWS),
    ("task.started", "blocked", "blocked"),
    ("job.started", "blocked", "blocked"),
    ("subagent.started", "blocked", "waiting"),
    ("task.created", "running", "running"),
    ("subagent.spawned", "running", "running"),
    ("subagent.closed", "failed", "failed"),
    ("task.created", "pending", "draft"),
    ("subagent.spawned", "pending", "spawned"),
]


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize(("name", "status", "row"), STATED_ROWS)
def test_a_stated_status_is_shown_in_every_list(name: str, status: str, row: str):
    family = name.partition(".")[0]
    state = project_facts(FactMaker()(name, **TURN, **ROWS[family], status=status))
    assert row_of(state, family) == row
    key = {"task": "task:t", "subagent": "subagent:s", "job": "job:j"}[family]
    assert state.graph.nodes[key].status == row
    entry = next(entry for entry in state.timeline if entry.entry_id == key)
    words = {"cancelled": "canceled", "waiting": "blocked", "draft": "pending"}
    assert entry.status == {**words, "spawned": "pending"}.get(row, row)


@pytest.mark.requirement("projection.outcome.status")
def test_what_the_payload_says_counts_before_a_stated_status():
    fields = {**TURN, "taskId": "t", "status": "running"}
    state = project_facts(FactMaker()("task.updated", **fields, payload={"status": "paused"}))
    assert state.tasks["t"].status == "paused"


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize("end", ["subagent.failed", "subagent.completed"])
def test_closing_a_subagent_does_not_hide_that_it_failed(end: str):
    tell = FactMaker()
    state = project_facts(
        tell("subagent.started", **TURN, **ROWS["subagent"]),
        tell(end, **TURN, **ROWS["subagent"], failureCategory="no_route"),
        tell("subagent.closed", **TURN, **ROWS["subagent"]),
    )
    failed = end == "subagent.failed"
    assert row_of(state, "subagent") == ("failed" if failed else "closed")
    assert state.graph.nodes["subagent:s"].status == ("failed" if failed else "closed")
    assert state.timeline[0].status == ("failed" if failed else "completed")
    assert state.team_workbench.roster_nodes["s"].status == ("failed" if failed else "closed")


# The end of a turn.


OUTLIVING = {kind for kind, ending in TURN_ENDINGS.items() if ending is None}
_OPEN_WORDS = OPEN_STATUSES | {"input-streaming", "input-available", "progress"}


def open_things(state: ProjectionState, turns: set[str]) -> list[str]:
    """Whatever reads as going on in turns that are over, but what outlives one."""
    entries = [
        entry.entry_id
        for entry in state.timeline
        if entry.turn_id in turns
        and entry.status in _OPEN_WORDS
        and entry.entry_id.partition(":")[0] not in OUTLIVING
    ]
    nodes = [
        node.node_id
        for node in state.graph.nodes.values()
        if node.parent_id in {f"turn:{turn}" for turn in turns}
        and node.status in _OPEN_WORDS
        and node.node_type not in OUTLIVING
    ]
    tools = [f"tool {t.tool_call_id}" for t in state.tools.values() if t.state in _OPEN_WORDS]
    works = (state.actions, state.processes, state.hooks, state.coding.patches, state.coding.tests)
    others = [
        f"{type(work).__name__} {key}"
        for table in works
        for key, work in table.items()
        if work.turn_id in turns and work.status in _OPEN_WORDS
        if not (isinstance(work, Process) and work.kind == "process")
    ]
    ended = {key for key, tool in state.tools.items() if tool.turn_id in turns}
    return (
        entries + nodes + [each for each in tools if each.removeprefix("tool ") in ended] + others
    )


def ended_turns(facts: list[Fact]) -> set[str]:
    return {fact.turn_id for fact in facts if fact.event_class in ENDS and fact.turn_id}


@pytest.mark.requirement("projection.outcome.turn-end")
@pytest.mark.parametrize("seed", range(40))
def test_a_finished_turn_leaves_nothing_open_in_generated_streams(seed: int):
    facts = build_stream(seed)
    assert find_rows_left_open(facts, THREAD) == []
    assert open_things(project(facts, THREAD), ended_turns(facts)) == []


@pytest.mark.requirement("projection.outcome.turn-end")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_finished_turn_leaves_nothing_open_in_the_examples(path: Path):
    assert find_rows_left_open(read_stream(path)) == []


_ROW_WORDS = (
    _OPEN_WORDS
    | {"acting", "streaming", "spawned", "waiting", "preparing", "queued"}
    | {"draft", "accepted", "retrying", "cancelling", "paused", "waiting_input"}
)
_APART = ("background_teammate", "remote_teammate")


def rows_in(value: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a document, and its path."""
    if isinstance(value, dict):
        row = cast("dict[str, Any]", value)
        yield path, row
        members: Iterable[tuple[object, object]] = row.items()
    else:
        members = enumerate(cast("list[object]", value) if isinstance(value, list) else ())
    for key, item in members:
        yield from rows_in(item, f"{path}/{key}")


def rows_left_open(state: ProjectionState, turn: str) -> list[str]:
    """Every row of any surface that belongs to a turn and reads as going on, but what facts state
    to be apart from the turn.
    """
    document = as_json(state)
    away = {
        key
        for key, row in document["subagents"]["threads"].items()
        if row.get("topology") in _APART or row.get("channelId") or row.get("remoteTaskId")
    }
    found: list[str] = []
    for path, row in rows_in(document):
        name: str = row.get("entryId", path.rpartition("/")[2])
        lasts = name.partition(":")[0] in OUTLIVING or row.get("kind") == "process"
        if row.get("turnId") == turn and not lasts and row.get("subagentId") not in away:
            phase = () if row.get("status") == "completed" else (row.get("phase"),)
            words = (row.get("status"), row.get("state"), *phase)
            found.extend(f"{path} {word}" for word in words if word in _ROW_WORDS)
    team, nodes = document["teamWorkbench"], document["graph"]["nodes"]
    tables = (
        ("task", document["tasks"], team["workItems"]),
        ("subagent", document["subagents"]["threads"], team["rosterNodes"]),
    )
    for kind, rows, cards in tables:
        for key, row in rows.items():
            shown = (cards.get(key, row)["status"], nodes.get(f"{kind}:{key}", row)["status"])
            if row.get("turnId") == turn and set(shown) != {row["status"]}:
                found.append(f"{kind} {key} is {row['status']} and reads {shown}")
    return found


def find_rows_left_open(facts: list[Fact], thread: str | None = None) -> list[str]:
    """What reads as open right behind each end of a turn."""
    projection, found = Projection(thread), list[str]()
    for fact in facts:
        projection.apply(fact)
        if fact.event_class in ENDS and projection.state.hydration.status == "live":
            found += rows_left_open(projection.state, fact.turn_id or "")
    return found


STARTS: dict[str, dict[str, Any]] = {
    "tool.started": {"toolCallId": "call"},
    "tool.args.delta": {"toolCallId": "call", "payload": {"delta": "{"}},
    "tool.progress": {"toolCallId": "call"},
    "command.started": {"payload": {"commandId": "command"}},
    "patch.started": {"payload": {"patchId": "patch"}},
    "test.started": {"payload": {"testRunId": "test"}},
    "hook.started": {"payload": {"hookId": "hook"}},
    "action.required": {"actionId": "action"},
    "permission.requested": {"actionId": "asked"},
    "run.status": {"runId": "run", "payload": {"status": "running"}},
    "model.delta": {"messageId": "m", "payload": {"delta": "x"}},
    "reasoning.started": {"messageId": "m", "partId": "r"},
    "plan.delta": {"payload": {"delta": "x"}},
    "context.compaction.started": {},
    "model.requested": {"status": "running"},
    "vendor.special": {"status": "blocked"},
    "sandbox.applied": {"status": "pending"},
    "subagent.spawned": {"subagentId": "sub", "taskId": "sub-task"},
    "subagent.started": {"subagentId": "sub", "taskId": "sub-task"},
    "worker.started": {"workerId": "worker"},
    "agent.spawned": {"agentId": "colleague"},
    "task.created": {"taskId": "task"},
    "task.started": {"taskId": "task"},
    "task.waiting": {"taskId": "task"},
    "task.paused": {"taskId": "task"},
    "task.attempt.started": {"taskId": "task", "attemptId": "attempt"},
    "handoff.requested": {"handoffId": "handoff"},
    "review.requested": {"reviewId": "review", "evidenceId": "evidence"},
    "artifact.export.started": {"artifactId": "artifact"},
    "history.rollback.started": {},
}


@pytest.mark.requirement("projection.outcome.turn-end")
@given(
    names=st.lists(st.sampled_from(sorted(STARTS)), min_size=1, max_size=12),
    end=st.sampled_from(ENDS),
    cut=st.integers(0, 12),
)
def test_whatever_was_begun_is_over_with_its_turn(names: list[str], end: str, cut: int):
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), *(tell(name, **TURN, **STARTS[name]) for name in names)]
    facts.append(tell(end, **TURN))
    state = project_facts(*facts)
    assert open_things(state, {"turn"}) == []
    assert rows_left_open(state, "turn") == []
    assert state.subagents.active_thread_ids == []
    assert state.runtime.status == end.removeprefix("turn.")
    first = Projection(facts[0].thread_id)
    first.apply_all(facts[:cut])
    restored = Projection.restore(first.checkpoint())
    restored.apply_all(facts[cut:])
    assert as_json(restored.state) == as_json(state)


@pytest.mark.requirement("projection.outcome.turn-end")
@pytest.mark.parametrize("end", ENDS)
def test_how_each_kind_of_thing_ends_with_its_turn(end: str):
    tell = FactMaker()
    begun = {name: STARTS[name] for name in STARTS if name.endswith((".started", ".required"))}
    begun["process.started"] = {"processId": "process"}
    begun["job.started"] = {"jobId": "job"}
    state = project_facts(
        *(tell(name, **TURN, **fields) for name, fields in begun.items()), tell(end, **TURN)
    )
    outcome = end.removeprefix("turn.")
    shown = {
        "tool": state.tools["call"].state,
        "command": state.processes["command"].status,
        "patch": state.coding.patches["patch"].status,
        "test": state.coding.tests["test"].status,
        "hook": state.hooks["hook"].status,
        "action": state.actions["action"].status,
        "task": state.tasks["task"].status,
        "attempt": state.tasks["task"].attempts[0].status,
        "subagent": state.subagents.threads["sub"].status,
        "compaction": state.context.compactions[0].status,
    }
    assert shown == {kind: getattr(TURN_ENDINGS[kind], outcome) for kind in shown}
    lasting = (state.processes["process"], state.jobs["job"])
    assert [each.status for each in lasting] == ["running"] * 2
    unknown = [state.tools["call"], state.processes["command"], state.coding.patches["patch"]]
    is_known = end == "turn.canceled"
    assert [each.completed_at is not None for each in unknown] == [is_known] * 3


@pytest.mark.requirement("projection.outcome.turn-end")
@pytest.mark.parametrize("end", ENDS)
def test_what_facts_state_to_be_apart_from_a_turn_goes_on_after_it(end: str):
    tell = FactMaker()
    inner = {"turnId": "inner", "subagentId": "own-turn", "taskId": "t"}
    state = project_facts(
        tell("turn.started", **TURN),
        tell("subagent.started", **TURN, subagentId="away", taskId="a",
             surface="background_teammate"),
        tell("subagent.spawned", **TURN, subagentId="own-turn", taskId="t"),
        tell("turn.started", **inner),
        tell("task.started", **TURN, taskId="t"),
        tell("task.started", **TURN, taskId="remote", remoteTaskId="there"),
        tell("task.started", **TURN, taskId="item", runtimeEntity="work_item"),
        tell("task.started", **TURN, taskId="mine"),
        tell(end, **TURN),
    )  # fmt: skip
    assert state.subagents.active_thread_ids == ["away", "own-turn"]
    running = {key for key, task in state.tasks.items() if task.status == "running"}
    assert running == {"t", "remote", "item"}
    more = tell("task.progress", taskId="mine"), tell("turn.completed", **inner)
    later = project_facts(*[*state_facts(end), *more])
    assert later.tasks["mine"].status == "running"


def state_facts(end: str) -> list[Fact]:
    tell = FactMaker()
    return [
        *(tell("run.status", **TURN) for _ in range(6)),
        tell("turn.started", **TURN),
        tell("task.started", **TURN, taskId="mine"),
        tell(end, **TURN),
    ]


@pytest.mark.requirement("projection.outcome.turn-end")
def test_a_process_ends_with_the_call_that_is_cut_off_and_goes_on_after_one_that_ended():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **TURN, toolCallId="open"),
        tell("process.started", **TURN, toolCallId="open", processId="inner"),
        tell("tool.started", **TURN, toolCallId="done"),
        tell("process.started", **TURN, toolCallId="done", processId="background"),
        tell("tool.result", **TURN, toolCallId="done"),
        tell("turn.canceled", **TURN),
    )
    found = {key: process.status for key, process in state.processes.items()}
    assert found == {"inner": "cancelled", "background": "running"}


@pytest.mark.requirement("projection.outcome.turn-end")
@pytest.mark.parametrize("end", ENDS)
def test_what_is_begun_again_in_another_turn_ends_with_that_one(end: str):
    tell = FactMaker()
    begun = {name: STARTS[name] for name in STARTS if name.endswith((".started", ".required"))}
    first = [tell(name, turnId="first", **fields) for name, fields in begun.items()]
    first.append(tell("turn.completed", turnId="first"))
    again = [tell(name, **TURN, **fields) for name, fields in begun.items()]
    assert open_things(project_facts(*first, *again, tell(end, **TURN)), {"first", "turn"}) == []


CANCELS: list[tuple[str, dict[str, Any]]] = [
    ("turn.canceled", {}),
    ("tool.failed", {"toolCallId": "call", "status": "canceled"}),
    ("tool.failed", {"toolCallId": "call", "payload": {"failureCategory": "cancelled"}}),
    ("tool.result", {"toolCallId": "call", "status": "canceled"}),
]


@pytest.mark.requirement("projection.outcome.cancel")
@pytest.mark.parametrize(("name", "fields"), CANCELS)
def test_a_call_that_is_cancelled_is_cancelled_everywhere(name: str, fields: dict[str, Any]):
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("tool.started", **CALL),
        tell("command.started", **CALL),
        tell("patch.started", **CALL, payload={"patchId": "patch"}),
        tell("action.required", **CALL, actionId="action"),
        tell(name, **TURN, **fields),
    )
    entries = {entry.entry_id: entry.status for entry in state.timeline}
    (part,) = as_json(state.messages[0].parts)
    assert (state.tools["call"].state, part["status"]) == ("cancelled", "cancelled")
    assert state.processes["call"].status == "cancelled"
    assert state.coding.patches["patch"].status == "cancelled"
    assert state.actions["action"].status == "cancelled"
    assert state.graph.nodes["tool:call"].status == "cancelled"
    assert state.graph.nodes["action:action"].status == "cancelled"
    inner = ("tool:call", "command:call", "patch:patch", "action:action")
    assert [entries[key] for key in inner] == ["canceled"] * 4
    assert codes(state) == []
    assert state.runtime.status == ("canceled" if name == "turn.canceled" else "running")


# The first answer counts.


ANSWERS: list[tuple[str, dict[str, Any]]] = [
    ("action.resolved", {"decision": "approve"}),
    ("action.resolved", {"decision": "deny"}),
    ("action.resolved", {"decision": "answer", "response": {"a": 1}}),
    ("action.resolved", {"decision": "answer", "response": {"a": 2}}),
    ("action.cancelled", {}),
    ("action.expired", {"decision": "denied"}),
]


@pytest.mark.requirement("projection.action.first-answer")
@pytest.mark.parametrize(("first", "second"), list(product(ANSWERS, ANSWERS)))
def test_the_first_answer_counts_and_another_one_is_remarked_on(
    first: tuple[str, dict[str, Any]], second: tuple[str, dict[str, Any]]
):
    tell = FactMaker()
    ids = {**TURN, "actionId": "action"}
    facts = [tell("action.required", **ids)]
    facts += [tell(name, **ids, payload=payload) for name, payload in (first, second)]
    before, after = project_facts(*facts[:2]), project_facts(*facts)
    assert as_json(after.actions) == as_json(before.actions)
    shown = [(entry.status, entry.event_class, entry.completed_at) for entry in before.timeline]
    assert shown == [(e.status, e.event_class, e.completed_at) for e in after.timeline]
    node, same = (state.graph.nodes["action:action"] for state in (before, after))
    assert (node.status, node.completed_at) == (same.status, same.completed_at)
    assert codes(after) == ([] if first == second else ["action_already_decided"])


@pytest.mark.requirement("projection.action.first-answer")
def test_an_action_that_is_asked_for_again_is_answered_again():
    tell = FactMaker()
    ids = {**TURN, "actionId": "action"}
    facts = [
        tell("action.required", **ids),
        tell("action.resolved", **ids, decision="approve"),
        tell("action.required", **ids),
        tell("action.resolved", **ids, decision="deny"),
    ]
    state = project_facts(*facts)
    assert (state.actions["action"].decision, codes(state)) == ("deny", [])


# No time is invented.


def times_of(value: object) -> dict[str, str]:
    """The times of the one thing in a table."""
    (found,) = as_json(value).values()
    return {key: each for key, each in found.items() if key in _STARTS_AT}


_STARTS_AT = ("startedAt", "requestedAt", "createdAt")

BEGINNINGS: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("tools", "tool", {"toolCallId": "x"}, {"tool.started"}),
    ("actions", "action", {"actionId": "x"}, {"action.required"}),
    ("processes", "process", {"processId": "x"}, {"process.started"}),
    ("processes", "command", {"payload": {"commandId": "x", "exitCode": 0}}, {"command.started"}),
    ("hooks", "hook", {"payload": {"hookId": "x"}}, {"hook.started"}),
    ("coding.patches", "patch", {"payload": {"patchId": "x", "failureCategory": "c"}},
     {"patch.started"}),
    ("coding.tests", "test", {"payload": {"testRunId": "x", "result": "passed"}}, {"test.started"}),
    ("tasks", "task", {"taskId": "x", "runId": "r"}, {"task.created"}),
    ("jobs", "job", {"jobId": "x", "jobItemId": "i"}, {"job.created"}),
    ("subagents.threads", "subagent", {"subagentId": "x", "taskId": "t"},
     {"subagent.spawned", "subagent.started"}),
    ("evidence.reviews", "review", {"reviewId": "x", "evidenceId": "e"}, {"review.requested"}),
    ("team_workbench.handoff_events", "handoff", {"handoffId": "x"}, {"handoff.requested"}),
]  # fmt: skip

NO_SUBJECT = {"tool.catalog.resolved"}


@pytest.mark.requirement("projection.times")
@pytest.mark.parametrize(
    ("table", "name", "fields", "starts"),
    [
        (table, name, fields, starts)
        for table, family, fields, starts in BEGINNINGS
        for name in sorted(KNOWN_CLASSES)
        if name.partition(".")[0] == family and name not in NO_SUBJECT
    ],
)
def test_only_a_fact_of_the_beginning_says_when_something_began(
    table: str, name: str, fields: dict[str, Any], starts: set[str]
):
    fact = FactMaker()(name, **TURN, **fields, refIds=["blob:1"])
    state: Any = project_facts(fact)
    for step in table.split("."):
        state = getattr(state, step)
    assert bool(times_of(state)) is (name in starts)


@pytest.mark.requirement("projection.times")
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_a_node_begins_with_a_fact_that_begins_it(name: str):
    ids = complete(name)
    fact = msgspec.convert({**ids, "threadId": "thread"}, Fact)
    begins = name.endswith((".started", ".spawned", ".required"))
    state = project([fact], "thread")
    assert begins or not [n for n in state.graph.nodes.values() if n.started_at]


@pytest.mark.requirement("projection.times")
@pytest.mark.parametrize(
    ("name", "start"), [("started", True), ("completed", False), ("failed", False)]
)
def test_an_attempt_and_a_compaction_begin_when_they_start(name: str, start: bool):
    tell = FactMaker()
    state = project_facts(
        tell(f"task.attempt.{name}", taskId="t", attemptId="a"),
        tell(f"context.compaction.{name}"),
    )
    (attempt,), (compaction,) = state.tasks["t"].attempts, state.context.compactions
    assert [each.started_at is not None for each in (attempt, compaction)] == [start, start]


# Evidence of a thing.


@pytest.mark.requirement("projection.evidence-of")
@pytest.mark.parametrize("inside", [True, False])
def test_the_evidence_of_a_call_a_text_and_a_turn_is_kept(inside: bool):
    tell = FactMaker()

    def named(evidence: str) -> dict[str, Any]:
        return {"payload": {"evidenceId": evidence}} if inside else {"evidenceId": evidence}

    state = project_facts(
        tell("turn.started", **TURN),
        tell("tool.started", **CALL),
        tell("tool.result", **CALL, **named("of-call")),
        tell("model.completed", **TURN, messageId="m", **named("of-text")),
        tell("turn.completed", **TURN, **named("of-turn")),
    )
    assert state.tools["call"].evidence_refs == ["of-call"]
    refs = {entry.entry_id.partition(":")[0]: entry.refs for entry in state.timeline}
    assert refs == {"turn": ["of-turn"], "tool": ["of-call"], "text": ["of-text"]}
    assert state.graph.nodes["turn:turn"].refs == ["of-turn"]
    assert state.graph.nodes["tool:call"].refs == ["of-call"]


@pytest.mark.requirement("projection.outcome.tool")
@pytest.mark.parametrize("outlet", sorted(OUTLETS))
def test_every_outlet_tells_a_failed_result_as_it_tells_a_failure(outlet: str):
    def outlet_events(name: str, **fields: Any) -> list[Any]:
        tell = FactMaker()
        facts = [
            tell("turn.started", **TURN),
            tell("tool.started", **CALL, toolName="shell"),
            tell(name, **CALL, **fields, payload={"message": "no"}),
            tell("turn.completed", **TURN),
        ]
        wire = OUTLETS[outlet].make()
        return [item for fact in facts for item in wire.take(fact)] + wire.finish()

    assert outlet_events("tool.result", status="failed") == outlet_events("tool.failed")


GOOD_WORDS = {"completed", "final", "output-available", "applied", "passed", "exited"}
VERDICTS = ("review.", "evidence.")
"""Families whose `status` is also that of what they judge or export."""


def good_words(document: object) -> list[str]:
    """Where a state reads as if something had gone well."""
    return [
        f"{path}/{key}"
        for path, row in rows_in(document)
        for key in ("status", "state", "phase")
        if row.get(key) in GOOD_WORDS
    ]


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize("status", ["failed", "canceled", "cancelled", "error", "aborted"])
@pytest.mark.parametrize(
    "name", sorted(n for n in KNOWN_CLASSES if CLASS_STATUSES[n] == "completed")
)
def test_no_surface_shows_an_end_better_than_its_stated_status(name: str, status: str):
    if name.startswith(VERDICTS):
        return
    fact = msgspec.convert({**complete(name), "threadId": "thread", "status": status}, Fact)
    assert good_words(as_json(project([fact], "thread"))) == []


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize("status", ["failed", "cancelled", "error"])
@pytest.mark.parametrize("name", sorted(ENDING_CLASSES))
def test_no_surface_shows_an_end_better_than_its_payload_states(name: str, status: str):
    wire: dict[str, Any] = {**complete(name), "threadId": "thread"}
    wire["payload"] = {**wire.get("payload", {}), "status": status}
    assert good_words(as_json(project([msgspec.convert(wire, Fact)], "thread"))) == []
    if name in STATED_STATUSES:
        found = [issue for issue in inspect_fact(wire) if issue.code == "outcome_mismatch"]
        assert [issue.path for issue in found] == ["$.payload.status"]


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize("status", ["failed", "canceled"])
@pytest.mark.parametrize("name", ["model.completed", "text.final", "reasoning.completed"])
def test_a_text_that_failed_is_cut_off_and_not_final(name: str, status: str):
    tell = FactMaker()
    ids = {**TURN, "messageId": "m"}
    whole = {"summary": "So"} if name.startswith("reasoning") else {"text": "So"}
    state = project_facts(
        tell(name.partition(".")[0] + ".delta", **ids, delta="So"),
        tell(name, **ids, status=status, **whole),
        tell("turn.completed", **TURN),
    )
    (part,) = as_json(state.messages[0].parts)
    assert part["state"] == "interrupted"


@pytest.mark.requirement("projection.times")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_placeholder_for_a_time_is_no_time(path: Path):
    facts = [msgspec.structs.replace(fact, created_at="unknown") for fact in read_stream(path)]
    state = as_json(project(facts))
    for refs in ("readModel", "hydration"):
        state.pop(refs)
    found = [(path, key) for path, row in rows_in(state) for key in row if row[key] == "unknown"]
    assert [(path, key) for path, key in found if key.endswith("At")] == []


TEAMMATE = {"subagentId": "s", "taskId": "t"}
ATTEMPT = {"taskId": "t", "attemptId": "a"}
TESTS = {"testRunId": "r", "result": "passed"}
COMMAND = {"commandId": "c", "exitCode": 0}
ROWS_OF_ENDS: dict[str, tuple[dict[str, Any], Callable[[ProjectionState], str]]] = {
    "subagent.completed": (TEAMMATE, lambda state: state.subagents.threads["s"].status),
    "worker.completed": (TEAMMATE, lambda state: state.subagents.threads["s"].status),
    "task.completed": ({"taskId": "t"}, lambda state: state.tasks["t"].status),
    "task.attempt.completed": (ATTEMPT, lambda state: state.tasks["t"].attempts[0].status),
    "job.completed": ({"jobId": "j"}, lambda state: state.jobs["j"].status),
    "hook.completed": ({"hookId": "h"}, lambda state: state.hooks["h"].status),
    "test.completed": (TESTS, lambda state: state.coding.tests["r"].status),
    "command.exited": (COMMAND, lambda state: state.processes["c"].status),
    "tool.result": ({"toolCallId": "c"}, lambda state: state.tools["c"].state),
}


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize("name", ROWS_OF_ENDS)
def test_an_end_that_states_a_failure_is_a_failure_in_its_row_too(name: str):
    fields, find = ROWS_OF_ENDS[name]
    state = project_facts(FactMaker()(name, status="failed", **fields))
    assert find(state) in ("failed", "output-error")


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize(
    ("name", "status", "state"),
    [
        ("tool.failed", "timed_out", "output-error"),
        ("tool.failed", "their own word", "output-error"),
        ("tool.result", "error", "output-error"),
        ("tool.result", "denied", "output-error"),
        ("tool.result", "aborted", "cancelled"),
        ("tool.result", "their own word", "output-available"),
    ],
)
def test_a_status_of_another_vocabulary_never_makes_a_failure_a_success(
    name: str, status: str, state: str
):
    shown = project_facts(FactMaker()(name, status=status, toolCallId="c"))
    assert shown.tools["c"].state == state


@pytest.mark.requirement("projection.outcome.status")
@pytest.mark.parametrize("status", ["failed", "pending"])
def test_a_failed_entry_says_why_whatever_status_its_fact_states(status: str):
    tell = FactMaker()
    why = {"failureCategory": "rate_limited", "recoveryHint": "Wait."}
    state = project_facts(
        tell("turn.started", turnId="turn"),
        tell("turn.failed", status=status, turnId="turn", **why),
    )
    (entry,) = [entry for entry in state.timeline if entry.entry_id == "turn:turn"]
    assert (entry.failure_category, entry.recovery_hint) == ("rate_limited", "Wait.")


@pytest.mark.requirement("projection.outcome.turn-end")
def test_a_text_whose_turn_ended_in_a_gap_ends_once_the_gap_is_filled():
    tell = FactMaker()
    turn: Any = {"turnId": "turn", "messageId": "m"}
    facts = [
        tell("turn.started", turnId="turn"),
        tell("model.delta", **turn, delta="a"),
        tell("model.delta", **turn, delta="b"),
        tell("turn.completed", turnId="turn"),
        tell("run.status", status="completed"),
    ]
    projection = Projection(first=1)
    projection.apply_all([*facts[:2], *facts[3:]])
    projection.close()
    projection.apply(tell("stream.repair.completed", toSequence=5, messages=[]))
    (entry,) = [entry for entry in projection.state.timeline if entry.entry_id.startswith("text:")]
    assert (projection.state.hydration.status, entry.status) == ("live", "completed")

"""Whatever happened in a stream reaches a client of an outlet, with the outcome that it had."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.facts import RUNTIME_CLASSES, Fact, decode_fact
from factwire.outlets import OUTLETS
from factwire.projection import ProjectionState, project
from factwire.sources import FactBuilder
from tests.facts.samples import full_fact
from tests.outlets.gists import convert_back, encode_facts
from tests.outlets.stories import ON_FILE, build_turn, facts_on_file

STREAMS = Path(__file__).resolve().parents[2] / "examples" / "streams"
NAMES = (*sorted(path.stem for path in STREAMS.glob("*.ndjson")), *ON_FILE)
NOT_TOLD = ("session.", "thread.", "run.status", "snapshot.", "stream.")
"""Classes about the stream itself, which a client of one thread follows anyway."""

STRUCTURE = (
    *("turn.submitted", "turn.started", "turn.completed", "turn.failed", "turn.canceled"),
    *("model.requested", "model.delta", "model.completed", "model.failed", "metrics.changed"),
    *("reasoning.started", "reasoning.delta", "reasoning.summary", "reasoning.completed"),
    *("messages.snapshot", "tool.started", "tool.args", "tool.args.delta", "tool.result"),
    *("tool.failed", "action.required", "subagent.spawned", "subagent.started"),
    *("subagent.completed", "subagent.failed", "state.delta"),
)
"""Classes that are events of the protocols; how they are told is tested for each protocol."""

ENDED_TOOLS = ("output-available", "output-error", "cancelled")
ENDED_TEAMMATES = ("completed", "failed", "closed")


@cache
def facts_named(name: str) -> tuple[Fact, ...]:
    if name in ON_FILE:
        return facts_on_file(name)
    lines = (STREAMS / f"{name}.ndjson").read_bytes().splitlines()
    return tuple(decode_fact(line) for line in lines)


def outcomes_of(state: ProjectionState) -> dict[tuple[str, str], Any]:
    """Everything that has ended, and how; and everything that lasts."""
    found: dict[tuple[str, str], Any] = {}
    for key, tool in state.tools.items():
        if tool.state in ENDED_TOOLS:
            found["tool", key] = "failed" if tool.state == "cancelled" else tool.state
    for key, action in state.actions.items():
        if action.status != "pending":
            found["action", key] = action.status
    for key, thread in state.subagents.threads.items():
        if thread.status in ENDED_TEAMMATES:
            found["subagent", key] = thread.status
    found |= {("artifact", key): each.status for key, each in state.artifacts.items()}
    found |= {("evidence", key): each.status for key, each in state.evidence.items.items()}
    return found


@pytest.mark.requirement("outlets.outcomes")
@pytest.mark.parametrize("outlet", OUTLETS)
@pytest.mark.parametrize("name", NAMES)
def test_what_ended_in_a_stream_ended_the_same_way_for_a_client(name: str, outlet: str):
    facts = facts_named(name)
    expected = outcomes_of(project(facts))
    came = outcomes_of(project(convert_back(encode_facts(facts, outlet), outlet)))
    assert {key: came.get(key) for key in expected} == expected


@pytest.mark.requirement("outlets.outcomes")
@pytest.mark.parametrize("outlet", OUTLETS)
@pytest.mark.parametrize(
    "event_class",
    [name for name in RUNTIME_CLASSES if name not in STRUCTURE and not name.startswith(NOT_TOLD)],
)
def test_what_a_protocol_has_no_event_for_is_told_beside_it(event_class: str, outlet: str):
    """With everything that the fact says."""
    begun = build_turn()
    fact = msgspec.structs.replace(
        full_fact(event_class, payload={"mark": "kept-here"}),
        thread_id=begun[0].thread_id,
        turn_id=begun[0].turn_id,
        subagent_id="sub" if event_class.startswith("subagent.") else None,
    )
    wire = msgspec.json.encode(encode_facts([*begun, fact], outlet)).decode()
    assert "kept-here" in wire


@pytest.mark.requirement("outlets.outcomes")
@pytest.mark.parametrize("outlet", OUTLETS)
def test_a_failed_subagent_that_is_closed_stays_failed(outlet: str):
    def work(builder: FactBuilder) -> None:
        builder.start_subagent("sub", title="Try")
        builder.end_subagent("sub", "subagent.failed", failureCategory="lost", message="gone")
        builder.add_fact("subagent.closed", {}, subagent_id="sub", task_id="sub:task")

    facts = build_turn(work, FactBuilder.complete_turn)
    wire = encode_facts(facts, outlet)
    ends = [
        item.get("data", {}).get("status") or item["type"]
        for item in wire
        if item["type"] in ("SUBAGENT_ERROR", "SUBAGENT_FINISHED", "data-factwire-subagent")
    ]
    assert ends[-1] in ("SUBAGENT_ERROR", "failed")


@pytest.mark.requirement("outlets.outcomes")
@pytest.mark.parametrize("fields", [{"artifact_id": "a"}, {"artifact_refs": ("a", "b")}])
@pytest.mark.parametrize("outlet", OUTLETS)
def test_the_artifacts_of_a_call_are_told_with_it(outlet: str, fields: dict[str, Any]):
    def work(builder: FactBuilder) -> None:
        builder.start_tool("call", "export", {"to": "pdf"})
        builder.complete_tool("call", "done")

    facts = [
        msgspec.structs.replace(fact, **fields) if fact.event_class == "tool.result" else fact
        for fact in build_turn(work, FactBuilder.complete_turn)
    ]
    state = project(convert_back(encode_facts(facts, outlet), outlet))
    assert [*state.artifacts] == [*project(facts).artifacts] == ["a", "b"][: len(state.artifacts)]
    assert state.artifacts

"""LangGraph's chunks: what recordings do not show."""

from typing import Any

import pytest

from factwire.projection import project, transcript
from factwire.projection.messages import TextPart
from factwire.sources.langgraph.convert import chunk_line
from tests.sources.recordings import FOLDER, facts_of, screen_of
from tests.sources.streams import classes, facts_from

SOURCE = "langgraph"
START: dict[str, Any] = {"type": "run.started", "input": {"messages": []}}
DONE: dict[str, Any] = {"type": "run.completed"}


def chunk(mode: str, data: Any, *ns: str) -> dict[str, Any]:
    return {"ns": list(ns), "mode": mode, "data": data}


def node(task_id: str, **result: Any) -> list[dict[str, Any]]:
    began: dict[str, Any] = {"id": task_id, "name": "worker", "input": {}, "triggers": []}
    ended: dict[str, Any] = {
        "id": task_id,
        "name": "worker",
        "error": None,
        "interrupts": [],
        "result": {},
    }
    return [chunk("tasks", began), chunk("tasks", {**ended, **result})]


@pytest.mark.requirement("sources.langgraph.identity")
def test_a_node_that_runs_twice_is_two_tasks():
    facts = facts_from(SOURCE, START, *node("1"), *node("2", error="ValueError('no')"), DONE)
    tasks = project(facts).tasks
    assert {key: (task.title, task.status) for key, task in tasks.items()} == {
        "1": ("worker", "completed"),
        "2": ("worker", "failed"),
    }


@pytest.mark.requirement("sources.langgraph.identity")
@pytest.mark.parametrize(("line", "status"), [(DONE, "completed"), (START, "failed")])
def test_a_task_that_is_open_at_the_end_ends_as_the_run_does(line: dict[str, Any], status: str):
    inside = chunk("tasks", {"id": "2", "name": "inner", "input": {}}, "worker:1")
    facts = facts_from(SOURCE, START, node("1")[0], inside, line)
    assert {task.status for task in project(facts).tasks.values()} == {status}


@pytest.mark.requirement("sources.langgraph.subgraphs")
def test_what_a_subgraph_says_stands_in_its_own_transcript():
    facts = facts_of(FOLDER / SOURCE / "subgraph.jsonl")
    state = project(facts)
    assert screen_of(facts)["conversation"] == []
    for subagent_id in state.subagents.threads:
        [payloads] = transcript(state, subagent_id)
        assert [str(part.text) for part in payloads.parts if isinstance(part, TextPart)] == [
            "Hello! How can I help?"
        ]


@pytest.mark.requirement("sources.langgraph.subgraphs")
def test_a_subgraph_of_a_subgraph_has_its_parent():
    facts = facts_from(SOURCE, START, chunk("updates", {"leaf": {}}, "outer:1", "inner:2"), DONE)
    assert project(facts).tasks["2"].parent_task_id == "1"


@pytest.mark.requirement("sources.langgraph.subgraphs")
@pytest.mark.parametrize("mode", ["tasks", "messages"])
def test_an_agent_that_a_tool_runs_is_called_by_its_own_name(mode: str):
    about = {"lc_agent_name": "researcher"}
    task: dict[str, Any] = {"id": "2", "name": "model", "input": {}, "metadata": about}
    message = [{"type": "ai", "id": "m", "content": "found"}, about]
    first = chunk_line(["tools:1"], mode, task if mode == "tasks" else message)
    (thread,) = project(facts_from(SOURCE, START, first, DONE)).subagents.threads.values()
    assert thread.name == "researcher"


@pytest.mark.requirement("sources.langgraph.modes")
@pytest.mark.parametrize("kept", [("messages",), ("updates",), ("updates", "values", "tasks")])
def test_fewer_modes_tell_the_same_words_and_tools(kept: tuple[str, ...]):
    path = FOLDER / SOURCE / "tool.jsonl"
    marks = [b'"type": "run.', *(f'"mode": "{mode}"'.encode() for mode in kept)]
    lines = [
        line
        for line in path.read_bytes().splitlines(keepends=True)
        if any(mark in line[:60] for mark in marks)
    ]
    whole, less = screen_of(facts_of(path)), screen_of(facts_of(path, lines))
    assert less["tools"] == whole["tools"]
    assert less["conversation"] == whole["conversation"]


@pytest.mark.requirement("sources.langgraph.modes")
def test_the_debug_mode_is_what_it_wraps():
    plain = facts_from(SOURCE, START, *node("1"), DONE)
    kinds = ("task", "task_result")
    wrapped = [
        chunk("debug", {"type": kind, "payload": each["data"]})
        for kind, each in zip(kinds, node("1"), strict=True)
    ]
    assert facts_from(SOURCE, START, *wrapped, DONE) == plain


@pytest.mark.requirement("sources.langgraph.modes")
def test_the_values_are_the_shared_state():
    state: dict[str, Any] = {"count": 2, "__interrupt__": []}
    facts = facts_from(
        SOURCE, START, chunk("values", state), chunk("values", {"x": 1}, "a:1"), DONE
    )
    assert project(facts).shared == {"count": 2}


@pytest.mark.requirement("sources.langgraph.failed-tool")
def test_a_tool_message_with_an_error_is_a_failed_call():
    calls = [{"id": "c", "name": "look", "args": {"at": 1}}]
    reasoned = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look."}]
    payloads = {"type": "ai", "id": "m", "content": reasoned, "tool_calls": calls}
    result = {"type": "tool", "id": "r", "tool_call_id": "c", "content": "no", "status": "error"}
    facts = facts_from(
        SOURCE, START, chunk("messages", [payloads, {}]), chunk("messages", [result, {}]), DONE
    )
    screen = screen_of(facts)
    assert screen["tools"] == [{"name": "look", "state": "output-error", "args": {"at": 1}}]
    assert ["assistant", "I look."] in screen["conversation"]


@pytest.mark.requirement("sources.langgraph.failed-tool")
def test_a_graph_that_is_left_waiting_has_asked_and_not_failed():
    interrupts = [{"id": "i", "value": "Which one?"}]
    facts = facts_from(
        SOURCE,
        START,
        *node("1", interrupts=interrupts),
        {"type": "run.interrupted", "interruptions": interrupts},
    )
    question = [fact.payload["prompt"] for fact in facts if fact.event_class == "action.required"]
    assert question == ["Which one?"]
    assert screen_of(facts)["status"] == "completed"
    assert classes(facts, "task.") == ["task.started", "task.waiting"]

"""Selectors choose and sort what a state says, and nothing else."""

import pytest

from factwire.facts import Fact
from factwire.projection import (
    Projection,
    ProjectionState,
    active_process,
    attention,
    conversation,
    graph_view,
    pending_actions,
    team_view,
    timeline_page,
    transcript,
    unconfirmed_ids,
)
from tests.projection.fact_maker import FactMaker, project_facts

TURN = {"turnId": "turn"}
WORKER = {**TURN, "subagentId": "sub", "taskId": "task"}


def require_action(
    tell: FactMaker, action: str, severity: str | None = None, **fields: object
) -> Fact:
    payload = {"severity": severity} if severity else {}
    return tell("action.required", **{**TURN, **fields}, actionId=action, payload=payload)


def names(state: ProjectionState) -> list[str]:
    return [pending.action.action_id for pending in pending_actions(state)]


@pytest.mark.requirement("projection.select.conversation")
def test_the_conversation_leaves_out_subagents_and_what_was_taken_back():
    tell = FactMaker()
    state = project_facts(
        tell("turn.submitted", **TURN, payload={"prompt": "Hi"}),
        tell("model.completed", **TURN, messageId="a", payload={"text": "one"}),
        tell("model.completed", **WORKER, messageId="b", payload={"text": "two"}),
        tell("model.completed", **TURN, messageId="c", payload={"text": "3", "supersedes": "a"}),
    )
    assert [message.message_id for message in conversation(state)] == ["turn:user", "c"]
    assert [message.message_id for message in transcript(state, "sub")] == ["b"]


@pytest.mark.requirement("projection.select.pending")
def test_open_actions_come_by_severity_then_by_age_with_who_asks():
    tell = FactMaker()
    state = project_facts(
        tell("subagent.spawned", **WORKER, payload={"name": "Reader"}),
        require_action(tell, "old"),
        require_action(tell, "low", "low"),
        require_action(tell, "high", "high", **WORKER),
        require_action(tell, "critical", "critical"),
        require_action(tell, "gone", "critical"),
        tell("action.resolved", **TURN, actionId="gone"),
        require_action(tell, "young"),
    )
    assert names(state) == ["critical", "high", "old", "young", "low"]
    assert [pending.requester for pending in pending_actions(state)][1] == "Reader"
    assert [pending.severity for pending in pending_actions(state)][2] == "unknown"


@pytest.mark.requirement("projection.select.attention")
def test_attention_is_for_input_then_plans_then_failures_then_what_runs():
    tell = FactMaker()
    plan = {"actionType": "plan_decision"}
    state = project_facts(
        tell("turn.started", **TURN),
        tell("task.created", **TURN, taskId="broken", payload={"title": "Broken"}),
        tell("task.failed", **TURN, taskId="broken"),
        tell("task.created", **TURN, taskId="idle"),
        tell("task.started", **TURN, taskId="busy"),
        tell("action.required", **TURN, actionId="plan", payload=plan),
        require_action(tell, "input"),
    )
    found = [(item.kind, item.subject_id) for item in attention(state)]
    assert found == [
        ("needs_input", "input"),
        ("plan_ready", "plan"),
        ("failed", "broken"),
        ("running", "turn"),
        ("running", "busy"),
    ]


@pytest.mark.requirement("projection.select.attention")
def test_a_failed_turn_says_what_could_help():
    tell = FactMaker()
    end = {"failureCategory": "timeout", "recoveryHint": "Try again."}
    state = project_facts(tell("turn.started", **TURN), tell("turn.failed", **TURN, payload=end))
    assert [(item.kind, item.title) for item in attention(state)] == [("failed", "Try again.")]


@pytest.mark.requirement("projection.select.process")
def test_the_active_process_is_what_is_open_in_the_active_turn():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("plan.final", **TURN, payload={"text": "do it"}),
        tell("tool.started", **TURN, toolCallId="open"),
        tell("tool.started", **TURN, toolCallId="done"),
        tell("tool.result", **TURN, toolCallId="done"),
        tell("process.started", **TURN, processId="p"),
        tell("context.compaction.started", **TURN),
    )
    now = active_process(state)
    assert (now.status, now.turn_id) == ("running", "turn")
    assert [tool.tool_call_id for tool in now.tools] == ["open"]
    assert [process.process_id for process in now.processes] == ["p"]
    assert now.plan is not None
    assert now.compaction is not None
    ended = project_facts(tell("turn.completed", sequence=1, **TURN))
    assert (active_process(ended).tools, active_process(ended).plan) == ([], None)


@pytest.mark.requirement("projection.select.timeline")
def test_the_timeline_comes_in_pages_that_leave_nothing_out():
    tell = FactMaker()
    state = project_facts(*(tell("context.attached", **TURN) for _ in range(7)))
    found, after = list[str](), 0
    while True:
        page = timeline_page(state, after, 3)
        found += [entry.entry_id for entry in page.entries]
        if page.next_after is None:
            break
        after = page.next_after
    assert found == [entry.entry_id for entry in state.timeline]
    assert timeline_page(state, 100).entries == []
    for after, limit in ((-1, 1), (0, 0)):
        with pytest.raises(ValueError, match="expected a place"):
            timeline_page(state, after, limit)


@pytest.mark.requirement("projection.select.graph")
def test_the_graph_shows_parents_before_children_or_what_hangs_on_one_node():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("tool.started", **TURN, toolCallId="c"),
        tell("action.required", **TURN, toolCallId="c", actionId="a"),
        tell("turn.started", turnId="other"),
    )
    whole = [node.node_id for node in graph_view(state).nodes]
    assert whole == ["turn:turn", "tool:c", "action:a", "turn:other"]
    part = graph_view(state, "tool:c")
    assert [node.node_id for node in part.nodes] == ["tool:c", "action:a"]
    assert [edge.kind for edge in part.edges] == ["asked"]


@pytest.mark.requirement("projection.select.team")
def test_the_team_has_members_a_board_by_columns_and_what_it_asks_for():
    tell = FactMaker()
    state = project_facts(
        tell("subagent.spawned", **WORKER, payload={"name": "Reader"}),
        tell("task.created", **TURN, taskId="todo"),
        tell("task.started", **WORKER),
        tell("task.blocked", **TURN, taskId="stuck"),
        tell("task.lost", **TURN, taskId="lost"),
        tell("task.completed", **TURN, taskId="done"),
        tell("task.updated", **TURN, taskId="odd", payload={"status": "dreaming"}),
        require_action(tell, "delegated", **WORKER),
        require_action(tell, "own"),
    )
    team = team_view(state)
    board = {column: [item.task_id for item in items] for column, items in team.board.items()}
    assert board == {
        "todo": ["todo"],
        "doing": ["task", "odd"],
        "waiting": ["stuck"],
        "failed": ["lost"],
        "done": ["done"],
    }
    assert [(member.node.member_id, member.thread is not None) for member in team.members] == [
        ("sub", True)
    ]
    assert [pending.action.action_id for pending in team.delegated] == ["delegated"]


@pytest.mark.requirement("projection.select.optimistic")
def test_a_clients_own_ids_are_unconfirmed_until_the_runtime_names_them():
    tell = FactMaker()
    projection = Projection()
    assert unconfirmed_ids(projection.state, ["tmp", "other"]) == ["tmp", "other"]
    payload = {"prompt": "Hi", "optimisticId": "tmp"}
    projection.apply(tell("turn.submitted", **TURN, payload=payload))
    assert unconfirmed_ids(projection.state, ["tmp", "other"]) == ["other"]

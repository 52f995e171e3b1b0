"""A projection that a newer read model repairs: no surface contradicts another, nothing is made up.

What the read model states is taken; what was under way and it does not speak of reads stale.
"""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact
from factwire.projection import (
    Projection,
    ProjectionState,
    ThreadReadModel,
    advance,
    read_thread_model,
    thread_read_model,
)
from factwire.projection.messages import TextPart, ToolPreviewPart
from tests.projection.fact_maker import (
    THREAD,
    FactMaker,
    WatchedProjection,
    as_json,
    as_text,
    texts,
    watch_facts,
)
from tests.projection.generated_streams import THREAD as STREAM
from tests.projection.generated_streams import build_stream

TURN = {"turnId": "turn"}
PART = {**TURN, "messageId": "m", "partId": "p"}
CALL = {**TURN, "toolCallId": "call"}
ACTION = {**TURN, "actionId": "action"}
AT = "2026-06-10T00:01:00Z"


def under_way() -> list[Fact]:
    """A turn in the middle of everything."""
    tell = FactMaker()
    return [
        tell("turn.submitted", **TURN, prompt="Go."),
        tell("turn.started", **TURN),
        tell("run.status", **TURN, runId="run", status="running", payload={"status": "running"}),
        tell("reasoning.delta", **{**PART, "partId": "r"}, delta="Hm"),
        tell("model.delta", **PART, delta="Half of "),
        tell("tool.started", **CALL, toolName="shell"),
        tell("command.started", **CALL, commandId="cmd", command="make"),
        tell("task.started", **TURN, taskId="task"),
        tell("task.attempt.started", **TURN, taskId="task", attemptId="try"),
        tell("subagent.started", **TURN, taskId="task", subagentId="sub"),
        tell("context.compaction.started", **TURN),
        tell("plan.delta", **TURN, delta="First"),
        tell("permission.requested", **CALL),
        tell("action.required", **ACTION, actionType="plan_decision"),
    ]


def model(cursor: int, status: str = "completed", **payload: Any) -> ThreadReadModel:
    empty = ("pendingActions", "toolCalls", "queuedTurns", "incidents", "diagnostics")
    ids = {"runtimeId": "runtime", "sessionId": "session", "threadId": THREAD}
    fields = {"schemaVersion": "v", **ids, "status": status, "eventCursor": cursor}
    return read_thread_model({**fields, **{name: [] for name in empty}, **payload})


def over(cursor: int, status: str = "completed", **payload: Any) -> ThreadReadModel:
    return model(cursor, status, lastOutcome={"status": status, "turnId": "turn"}, **payload)


def watch_repair(facts: list[Fact], newer: ThreadReadModel) -> WatchedProjection:
    """A projection of facts that a read model repairs, with a copy that follows its changes."""
    seen = watch_facts(facts)
    repair(seen, newer)
    return seen


def repair(seen: WatchedProjection, newer: ThreadReadModel) -> None:
    advance(seen.copy, seen.projection.repair(newer))
    seen.check()
    assert list(contradictions(seen.state)) == []


LIVE = ("pending", "running", "blocked", "streaming")
ENTRIES = {
    "output-available": "completed",
    "output-error": "failed",
    "cancelled": "canceled",
    "stale": "stale",
}


def contradictions(state: ProjectionState) -> Iterator[str]:
    """Every two surfaces of which one says something else than the other."""
    entries = {entry.entry_id: entry.status for entry in state.timeline}
    nodes = {key: node.status for key, node in state.graph.nodes.items()}
    for surface in (_of_tools, _of_actions, _of_turns):
        yield from surface(state, entries, nodes)
    yield from _of_messages(state)
    yield from _of_the_team(state)
    if state.runtime.active_turn_id is None and state.runtime.active_run_id is not None:
        yield "a run without a turn"
    if state.runtime.queued_turn_count not in (None, len(state.queue.turns)):
        yield "the number of queued turns"
    if state.diagnostics.total < len(state.diagnostics.items):
        yield "the number of diagnostics"


Statuses = dict[str, str]


def _of_tools(state: ProjectionState, entries: Statuses, nodes: Statuses) -> Iterator[str]:
    for key, tool in state.tools.items():
        own = ENTRIES.get(tool.state, "open")
        if ENTRIES.get(nodes.get(f"tool:{key}", tool.state), "open") != own:
            yield f"tool {key} is {tool.state}, its node {nodes[f'tool:{key}']}"
        if own not in ("open", entries.get(f"tool:{key}", own)):
            yield f"tool {key} is {tool.state}, its entry {entries[f'tool:{key}']}"


def _of_actions(state: ProjectionState, entries: Statuses, nodes: Statuses) -> Iterator[str]:
    for key, action in state.actions.items():
        if nodes.get(f"action:{key}", action.status) != action.status:
            yield f"action {key} is {action.status}, its node {nodes[f'action:{key}']}"
        if action.status != "pending" and entries.get(f"action:{key}") == "blocked":
            yield f"action {key} is {action.status}, its entry blocked"


def _of_turns(state: ProjectionState, entries: Statuses, nodes: Statuses) -> Iterator[str]:
    run = state.runtime
    ended = run.latest_turn_id if run.latest_turn_status in ("completed", "failed") else None
    for turn in {key.partition(":")[2] for key in entries if key.startswith("turn:")}:
        facts, drawn = entries[f"turn:{turn}"], nodes.get(f"turn:{turn}")
        if drawn not in (None, facts):
            yield f"turn {turn} is {facts}, its node {drawn}"
        if turn == ended and facts != run.latest_turn_status:
            yield f"turn {turn} is {run.latest_turn_status}, its entry {facts}"


def _of_messages(state: ProjectionState) -> Iterator[str]:
    for message in state.messages:
        for part in message.parts:
            if isinstance(part, ToolPreviewPart):
                if part.status != state.tools[part.tool_call_id].state:
                    yield f"preview of {part.tool_call_id} is {part.status}"
            elif isinstance(part, TextPart) and part.state == "streaming" != message.status:
                yield f"{message.message_id} is {message.status}, its text streams"


def _of_the_team(state: ProjectionState) -> Iterator[str]:
    for key, member in state.team_workbench.roster_nodes.items():
        if state.subagents.threads[key].status != member.status:
            yield f"member {key}"
    for key, item in state.team_workbench.work_items.items():
        if state.tasks[key].status != item.status:
            yield f"card {key}"


@pytest.mark.requirement("projection.repair.read-model")
@pytest.mark.parametrize("end", ["completed", "failed", "canceled"])
def test_after_a_cut_every_surface_says_that_the_turn_is_over(end: str):
    seen = watch_repair(under_way(), over(40, end))
    state = seen.state
    assert (state.runtime.status, state.hydration.status) == (end, "stale")
    assert state.hydration.reasons == ["messages_missing"]
    assert state.runtime.phase == ("cancelled" if end == "canceled" else end)
    assert state.runtime.active_turn_id is None
    kinds = ("turn", "run", "text", "reasoning", "tool", "action", "task", "subagent", "attempt")
    left = {
        entry.entry_id: entry.status
        for entry in state.timeline
        if entry.entry_id.partition(":")[0] in (*kinds, "plan", "compaction", "command")
    }
    assert not set(left.values()) & set(LIVE)
    assert left["turn:turn"] == left["run:run"] == end
    assert left["text:turn:m:p"] == left["reasoning:turn:m:r"] == "stale"
    assert left["action:action"] == "closed"
    nodes = {key: node.status for key, node in state.graph.nodes.items()}
    assert not set(nodes.values()) & set(LIVE)
    assert nodes["turn:turn"] == nodes["run:run"] == end


@pytest.mark.requirement("projection.repair.read-model")
def test_what_a_read_model_does_not_speak_of_is_stale():
    state = watch_repair(under_way(), over(40)).state
    assert [message.status for message in state.messages] == ["final", "stale"]
    assert texts(state)[1] == ("assistant", ["Half of "])
    assert (state.tools["call"].state, state.tools["call"].unclosed) == ("stale", True)
    assert state.processes["cmd"].status == "stale"
    task = state.tasks["task"]
    assert (task.status, task.attempts[0].status) == ("stale", "stale")
    assert state.subagents.threads["sub"].status == "stale"
    assert state.subagents.active_thread_ids == []
    assert state.context.compactions[0].status == "stale"
    (plan,) = state.plans.values()
    assert (plan.state, plan.decision) == ("stale", "closed")
    assert state.permissions.pending == []


@pytest.mark.requirement("projection.repair.read-model")
@pytest.mark.parametrize(
    ("state", "entry"),
    [("output-available", "completed"), ("output-error", "failed"), ("cancelled", "canceled")],
)
def test_the_owners_record_of_a_call_is_taken(state: str, entry: str):
    row = {"toolCallId": "call", "state": state, "completedAt": AT, "outputRef": "output:x"}
    seen = watch_repair(under_way(), over(40, toolCalls=[row])).state
    tool = seen.tools["call"]
    assert (tool.state, tool.completed_at, tool.output_ref) == (state, AT, "output:x")
    assert tool.unclosed is None
    facts = next(row for row in seen.timeline if row.entry_id == "tool:call")
    assert (facts.status, facts.completed_at) == (entry, AT)
    assert seen.graph.nodes["tool:call"].completed_at == AT


@pytest.mark.requirement("projection.repair.read-model")
def test_a_call_that_is_over_by_a_read_model_without_a_time_is_over():
    row = {"toolCallId": "call", "state": "output-available"}
    seen = watch_repair(under_way(), model(40, "running", activeTurnId="turn", toolCalls=[row]))
    tell = FactMaker(41)
    seen.apply(tell("tool.progress", **CALL, progress=1))
    seen.apply(tell("turn.completed", **TURN))
    tool = seen.state.tools["call"]
    assert (tool.state, tool.unclosed) == ("output-available", None)


@pytest.mark.requirement("projection.repair.read-model")
def test_a_read_model_takes_away_no_end_that_is_known():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("tool.started", **CALL),
        tell("tool.failed", **CALL, failureCategory="timeout"),
    ]
    row = {"toolCallId": "call", "state": "running"}
    newer = model(9, "running", activeTurnId="turn", toolCalls=[row])
    tool = watch_repair(facts, newer).state.tools["call"]
    assert (tool.state, tool.failure_category) == ("output-error", "timeout")


@pytest.mark.requirement("projection.repair.read-model")
def test_a_request_that_is_open_again_waits_again():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("action.required", **ACTION),
        tell("action.resolved", **ACTION, decision="approved"),
    ]
    row = {"actionId": "action", "status": "pending", "prompt": "And now?"}
    newer = model(9, "waiting", activeTurnId="turn", pendingActions=[row])
    state = watch_repair(facts, newer).state
    action = state.actions["action"]
    assert (action.status, action.decision, state.runtime.status) == ("pending", None, "waiting")
    assert state.runtime.phase == "waiting"


@pytest.mark.requirement("projection.repair.read-model")
def test_a_turn_that_goes_on_is_running_and_its_calls_are_as_the_owner_says():
    row = {"toolCallId": "call", "state": "progress", "turnId": "turn"}
    newer = model(40, "running", activeTurnId="turn", toolCalls=[row])
    state = watch_repair(under_way(), newer).state
    assert (state.runtime.status, state.runtime.active_run_id) == ("running", "run")
    assert (state.tools["call"].state, state.tools["call"].unclosed) == ("progress", None)
    assert state.runtime.phase == "unknown"
    assert state.messages[1].status == "stale"


@pytest.mark.requirement("projection.repair.read-model")
def test_another_turn_is_active_and_nobody_says_how_the_first_one_ended():
    state = watch_repair(under_way(), model(40, "running", activeTurnId="next")).state
    assert (state.runtime.status, state.runtime.active_turn_id) == ("running", "next")
    assert state.runtime.active_run_id is None
    assert state.graph.nodes["turn:turn"].status == "stale"


@pytest.mark.requirement("projection.repair.read-model")
@pytest.mark.parametrize(
    ("status", "shown"),
    [("completed", "completed"), ("idle", "idle"), ("running", "running"), ("blocked", "blocked")],
)
def test_without_a_turn_or_an_outcome_the_status_is_the_one_that_is_stated(status: str, shown: str):
    state = watch_repair(under_way(), model(40, status)).state
    assert (state.runtime.status, state.runtime.active_turn_id) == (shown, None)
    assert Projection.from_read_model(model(40, status)).state.runtime.status == shown


@pytest.mark.requirement("projection.repair.read-model")
def test_a_status_that_nobody_states_is_unknown():
    row = {"actionId": "other", "status": "pending"}
    seen = watch_repair(under_way(), model(40, "waiting", pendingActions=[row]))
    assert (seen.state.runtime.status, seen.state.runtime.latest_turn_status) == (
        "waiting",
        "stale",
    )
    seen.apply(FactMaker(41)("action.cancelled", actionId="other"))
    assert seen.state.runtime.status == "unknown"


@pytest.mark.requirement("projection.repair.read-model")
def test_a_patch_that_failed_stays_in_doubt_since_a_read_model_has_no_shared_state():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("state.delta", patch=[{"op": "odd"}])]
    seen = watch_repair(facts, model(9, "running", activeTurnId="turn", messages=[]))
    assert seen.state.hydration.status == "stale"
    seen.apply(FactMaker(10)("state.snapshot", shared={"n": 1}))
    assert seen.state.hydration.status == "live"


@pytest.mark.requirement("projection.repair.read-model")
def test_what_a_childs_thread_says_is_not_stale():
    parent, child = FactMaker(), FactMaker(thread="child")
    ids = {"subagentId": "s", "taskId": "t", "parentThreadId": THREAD, "turnId": "inner"}
    facts = [
        parent("turn.started", **TURN),
        child("subagent.started", **ids),
        child("turn.started", **ids),
        child("model.delta", **ids, messageId="m", delta="Mine"),
        child("tool.started", **ids, toolCallId="inner"),
    ]
    state = watch_repair(facts, over(9)).state
    assert (state.messages[0].status, state.tools["inner"].state) == ("streaming", "running")
    assert state.graph.nodes["turn:inner"].status == "running"


# Stale texts.


def stale(turn: str = "turn") -> tuple[FactMaker, WatchedProjection]:
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("model.delta", **PART, delta="Half ")]
    return FactMaker(41), watch_repair(facts, model(40, "running", activeTurnId=turn))


def first_text(state: ProjectionState) -> tuple[str, str, str]:
    message = state.messages[0]
    (part,) = as_json(message.parts)
    return message.status, part["state"], part["text"]


@pytest.mark.requirement("projection.repair.stale-text")
@pytest.mark.parametrize("ids", [PART, {**TURN, "messageId": "m"}])
def test_pieces_behind_a_hole_go_on_in_their_part_and_the_whole_text_makes_it_good(
    ids: dict[str, str],
):
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("model.delta", **ids, delta="Half ")]
    seen = watch_repair(facts, model(40, "running", activeTurnId="turn"))
    tell = FactMaker(41)
    seen.apply(tell("model.delta", **ids, delta="more"))
    assert first_text(seen.state) == ("stale", "stale", "Half more")
    seen.apply(tell("model.completed", **ids, text="Half and more."))
    assert first_text(seen.state) == ("final", "final", "Half and more.")


@pytest.mark.requirement("projection.repair.stale-text")
def test_the_whole_text_so_far_makes_a_text_good_before_its_end():
    tell, seen = stale()
    seen.apply(tell("model.delta", **PART, text="Half and mo"))
    assert first_text(seen.state) == ("streaming", "streaming", "Half and mo")


@pytest.mark.requirement("projection.repair.stale-text")
@pytest.mark.parametrize("end", ["model.completed", "turn.completed", "turn.canceled"])
def test_an_end_without_the_text_leaves_it_stale(end: str):
    tell, seen = stale()
    seen.apply(tell(end, **PART))
    assert first_text(seen.state) == ("stale", "stale", "Half ")
    entry = next(row for row in seen.state.timeline if row.entry_id.startswith("text:"))
    assert entry.status == ("completed" if end == "model.completed" else "stale")


@pytest.mark.requirement("projection.repair.stale-text")
def test_a_snapshot_of_the_messages_makes_texts_good():
    tell, seen = stale("another")
    row = {"messageId": "m", "parts": [{"partId": "p", "text": "All of it."}]}
    seen.apply(tell("messages.snapshot", messages=[row]))
    assert first_text(seen.state) == ("final", "final", "All of it.")


@pytest.mark.requirement("projection.repair.stale-text")
def test_a_second_text_in_a_stale_message_streams_and_ends_and_the_message_stays_stale():
    tell, seen = stale()
    other = {**PART, "partId": "q"}
    seen.apply(tell("model.delta", **other, delta="New"))
    assert seen.state.messages[0].status == "streaming"
    seen.apply(tell("turn.completed", **TURN))
    states = [part["state"] for part in as_json(seen.state.messages[0].parts)]
    assert (states, seen.state.messages[0].status) == (["stale", "final"], "stale")


@pytest.mark.requirement("projection.repair.stale-text")
def test_stale_reasoning_and_plans_go_on_where_they_are():
    seen = watch_repair(under_way(), model(40, "running", activeTurnId="turn"))
    tell, part = FactMaker(41), {**TURN, "messageId": "m", "partId": "r"}
    seen.apply(tell("reasoning.delta", **part, delta="mm"))
    seen.apply(tell("plan.delta", **TURN, delta=" second"))
    (plan,) = seen.state.plans.values()
    assert (str(plan.text), plan.state) == ("First second", "stale")
    seen.apply(tell("reasoning.completed", **part, summary="Thought."))
    seen.apply(tell("plan.final", **TURN, text="First, second."))
    assert (str(plan.text), plan.state) == ("First, second.", "final")
    assert as_json(seen.state.messages[1].parts[0])["state"] == "final"


# Laws.

SEEDS = range(8)


def cuts(seed: int, facts: list[Fact]) -> list[int]:
    return sorted(random.Random(seed).sample(range(1, len(facts)), 6))


@pytest.mark.requirement("projection.repair.same")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_read_model_of_a_state_changes_nothing_in_it(seed: int):
    facts = build_stream(seed, hostile=seed % 2 == 1)
    projection, places = Projection(STREAM), cuts(seed, facts)
    for place, fact in enumerate(facts, 1):
        projection.apply(fact)
        if place in places:
            before = msgspec.json.decode(projection.snapshot())
            projection.repair(thread_read_model(projection.state))
            after = msgspec.json.decode(projection.snapshot())
            assert after.pop("readModel") != before.pop("readModel")
            assert as_text(after) == as_text(before)


@pytest.mark.requirement("projection.repair.read-model")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_that_is_cut_anywhere_is_repaired_without_a_contradiction(seed: int):
    facts = build_stream(seed, children=False, hostile=seed % 2 == 1)
    whole = Projection(STREAM)
    whole.apply_all(facts)
    newer = thread_read_model(whole.state)
    for place in cuts(seed, facts):
        seen = WatchedProjection(Projection(STREAM))
        seen.projection.apply_all(facts[:place])
        seen.copy.root = msgspec.json.decode(seen.projection.snapshot())
        repair(seen, newer)
        assert seen.state.runtime.status == whole.state.runtime.status
        assert [m for m in seen.state.messages if m.status == "streaming"] == []


@pytest.mark.requirement("projection.repair.goes-on")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_repaired_projection_goes_on_restored_or_not_by_the_same_changes(seed: int):
    facts = build_stream(seed, turns=2, children=False, hostile=seed % 2 == 1)
    for place in cuts(seed, facts):
        missing = random.Random(place).randint(1, 12)
        until = Projection(STREAM)
        until.apply_all(facts[: place + missing])
        straight = Projection(STREAM)
        straight.apply_all(facts[:place])
        straight.repair(thread_read_model(until.state))
        stopped = Projection.restore(straight.checkpoint())
        for fact in facts[place + missing :]:
            assert stopped.apply(fact) == straight.apply(fact)
            stopped = Projection.restore(stopped.checkpoint()) if place % 2 else stopped
        assert stopped.snapshot() == straight.snapshot()


@pytest.mark.requirement("projection.repair.goes-on")
def test_what_waited_behind_a_hole_is_taken_on_top_of_the_repair():
    facts = under_way()[:6]
    tell = FactMaker(12)
    late = [tell("model.completed", **PART, text="All of it."), tell("turn.completed", **TURN)]
    seen = watch_facts([*facts, *late])
    repair(seen, model(11, "running", activeTurnId="turn", messages=[]))
    assert (seen.state.hydration.status, seen.state.hydration.cursor) == ("live", 13)
    assert texts(seen.state)[1] == ("assistant", ["All of it."])
    assert seen.state.messages[1].status == "final"

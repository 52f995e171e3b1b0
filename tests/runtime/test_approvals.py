"""Approvals: every way to answer, or not to, across restarts too."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from factwire.facts import Fact
from factwire.journal import Journal, open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import (
    ActionChanged,
    ActionDecided,
    ActionExpired,
    Decision,
    Runtime,
    StartTurn,
    UnknownAction,
    UnknownDecision,
)
from tests.runtime.agents import (
    SHOWN_HASH,
    Agent,
    approval,
    ask_and_obey,
    classes,
    decide_shown,
    facts_of,
    make_fact,
    open_action,
    run_agent,
    wait_for_end,
)

pytestmark = pytest.mark.asyncio


async def submit(runtime: Runtime) -> str:
    await runtime.submit("thread", "agent", "deploy", turn_id="turn")
    return await open_action(runtime)


@pytest.mark.requirement("runtime.approval.allowed")
async def test_an_approved_tool_runs_and_says_that_the_decision_was_applied(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        action = await submit(runtime)
        decision = await decide_shown(runtime, "thread", action, "approve", by="lena")
        assert await wait_for_end(runtime, "turn") == "completed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert decision.allowed
    shown = state.actions[action]
    assert (shown.status, shown.decision, shown.decided_by, shown.applied) == (
        "resolved",
        "approved",
        "lena",
        True,
    )
    assert state.tools["call"].state == "output-available"
    order = [name for name in classes(facts) if name and name.startswith(("action", "tool.r"))]
    assert order == ["action.required", "action.resolved", "action.updated", "tool.result"]


@pytest.mark.requirement("runtime.approval.denied")
async def test_a_denied_tool_does_not_run(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        action = await submit(runtime)
        decision = await decide_shown(
            runtime, "thread", action, "deny", by="lena", reason="not now"
        )
        await wait_for_end(runtime, "turn")
        state = await runtime.state("thread")

    assert (decision.allowed, decision.reason) == (False, "not now")
    assert state.tools["call"].state == "output-error"


@pytest.mark.requirement("runtime.approval.gate")
async def test_an_agent_that_ignores_a_denial_is_stopped_by_the_gate(tmp_path: Path):
    async def stubborn(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "tool.started", {"toolName": "deploy"}, tool_call_id="call")
        await turn.host.ask(approval("call"))
        yield make_fact(turn.host, "tool.result", {"summary": "did it anyway"}, tool_call_id="call")
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(stubborn, tmp_path) as runtime:
        action = await submit(runtime)
        await decide_shown(runtime, "thread", action, "deny", by="lena")
        assert await wait_for_end(runtime, "turn") == "failed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.failure_category == "invalid_fact"
    assert "tool.result" not in classes(facts)


@pytest.mark.requirement("runtime.approval.expired")
async def test_a_request_that_nobody_answers_is_denied(tmp_path: Path):
    heard: list[Decision] = []

    async def impatient(turn: StartTurn) -> AsyncIterator[Fact]:
        heard.append(await turn.host.ask(approval(expires_in=0.01)))
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(impatient, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        await wait_for_end(runtime, "turn")
        state = await runtime.state("thread")
        [action] = state.actions
        with pytest.raises(ActionExpired):
            await decide_shown(runtime, "thread", action, "approve", by="late")

    assert [decision.allowed for decision in heard] == [False]
    assert state.actions[action].status == "expired"


@pytest.mark.requirement("runtime.approval.once")
async def test_the_same_answer_again_is_no_news_and_the_opposite_is_refused(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        action = await submit(runtime)
        await decide_shown(runtime, "thread", action, "approve", by="lena")
        again = await decide_shown(runtime, "thread", action, "approve", by="max")
        with pytest.raises(ActionDecided):
            await decide_shown(runtime, "thread", action, "deny", by="max")
        await wait_for_end(runtime, "turn")
        facts = await facts_of(runtime)

    assert again.decided_by == "lena"
    assert classes(facts).count("action.resolved") == 1


@pytest.mark.requirement("runtime.approval.once")
async def test_of_many_answers_at_once_exactly_one_counts(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        action = await submit(runtime)
        answers = await asyncio.gather(
            *(
                decide_shown(runtime, "thread", action, "approve" if n % 2 else "deny", by=str(n))
                for n in range(20)
            ),
            return_exceptions=True,
        )
        await wait_for_end(runtime, "turn")
        facts = await facts_of(runtime)

    decided = {answer.allowed for answer in answers if isinstance(answer, Decision)}
    assert len(decided) == 1
    assert classes(facts).count("action.resolved") == 1


@pytest.mark.requirement("runtime.approval.bound")
async def test_an_answer_to_something_else_than_was_shown_is_refused(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        action = await submit(runtime)
        with pytest.raises(ActionChanged):
            await runtime.decide("thread", action, "approve", by="lena", args_hash="sha256:2")
        still = (await runtime.state("thread")).actions[action].status
        await runtime.decide("thread", action, "approve", by="lena", args_hash=SHOWN_HASH)
        assert await wait_for_end(runtime, "turn") == "completed"

    assert still == "pending"


@pytest.mark.requirement("runtime.approval.unknown")
async def test_an_answer_to_nothing_is_refused(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        await submit(runtime)
        with pytest.raises(UnknownAction):
            await runtime.decide("thread", "act_none", "approve", by="lena", args_hash=SHOWN_HASH)
        with pytest.raises(UnknownAction):
            await runtime.decide("another", "act_none", "approve", by="lena", args_hash=SHOWN_HASH)
        with pytest.raises(UnknownDecision, match="expected one of"):
            await runtime.decide("thread", "act_none", "perhaps", by="lena", args_hash=SHOWN_HASH)


@pytest.mark.requirement("runtime.approval.after-cancel")
async def test_an_answer_after_the_turn_was_cancelled_is_refused(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        action = await submit(runtime)
        await runtime.cancel("thread", "turn")
        with pytest.raises(ActionDecided):
            await decide_shown(runtime, "thread", action, "approve", by="late")


@pytest.mark.requirement("runtime.approval.withdrawn")
@pytest.mark.parametrize("closes", [True, False])
async def test_a_request_of_a_call_that_the_agent_cancels_is_withdrawn_and_whoever_waits_hears_it(
    tmp_path: Path, closes: bool
):
    heard: list[Decision] = []

    async def impatient(turn: StartTurn) -> AsyncIterator[Fact]:
        host = turn.host
        yield make_fact(host, "tool.started", {"toolName": "deploy"}, tool_call_id="call")
        asking = asyncio.ensure_future(host.ask(approval("call")))
        while not (actions := [*(await runtime.state("thread")).actions]):  # noqa: ASYNC110
            await asyncio.sleep(0)
        cancelled = {"failureCategory": "cancelled", "message": "no longer needed"}
        yield make_fact(host, "tool.failed", cancelled, tool_call_id="call")
        if closes:
            yield make_fact(host, "action.cancelled", {}, action_id=actions[0], tool_call_id="call")
        heard.append(await asking)
        yield make_fact(host, "turn.completed")

    async with run_agent(impatient, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)
        (action,) = state.actions
        with pytest.raises(ActionDecided):
            await decide_shown(runtime, "thread", action, "approve", by="late")

    assert [(decision.allowed, decision.decision) for decision in heard] == [(False, "cancelled")]
    row = state.actions[action]
    assert (row.status, row.reason, row.turn_id) == ("cancelled", "call_cancelled", "turn")
    order = [name for name in classes(facts) if name and name.startswith(("action", "tool"))]
    assert order == ["tool.started", "action.required", "action.cancelled", "tool.failed"]


@pytest.mark.requirement("runtime.approval.requester")
async def test_a_delegated_request_names_the_subagent(tmp_path: Path):
    async def ask_for_subagent(turn: StartTurn) -> AsyncIterator[Fact]:
        await turn.host.ask(approval(subagent_id="sub_reader", action_type="delegated_permission"))
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(ask_for_subagent, tmp_path) as runtime:
        action = await submit(runtime)
        shown = (await runtime.state("thread")).actions[action]
        await decide_shown(runtime, "thread", action, "approve", by="lena")

    assert (shown.subagent_id, shown.requested_by) == ("sub_reader", "sub_reader")


async def ask_or_resume(turn: StartTurn) -> AsyncIterator[Fact]:
    """Asks; after a restart, waits for the answer to what it asked before."""
    actions = turn.history.actions.values() if turn.history else ()
    pending = [action.action_id for action in actions if action.status == "pending"]
    if turn.resumed and pending:
        decision = await turn.host.await_open(pending[0])
    else:
        yield make_fact(turn.host, "tool.started", {"toolName": "deploy"}, tool_call_id="call")
        decision = await turn.host.ask(approval("call"))
    if decision.allowed:
        yield make_fact(turn.host, "tool.result", {"summary": "deployed"}, tool_call_id="call")
    else:
        yield make_fact(turn.host, "tool.failed", {"failureCategory": "no"}, tool_call_id="call")
    yield make_fact(turn.host, "turn.completed")


async def restart_runtime(journal: Journal, folder: Path, *, resume: str) -> Runtime:
    agents = {"agent": Agent(ask_or_resume, resume=resume)}
    return Runtime(journal, MemoryBlobs(), agents, workspace=folder)


@pytest.mark.requirement("runtime.approval.restart")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_request_survives_a_restart_and_is_answered_then(tmp_path: Path, answer: str):
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with await restart_runtime(journal, tmp_path, resume="yes") as runtime:
            action = await submit(runtime)
        async with await restart_runtime(journal, tmp_path, resume="yes") as runtime:
            assert (await runtime.state("thread")).runtime.status == "waiting"
            await decide_shown(runtime, "thread", action, answer, by="lena")
            assert await wait_for_end(runtime, "turn") == "completed"
            state = await runtime.state("thread")

    done = {"approve": "output-available", "deny": "output-error"}
    assert state.tools["call"].state == done[answer]


@pytest.mark.requirement("runtime.recovery")
async def test_a_turn_whose_agent_cannot_resume_is_closed_after_a_restart(tmp_path: Path):
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with await restart_runtime(journal, tmp_path, resume="no") as runtime:
            action = await submit(runtime)
            await runtime.submit("thread", "agent", "next", turn_id="next")
        async with await restart_runtime(journal, tmp_path, resume="no") as runtime:
            assert await wait_for_end(runtime, "turn") == "failed"
            state = await runtime.state("thread")
            closed = state.actions[action].status
            await decide_shown(runtime, "thread", await open_action(runtime), "approve", by="lena")
            assert await wait_for_end(runtime, "next") == "completed"
            facts = await facts_of(runtime)

    assert closed == "cancelled"
    ends = [fact.payload for fact in facts if fact.event_class == "turn.failed"]
    assert [end["failureCategory"] for end in ends] == ["runtime_restarted"]

"""Decisions for agents that ask by their own stream: handed over once, told as two facts."""

from pathlib import Path
from typing import Any

import pytest

from factwire.facts import inspect_stream
from factwire.journal import open_journal
from factwire.runtime import ActionChanged, Runtime
from factwire.runtime.action_cards import read_place, shown_hash
from tests.runtime.agents import classes, decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.steered import Remote, runtime_of, wait_for_fact

pytestmark = pytest.mark.asyncio


async def ask_remote(runtime: Runtime) -> Any:
    await runtime.submit("thread", "remote", "deploy", turn_id="turn")
    await open_action(runtime)
    return (await runtime.state("thread")).actions["act"]


@pytest.mark.requirement("runtime.handover.decided")
@pytest.mark.parametrize(("decision", "state"), [("approve", True), ("deny", False)])
async def test_a_decision_is_written_handed_over_and_then_applied(
    tmp_path: Path, decision: str, state: bool
):
    remote = Remote()
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        await ask_remote(runtime)
        await decide_shown(runtime, "thread", "act", decision, by="lena", reason="because")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts, action = await facts_of(runtime), (await runtime.state("thread")).actions["act"]

    [response] = remote.responses
    assert (response.turn_id, response.thread_id) == ("turn", "thread")
    made = response.decision
    assert (made.allowed, made.decided_by, made.reason) == (state, "lena", "because")
    names = [name for name in classes(facts) if name and name.startswith("action")]
    assert names == ["action.required", "action.resolved", "action.updated", "action.updated"]
    progress = [fact.payload for fact in facts if fact.event_class == "action.updated"]
    assert [each["applied"] for each in progress] == [False, True]
    assert len({each["sentAt"] for each in progress} | {action.sent_at}) == 1
    assert action.applied is True
    assert action.applied_at is not None
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.handover.bound")
async def test_a_request_of_the_stream_expires_and_is_bound_to_what_is_shown(tmp_path: Path):
    remote = Remote()
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        action = await ask_remote(runtime)
        with pytest.raises(ActionChanged):
            await runtime.decide("thread", "act", "approve", by="me", args_hash="sha256:other")
        shown = action.args_hash
        await runtime.decide("thread", "act", "approve", by="me", args_hash=shown)
        await wait_for_end(runtime, "turn")
    other = Remote(command="make destroy")
    async with runtime_of({"remote": other}, tmp_path) as runtime:
        changed = (await ask_remote(runtime)).args_hash

    assert action.expires_at is not None
    assert "make deploy" in action.shown
    assert shown.startswith("sha256:")
    assert changed != shown


@pytest.mark.requirement("runtime.handover.bound")
async def test_what_the_agent_states_itself_is_kept_where_it_makes_sense(tmp_path: Path):
    remote = Remote(argsHash="sha256:own", expiresAt="2100-01-01T00:00:00Z", shown="all of it")
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        own = await ask_remote(runtime)
    senseless = Remote(expiresAt="soon")
    async with runtime_of({"remote": senseless}, tmp_path) as runtime:
        mended = await ask_remote(runtime)

    assert own.expires_at == "2100-01-01T00:00:00Z"
    # What the agent has hashed may be anything; the answer is bound to what is shown.
    assert own.args_hash == shown_hash(own.shown, None)[1]
    assert own.shown.startswith("all of it\n")
    assert "make deploy" in own.shown
    assert mended.expires_at != "soon"


@pytest.mark.requirement("runtime.handover.risk")
@pytest.mark.parametrize(
    ("command", "severity", "risk"),
    [
        ("rm -rf build", "low", "critical"),
        ("rm -rf build", None, "critical"),
        ("rm -rf build", "harmless", "critical"),
        (["sudo", "ls"], "medium", "critical"),
        ("curl example.org", "low", "high"),
        ("make test", "low", "medium"),
        ("make test", "critical", "critical"),
    ],
)
async def test_the_risk_of_a_request_is_that_of_what_runs_or_what_the_agent_says_if_higher(
    tmp_path: Path, command: Any, severity: str | None, risk: str
):
    fields = {} if severity is None else {"severity": severity}
    remote = Remote(command=command, toolName="run", **fields)
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        action = await ask_remote(runtime)
        await decide_shown(runtime, "thread", "act", "deny", by="lena")
        await wait_for_end(runtime, "turn")

    assert action.severity == risk


@pytest.mark.requirement("runtime.approval.place")
@pytest.mark.parametrize("swapped", [False, True])
async def test_a_yes_to_a_stream_is_a_no_where_the_folder_is_another_one_by_then(
    tmp_path: Path, swapped: bool
):
    async with runtime_of({"remote": (remote := Remote())}, tmp_path) as runtime:
        folder = runtime.workspace.resolve() / "inner"
        folder.mkdir()
        remote.request_fields |= {
            "cwd": str(folder),
            "place": read_place(str(runtime.workspace.resolve()), str(folder)),
        }
        await ask_remote(runtime)
        if swapped:
            folder.rename(folder.with_name("before"))
            folder.mkdir()
        await decide_shown(runtime, "thread", "act", "approve", by="lena")
        await wait_for_end(runtime, "turn")
        facts = await facts_of(runtime)

    [response] = remote.responses
    assert response.decision.allowed is not swapped
    warnings = [fact.payload["code"] for fact in facts if fact.event_class == "runtime.warning"]
    assert warnings == (["place_changed"] if swapped else [])


@pytest.mark.requirement("runtime.handover.expired")
async def test_a_request_that_expires_is_handed_over_as_a_no(tmp_path: Path):
    remote = Remote(expiresAt="2001-01-01T00:00:00Z")
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        await runtime.submit("thread", "remote", "deploy", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    [response] = remote.responses
    assert response.decision.allowed is False
    assert state.actions["act"].status == "expired"
    assert state.tools["call"].failure_category == "permission_denied"
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.handover.lost")
async def test_a_decision_that_does_not_arrive_is_told_and_the_tool_fails(tmp_path: Path):
    remote = Remote()
    remote.error = ConnectionError("gone")
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        await ask_remote(runtime)
        decision = await decide_shown(runtime, "thread", "act", "approve", by="me")
        await wait_for_fact(runtime, "tool.failed")
        assert await wait_for_end(runtime, "turn") == "failed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert decision.allowed
    assert state.actions["act"].applied is False
    assert state.tools["call"].failure_category == "decision_not_delivered"
    assert "tool.result" not in classes(facts)
    codes = [remark.code for remark in state.diagnostics.items.values()]
    assert "decision_not_delivered" in codes
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.handover.once")
async def test_a_decision_that_the_agent_repeats_is_written_once(tmp_path: Path):
    remote = Remote()
    remote.repeats = True
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        await ask_remote(runtime)
        await decide_shown(runtime, "thread", "act", "approve", by="lena")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts = await facts_of(runtime)

    [resolved] = [fact for fact in facts if fact.event_class == "action.resolved"]
    assert resolved.payload["decidedBy"] == "lena"


@pytest.mark.requirement("runtime.handover.once")
async def test_a_decision_that_the_agent_has_by_itself_is_not_handed_over(tmp_path: Path):
    remote = Remote()

    async def own(turn: Any) -> Any:
        def make_fact(name: str, payload: dict[str, Any], **ids: str) -> Any:
            return turn.host.mint.fact(turn.host.scope, name, payload, **ids)

        ids = {"action_id": "act", "tool_call_id": "call"}
        yield make_fact("tool.started", {"toolName": "deploy"}, tool_call_id="call")
        yield make_fact("action.required", {"prompt": "Deploy?"}, **ids)
        yield make_fact("action.resolved", {"decision": "approved", "decidedBy": "console"}, **ids)
        yield make_fact("tool.result", {"summary": "deployed"}, tool_call_id="call")
        yield make_fact("turn.completed", {})

    remote.start_turn = own  # type: ignore[method-assign]
    async with runtime_of({"remote": remote}, tmp_path) as runtime:
        await runtime.submit("thread", "remote", "deploy", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        state = await runtime.state("thread")

    assert remote.responses == []
    assert state.actions["act"].decided_by == "console"


@pytest.mark.requirement("runtime.handover.restart")
@pytest.mark.parametrize("decided_before", [True, False])
async def test_a_request_is_answered_and_handed_over_after_a_restart(
    tmp_path: Path, decided_before: bool
):
    async with open_journal("memory:") as journal:
        async with runtime_of({"remote": Remote()}, tmp_path, journal) as runtime:
            await ask_remote(runtime)
        if decided_before:
            # Nobody runs the turn; the answer is only written down.
            at_rest = Runtime(journal, runtime.blobs, {}, workspace=tmp_path)
            await decide_shown(at_rest, "thread", "act", "approve", by="lena")
        remote = Remote()
        async with runtime_of({"remote": remote}, tmp_path, journal) as runtime:
            if not decided_before:
                await decide_shown(runtime, "thread", "act", "approve", by="lena")
            assert await wait_for_end(runtime, "turn") == "completed"
            facts, state = await facts_of(runtime), await runtime.state("thread")

    [response] = remote.responses
    assert response.decision.decided_by == "lena"
    assert classes(facts).count("action.required") == 1
    assert state.actions["act"].applied is True
    assert state.tools["call"].state == "output-available"
    assert inspect_stream(facts) == []

"""The openai agent: stopped while it speaks, acts or waits, and gone on with after a restart."""

import asyncio
from pathlib import Path

import pytest

from factwire.journal import open_journal
from factwire.runtime import Runtime
from factwire.runtime.policy import Policy
from tests.runtime.agents import WAIT, classes, decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.fake_model import FakeModel, Reply, calls, chunk, text
from tests.runtime.fake_model_runs import Talk, run_model_agent, talk
from tests.runtime.toolboxes import Kept, assert_sound, wait_for_fact

pytestmark = pytest.mark.asyncio

ASKING = Policy()


async def cancel(runtime: Runtime) -> None:
    async with asyncio.timeout(WAIT):
        await runtime.cancel("thread", "turn-1")


@pytest.mark.requirement("runtime.agents.openai.cancel")
@pytest.mark.parametrize(
    "pieces", [(), (chunk({"content": "Well, "}),)], ids=["silent", "speaking"]
)
async def test_cancelling_leaves_the_endpoint_at_once(tmp_path: Path, pieces: tuple[bytes, ...]):
    async def meanwhile(runtime: Runtime, model: FakeModel) -> None:
        async with asyncio.timeout(WAIT):
            await model.hanging.wait()
            if pieces:
                await wait_for_fact(runtime, "model.delta")
            await cancel(runtime)
            await model.gone.wait()

    done, _ = await talk(tmp_path, Reply(pieces, end="hang"), meanwhile=meanwhile)

    assert done.status == "canceled"
    assert done.facts_of_class("turn.failed") == []
    assert done.facts_of_class("model.failed") == []
    assert done.answers == ["Well, "][: len(pieces)]


@pytest.mark.requirement("runtime.agents.openai.cancel")
async def test_cancelling_ends_a_command_and_asks_no_more(tmp_path: Path):
    async def meanwhile(runtime: Runtime, _: FakeModel) -> None:
        await wait_for_fact(runtime, "process.output")
        await cancel(runtime)

    line = "sh -c 'echo ready; sleep 1000'"
    done, model = await talk(tmp_path, calls(("run", {"command": line})), meanwhile=meanwhile)

    assert done.status == "canceled"
    [tool] = done.state.tools.values()
    assert (tool.state, tool.failure_category) == ("cancelled", "cancelled")
    assert "process.terminated" in classes(done.facts)
    assert len(model.requests) == 1


@pytest.mark.requirement("runtime.agents.openai.cancel")
async def test_cancelling_while_a_person_is_asked_does_nothing_more(tmp_path: Path):
    async def meanwhile(runtime: Runtime, _: FakeModel) -> None:
        await open_action(runtime)
        await cancel(runtime)

    wanted = calls(
        ("write", {"path": "a", "content": "x"}), ("write", {"path": "b", "content": ""})
    )
    done, model = await talk(tmp_path, wanted, policy=ASKING, meanwhile=meanwhile)

    assert done.status == "canceled"
    assert [action.status for action in done.state.actions.values()] == ["cancelled"]
    assert [tool.state for tool in done.state.tools.values()] == ["cancelled", "cancelled"]
    assert list((tmp_path / "workspace").iterdir()) == []
    assert len(model.requests) == 1


async def answer_after_restart(
    folder: Path, *replies: Reply, answer: str, prompt: str = "go", before: str = ""
) -> tuple[Talk, FakeModel, Kept]:
    """A turn that asks, a restart, and the answer; `before` is asked in an earlier turn."""
    kept = Kept(folder, ASKING)
    (kept.workspace / "known").write_text("known things")
    journal_url = f"sqlite:{folder / 'journal.db'}"
    async with FakeModel(*replies) as model, open_journal(journal_url) as journal:
        async with run_model_agent(kept, model, journal) as runtime:
            if before:
                await runtime.submit("thread", "openai", before, turn_id="earlier")
                assert await wait_for_end(runtime, "earlier") == "completed"
            await runtime.submit("thread", "openai", prompt, turn_id="turn")
            action = await open_action(runtime)
        async with run_model_agent(kept, model, journal) as runtime:
            assert (await runtime.state("thread")).runtime.status == "waiting"
            await decide_shown(runtime, "thread", action, answer, by="lena")
            status = await wait_for_end(runtime, "turn")
            done = Talk(status, await facts_of(runtime), await runtime.state("thread"))
    assert_sound(done.facts)
    return done, model, kept


@pytest.mark.requirement("runtime.agents.openai.resume")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_the_conversation_goes_on_after_a_restart(tmp_path: Path, answer: str):
    done, model, kept = await answer_after_restart(
        tmp_path,
        text("Hello."),
        calls(("read", {"path": "known"}), say="First I look."),
        calls(("write", {"path": "made", "content": "new"}), say="Now I write."),
        text("That is all."),
        answer=answer,
        prompt="Write it",
        before="Hi",
    )

    allowed = answer == "approve"
    assert done.status == "completed"
    assert (kept.workspace / "made").exists() == allowed
    assert done.answers == ["Hello.", "First I look.", "Now I write.", "That is all."]
    request = model.requests[3]
    assert request.contents_of("user") == ["Hi", "Write it"]
    assert request.contents_of("assistant") == ["Hello.", "First I look.", "Now I write."]
    result = "created made" if allowed else "Denied: denied. It was not done."
    assert request.contents_of("tool") == ["known things", result]
    assert request.contents_of("system")[0] == model.requests[0].contents_of("system")[0]
    [action] = done.state.actions.values()
    assert action.applied
    assert classes(done.facts).count("tool.started") == 2
    assert done.state.metrics.values["steps"] == 3


@pytest.mark.requirement("runtime.agents.openai.resume")
async def test_calls_that_were_not_begun_are_given_up_and_told_so(tmp_path: Path):
    wanted = calls(
        ("write", {"path": "first", "content": "1"}), ("write", {"path": "second", "content": "2"})
    )
    done, model, kept = await answer_after_restart(
        tmp_path, wanted, text("One of two."), answer="approve"
    )

    assert [path.name for path in sorted(kept.workspace.iterdir())] == ["first", "known"]
    created, given_up = model.requests[1].contents_of("tool")
    assert created == "created first"
    assert given_up.startswith("Failed (interrupted): the runtime stopped before")
    first, second = done.state.tools.values()
    assert (first.state, second.failure_category) == ("output-available", "interrupted")


@pytest.mark.requirement("runtime.agents.openai.resume")
async def test_what_is_no_longer_what_was_shown_is_not_done(tmp_path: Path):
    kept = Kept(tmp_path, ASKING)
    (kept.workspace / "a").write_text("one")
    wanted = calls(("write", {"path": "a", "content": "two"}))
    journal_url = f"sqlite:{tmp_path / 'journal.db'}"
    async with FakeModel(wanted, text("Hm.")) as model, open_journal(journal_url) as journal:
        async with run_model_agent(kept, model, journal) as runtime:
            await runtime.submit("thread", "openai", "go", turn_id="turn")
            action = await open_action(runtime)
        (kept.workspace / "a").write_text("changed by hand")
        async with run_model_agent(kept, model, journal) as runtime:
            await decide_shown(runtime, "thread", action, "approve", by="lena")
            assert await wait_for_end(runtime, "turn") == "completed"
            facts = await facts_of(runtime)

    assert_sound(facts)
    assert (kept.workspace / "a").read_text() == "changed by hand"
    assert model.requests[1].contents_of("tool")[0].startswith("Failed (approval_changed): ")


@pytest.mark.requirement("runtime.agents.openai.resume")
async def test_a_turn_that_spoke_when_the_runtime_stopped_is_closed(tmp_path: Path):
    kept = Kept(tmp_path)
    hanging = Reply((chunk({"content": "Well, "}),), end="hang")
    journal_url = f"sqlite:{tmp_path / 'journal.db'}"
    async with FakeModel(hanging) as model, open_journal(journal_url) as journal:
        async with run_model_agent(kept, model, journal) as runtime:
            await runtime.submit("thread", "openai", "go", turn_id="turn")
            await wait_for_fact(runtime, "model.delta")
        async with asyncio.timeout(WAIT):
            await model.gone.wait()
        async with run_model_agent(kept, model, journal) as runtime:
            state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert_sound(facts)
    assert state.runtime.failure_category == "runtime_restarted"
    assert len(model.requests) == 1

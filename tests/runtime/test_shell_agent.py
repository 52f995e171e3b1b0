"""The shell agent: a prompt is a command line, and the exit code is how the turn ends."""

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from factwire.facts import manifest_issues
from factwire.journal import open_journal
from factwire.runtime.agents import ShellAgent
from factwire.runtime.policy import Policy
from tests.runtime.agents import classes, decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.toolboxes import Kept, assert_sound, wait_for_fact

pytestmark = pytest.mark.asyncio

FOREVER = "echo ready; sleep 1000 & echo $! > child; wait"


@pytest.mark.requirement("runtime.agents.shell")
async def test_a_command_line_is_run_and_its_output_streams(tmp_path: Path):
    kept = Kept(tmp_path)
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        await runtime.submit("thread", "shell", "echo one && echo two >&2", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert_sound(facts)
    pieces = [fact.payload for fact in facts if fact.event_class == "process.output"]
    texts = {piece["stream"]: piece["text"] for piece in pieces}
    assert texts == {"stdout": "one\n", "stderr": "two\n"}
    [tool] = state.tools.values()
    assert (tool.tool_name, tool.state, tool.exit_code) == ("run", "output-available", 0)
    assert set(str(tool.output_text).split()) == {"one", "two"}


@pytest.mark.requirement("runtime.agents.shell")
async def test_another_exit_code_than_0_fails_the_turn(tmp_path: Path):
    kept = Kept(tmp_path)
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        await runtime.submit("thread", "shell", "sh -c 'exit 7'", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        facts = await facts_of(runtime)

    [end] = [fact.payload for fact in facts if fact.event_class == "turn.failed"]
    assert end["failureCategory"] == "nonzero_exit"
    assert end["message"] == "sh -c 'exit 7': exit code 7"
    assert end["recoveryHint"]
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.shell")
async def test_a_denied_command_fails_the_turn_and_does_not_run(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        await runtime.submit("thread", "shell", "touch made", turn_id="turn")
        await decide_shown(runtime, "thread", await open_action(runtime), "deny", by="lena")
        assert await wait_for_end(runtime, "turn") == "failed"
        state = await runtime.state("thread")

    assert state.runtime.failure_category == "permission_denied"
    assert not (kept.workspace / "made").exists()


@pytest.mark.requirement("runtime.agents.shell")
async def test_the_options_of_a_turn_give_folder_and_limit(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "inner").mkdir()
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        options = {"cwd": "inner", "seconds": 60}
        await runtime.submit("thread", "shell", "pwd", turn_id="turn", options=options)
        assert await wait_for_end(runtime, "turn") == "completed"
        [tool] = (await runtime.state("thread")).tools.values()

    assert str(tool.output_text).strip() == str(kept.workspace / "inner")


@pytest.mark.requirement("runtime.agents.shell.cancel")
async def test_cancelling_ends_the_whole_group(tmp_path: Path):
    kept = Kept(tmp_path)
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        await runtime.submit("thread", "shell", FOREVER, turn_id="turn")
        await decide_shown(runtime, "thread", await open_action(runtime), "approve", by="lena")
        output = await wait_for_fact(runtime, "process.output")
        before = _alive(output.process_id)
        await runtime.cancel("thread", "turn")
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.latest_turn_status == "canceled"
    [tool] = state.tools.values()
    assert tool.state == "cancelled"
    assert "process.terminated" in classes(facts)
    assert list(kept.world.data.glob("processes/*")) == []
    assert before
    assert _alive(output.process_id) == []
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.shell.cancel")
async def test_a_command_that_will_not_stop_is_killed_and_told(tmp_path: Path):
    kept = Kept(tmp_path)
    line = "trap '' TERM; echo ready; while :; do sleep 1; done"
    async with kept.run_agents({"shell": ShellAgent()}, interrupt_seconds=0.1) as runtime:
        await runtime.submit("thread", "shell", line, turn_id="turn")
        await decide_shown(runtime, "thread", await open_action(runtime), "approve", by="lena")
        output = await wait_for_fact(runtime, "process.output")
        await runtime.cancel("thread", "turn")
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert [process.status for process in state.processes.values()] == ["terminated"]
    assert _alive(output.process_id) == []
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.shell.cancel")
async def test_cancelling_while_a_person_is_asked_runs_nothing(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        await runtime.submit("thread", "shell", "touch made", turn_id="turn")
        action = await open_action(runtime)
        async with asyncio.timeout(60):
            await runtime.cancel("thread", "turn")
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.actions[action].status == "cancelled"
    assert state.runtime.latest_turn_status == "canceled"
    assert not (kept.workspace / "made").exists()
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.shell.resume")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_command_waits_for_its_approval_across_a_restart(tmp_path: Path, answer: str):
    kept = Kept(tmp_path, Policy())
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            await runtime.submit("thread", "shell", "touch made", turn_id="turn")
            action = await open_action(runtime)
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            assert (await runtime.state("thread")).runtime.status == "waiting"
            await decide_shown(runtime, "thread", action, answer, by="lena")
            status = await wait_for_end(runtime, "turn")
            state, facts = await runtime.state("thread"), await facts_of(runtime)

    done = answer == "approve"
    assert status == ("completed" if done else "failed")
    assert (kept.workspace / "made").exists() == done
    assert state.actions[action].applied
    assert classes(facts).count("tool.started") == 1
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.shell.resume")
async def test_an_approval_for_something_else_than_would_run_now_runs_nothing(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            await runtime.submit("thread", "shell", "touch made", turn_id="turn")
            action = await open_action(runtime)
        moved = kept.workspace.rename(tmp_path / "elsewhere")
        kept.world.workspace = moved
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            await decide_shown(runtime, "thread", action, "approve", by="lena")
            assert await wait_for_end(runtime, "turn") == "failed"
            state = await runtime.state("thread")

    assert state.runtime.failure_category == "approval_changed"
    assert not (moved / "made").exists()


@pytest.mark.requirement("runtime.agents.shell.resume")
async def test_an_approval_that_was_given_while_nothing_ran_is_used_once(tmp_path: Path):
    """The turn waits for room after a restart, and the answer comes first."""
    kept = Kept(tmp_path, Policy())
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            await runtime.submit("thread", "shell", "mkdir made", turn_id="turn")
            action = await open_action(runtime)
        async with kept.run_agents({"shell": ShellAgent()}, journal, active_turns=1) as runtime:
            thread = await runtime.thread("thread")
            deciding = asyncio.ensure_future(
                thread.approvals.decide(
                    action,
                    "approve",
                    by="lena",
                    args_hash=thread.approvals.build_card(action).args_hash or "",
                ),
            )
            assert await wait_for_end(runtime, "turn") == "completed"
            await deciding
            facts = await facts_of(runtime)

    assert (kept.workspace / "made").is_dir()
    assert classes(facts).count("process.started") == 1
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.shell.resume")
async def test_work_that_cannot_be_made_ready_again_is_not_done(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            await runtime.submit("thread", "shell", "touch made", turn_id="turn")
            action = await open_action(runtime)
        kept.means = msgspec.structs.replace(kept.means, processes=None)
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            assert await wait_for_end(runtime, "turn") == "failed"
            state = await runtime.state("thread")

    assert state.runtime.failure_category == "approval_changed"
    assert state.actions[action].status == "cancelled"


@pytest.mark.requirement("runtime.agents.manifest")
async def test_the_manifest_says_what_the_shell_can():
    manifest = ShellAgent().manifest
    assert manifest_issues(manifest) == []
    assert (manifest.resume, manifest.cancel, manifest.sandbox) == ("yes", "yes", "yes")


def _alive(process_id: str | None) -> list[str]:
    """Processes that carry the id of ours in their environment."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"FACTWIRE_PROCESS={process_id}".encode() in entry.read_bytes():
                found.append(entry.parent.name)
    return found

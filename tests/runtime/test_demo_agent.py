"""The demo agent: every theme shows what it promises, in sound facts, and nothing is made up."""

import asyncio
from pathlib import Path

import pytest

from factwire.facts import Fact, manifest_issues
from factwire.journal import open_journal
from factwire.projection import DIAGNOSTIC_CODES, ProjectionState
from factwire.projection.messages import TextPart
from factwire.runtime import Runtime
from factwire.runtime.agents import DemoAgent, DemoOptions
from factwire.runtime.agents.demo_agent import THEMES, help_text, theme_of
from factwire.runtime.policy import Policy
from tests.runtime.agents import classes, decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.toolboxes import Kept, assert_sound, wait_for_fact

pytestmark = pytest.mark.asyncio


class Paced:
    """Sleeps that are only written down."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def demo() -> DemoAgent:
    return DemoAgent(sleep=Paced())


async def answer_all(runtime: Runtime, answer: str = "approve") -> None:
    """Answer whatever is asked, until the turn has ended."""
    thread = await runtime.thread("thread")
    while True:
        question = asyncio.ensure_future(open_action(runtime))
        over = asyncio.ensure_future(thread.wait_for("turn"))
        await asyncio.wait({question, over}, return_when=asyncio.FIRST_COMPLETED)
        if not question.done():
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)
            return
        over.cancel()
        await asyncio.gather(over, return_exceptions=True)
        await decide_shown(runtime, "thread", question.result(), answer, by="lena")


class Played:
    def __init__(self, prompt: str, status: str, state: ProjectionState, facts: list[Fact]) -> None:
        self.prompt = prompt
        self.status = status
        self.state = state
        self.facts = facts

    @property
    def text(self) -> str:
        parts = [part for message in self.state.messages for part in message.parts]
        return "\n".join(
            str(part.text)
            for part in parts
            if isinstance(part, TextPart) and str(part.text) != self.prompt
        )

    @property
    def files(self) -> set[str]:
        return {path.rpartition("/")[2].partition("-")[0] for path in self.state.coding.files}


async def play(kept: Kept, prompt: str, answer: str = "approve") -> Played:
    async with kept.run_agents({"demo": demo()}) as runtime:
        await runtime.submit("thread", "demo", prompt, turn_id="turn")
        async with asyncio.timeout(280):
            await answer_all(runtime, answer)
        status = await wait_for_end(runtime, "turn")
        played = Played(prompt, status, await runtime.state("thread"), await facts_of(runtime))
    assert_sound(played.facts)
    assert _remarks(played) == []
    return played


@pytest.mark.requirement("runtime.agents.demo.surfaces")
async def test_the_tour_has_something_true_on_every_surface(tmp_path: Path):
    kept = Kept(tmp_path)
    played = await play(kept, "show me")
    state = played.state

    assert played.status == "completed"
    assert "Hello." in played.text
    [plan] = state.plans.values()
    assert (plan.state, len(plan.steps or [])) == ("final", 3)
    assert played.files == {"notes", "summary"}
    written = (kept.workspace / "factwire-demo" / "notes-turn.md").read_text()
    assert "exactly one thing" in written
    assert [patch.status for patch in state.coding.patches.values()] == ["applied"]
    assert {tool.state for tool in state.tools.values()} == {"output-available"}
    assert {tool.tool_name for tool in state.tools.values()} == {"write", "patch", "run", "search"}
    assert {process.status for process in state.processes.values()} == {"completed"}
    [action] = state.actions.values()
    assert (action.decision, action.applied) == ("approved", True)
    [run] = state.coding.tests.values()
    assert run.status == "passed"
    [item] = state.evidence.items.values()
    assert (item.verdict, item.kind) == ("passed", "verification")
    assert b"passed" in await kept.content(item.summary_ref or "")
    report = state.artifacts["art_report_turn"]
    assert b"# Report" in await kept.content(report.content_ref or "")
    assert state.metrics.usage.records == 1
    assert state.metrics.usage.output_tokens > 50
    assert any("sandbox" in (name or "") for name in classes(played.facts))
    assert any(entry.kind == "note" for entry in state.timeline)


@pytest.mark.requirement("runtime.agents.demo.team")
async def test_two_subagents_work_and_one_hands_over_to_the_other(tmp_path: Path):
    played = await play(Kept(tmp_path), "demo: team")
    state = played.state

    threads = state.subagents.threads
    assert {thread.name: (thread.status, thread.lineage) for thread in threads.values()} == {
        "reader": ("completed", "known"),
        "writer": ("completed", "known"),
    }
    assert {task.status for task in state.tasks.values()} == {"completed"}
    assert {thread.parent_task_id for thread in threads.values()} == {"task_team_turn"}
    [handoff] = state.team_workbench.handoff_events.values()
    assert handoff.status == "completed"
    assert [threads[who or ""].name for who in (handoff.from_agent, handoff.to_agent)] == [
        "reader",
        "writer",
    ]
    work = {tool.tool_name: tool.subagent_id for tool in state.tools.values() if tool.subagent_id}
    assert work == {"search": "sub_reader_turn", "write": "sub_writer_turn"}
    search = next(tool for tool in state.tools.values() if tool.tool_name == "search")
    assert "A fact is one thing" in str(search.output_text)


@pytest.mark.requirement("runtime.agents.demo.team")
async def test_subagents_that_are_not_allowed_to_work_fail_and_ask_for_themselves(tmp_path: Path):
    played = await play(Kept(tmp_path, Policy.of("default", ask=["Read"])), "demo: team", "deny")
    state = played.state

    assert played.status == "completed"
    assert {thread.status for thread in state.subagents.threads.values()} == {"failed"}
    actions = [action for action in state.actions.values() if action.subagent_id]
    assert [(action.action_type, action.requested_by) for action in actions] == [
        ("delegated_permission", "sub_reader_turn"),
        ("delegated_permission", "sub_writer_turn"),
    ]
    assert played.files == set()
    assert "Both are done" not in played.text
    assert (
        "The reader and the writer could not complete the task, so there is no summary."
        in played.text
    )
    assert state.tasks["task_team_turn"].status == "failed"


@pytest.mark.requirement("runtime.agents.demo.approval")
@pytest.mark.parametrize("allow", [["Edit"], ["Bash(cksum *)", "Edit", "submit_plan"]])
@pytest.mark.parametrize("theme", ["plan", "approve"])
async def test_where_nobody_is_to_be_asked_nobody_is(tmp_path: Path, theme: str, allow: list[str]):
    policy = Policy.of("dontAsk", allow=allow)
    played = await play(Kept(tmp_path, policy), f"demo: {theme}")

    assert played.status == "completed"
    assert played.state.actions == {}
    [tool] = [tool for tool in played.state.tools.values() if tool.state == "output-error"]
    assert tool.failure_category == "permission_denied"
    assert classes(played.facts).count("permission.denied") == 1
    [denial] = [fact for fact in played.facts if fact.event_class == "permission.denied"]
    assert denial.payload["reasonCode"] == "dont_ask"
    assert "to be asked, choose a --policy other than dontAsk" in denial.payload["message"]


@pytest.mark.requirement("runtime.agents.demo.fail")
async def test_a_check_that_may_not_run_is_not_told_as_one_that_failed(tmp_path: Path):
    played = await play(Kept(tmp_path, Policy.of("dontAsk")), "demo: fail")

    assert played.status == "failed"
    [end] = [fact.payload for fact in played.facts if fact.event_class == "turn.failed"]
    assert end["failureCategory"] == "permission_denied"
    assert end["message"].startswith("the check that should fail did not run: ")


@pytest.mark.requirement("runtime.agents.demo.approval")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_command_waits_for_a_yes_or_a_no(tmp_path: Path, answer: str):
    played = await play(Kept(tmp_path), "demo: approve", answer)

    [action] = played.state.actions.values()
    assert action.command == ["cksum", "factwire-demo/notes-turn.md"]
    assert played.status == "completed"
    ran = [process.command for process in played.state.processes.values()]
    assert ran == ([action.command] if answer == "approve" else [])
    expected = "You approved it, so I ran it" if answer == "approve" else "not allowed"
    assert expected in played.text


@pytest.mark.requirement("runtime.agents.demo.approval")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_plan_is_decided_about_before_it_is_carried_out(tmp_path: Path, answer: str):
    played = await play(Kept(tmp_path), "demo: plan", answer)

    [plan] = played.state.plans.values()
    assert plan.decision == ("approved" if answer == "approve" else "denied")
    assert played.files == ({"notes"} if answer == "approve" else set())
    assert played.status == "completed"


@pytest.mark.requirement("runtime.agents.demo.files")
async def test_files_are_written_patched_and_read_with_their_diffs(tmp_path: Path):
    kept = Kept(tmp_path)
    played = await play(kept, "demo: files")

    [file] = played.state.coding.files.values()
    assert (file.changes, file.reads) == (2, 1)
    [artifact] = played.state.artifacts.values()
    assert len(artifact.versions) == 2
    diff = await kept.content(artifact.diff_ref or "")
    assert b"+A fact is exactly one thing that happened." in diff
    assert "the file has 5 lines" in played.text


@pytest.mark.requirement("runtime.agents.demo.fail")
async def test_it_fails_on_request_with_a_category_and_a_hint(tmp_path: Path):
    played = await play(Kept(tmp_path), "please fail")

    assert played.status == "failed"
    [end] = [fact.payload for fact in played.facts if fact.event_class == "turn.failed"]
    assert end["failureCategory"] == "nonzero_exit"
    assert end["recoveryHint"]
    [tool] = played.state.tools.values()
    assert (tool.state, tool.exit_code) == ("output-error", 3)


@pytest.mark.requirement("runtime.agents.demo.long")
async def test_long_output_is_really_long_and_mostly_behind_a_ref(tmp_path: Path):
    kept = Kept(tmp_path)
    played = await play(kept, "demo: long")

    [tool] = played.state.tools.values()
    whole = await kept.content(tool.output_ref or "")
    assert whole == "".join(f"{number}\n" for number in range(1, 800_001)).encode()
    assert len(whole) > 5_000_000
    outputs = [fact for fact in played.facts if fact.event_class == "process.output"]
    assert sum(len(fact.payload["text"]) for fact in outputs) == 1024 * 1024


@pytest.mark.requirement("runtime.agents.demo.cancel")
async def test_a_slow_one_can_be_watched_and_stopped(tmp_path: Path):
    kept = Kept(tmp_path)
    async with kept.run_agents({"demo": demo()}) as runtime:
        await runtime.submit("thread", "demo", "demo: slow", turn_id="turn")
        await decide_shown(runtime, "thread", await open_action(runtime), "approve", by="lena")
        await wait_for_fact(runtime, "process.output")
        await runtime.cancel("thread", "turn")
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.latest_turn_status == "canceled"
    assert [process.status for process in state.processes.values()] == ["terminated"]
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.demo.cancel")
async def test_it_can_be_stopped_in_the_middle_of_a_sentence(tmp_path: Path):
    kept = Kept(tmp_path)
    talking = asyncio.Event()

    async def sleep(_: float) -> None:
        talking.set()
        await asyncio.sleep(0)

    async with kept.run_agents({"demo": DemoAgent(sleep=sleep)}) as runtime:
        await runtime.submit("thread", "demo", "demo: help", turn_id="turn")
        async with asyncio.timeout(60):
            await talking.wait()
            await runtime.cancel("thread", "turn")
        facts = await facts_of(runtime)

    assert classes(facts)[-2:] == ["turn.canceled", "snapshot.updated"]
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.demo.resume")
@pytest.mark.parametrize("theme", ["approve", "plan", "team", "tour", "files"])
async def test_it_goes_on_after_a_restart_at_whatever_it_asked(tmp_path: Path, theme: str):
    """With a policy that asks about everything, the runtime stops at every request."""
    kept = Kept(tmp_path, Policy())
    stops = 0
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal, asyncio.timeout(280):
        async with kept.run_agents({"demo": demo()}, journal) as runtime:
            await runtime.submit("thread", "demo", f"demo: {theme}", turn_id="turn")
            action = await open_action(runtime)
        while True:
            async with kept.run_agents({"demo": demo()}, journal) as runtime:
                thread = await runtime.thread("thread")
                await decide_shown(runtime, "thread", action, "approve", by="lena")
                stops += 1
                question = asyncio.ensure_future(open_action(runtime))
                over = asyncio.ensure_future(thread.wait_for("turn"))
                await asyncio.wait({question, over}, return_when=asyncio.FIRST_COMPLETED)
                done = over.done()
                action = "" if done else question.result()
                question.cancel()
                over.cancel()
                await asyncio.gather(question, over, return_exceptions=True)
                if done:
                    state, facts = await runtime.state("thread"), await facts_of(runtime)
                    break

    assert state.runtime.latest_turn_status == "completed"
    assert stops == len(state.actions) > 0
    assert {tool.state for tool in state.tools.values()} == {"output-available"}
    assert {task.status for task in state.tasks.values()} <= {"completed"}
    assert classes(facts).count("turn.started") == 1
    assert_sound(facts)


@pytest.mark.requirement("runtime.agents.demo.surfaces")
async def test_without_programs_it_says_what_did_not_work(tmp_path: Path):
    played = await play(Kept(tmp_path, processes=None), "demo: tour")

    assert played.status == "completed"
    assert "did not work (programs_unavailable)" in played.text
    [item] = played.state.evidence.items.values()
    assert item.verdict == "unknown"


@pytest.mark.requirement("runtime.agents.demo.themes")
async def test_a_word_of_the_prompt_chooses_the_theme_and_help_lists_all(tmp_path: Path):
    assert {name: theme_of(f"demo: {name}").name for name in THEMES} == {
        name: name for name in THEMES
    }
    assert theme_of("").name == "tour"
    assert theme_of("Please show me a diff!").name == "files"
    played = await play(Kept(tmp_path), "help")
    assert played.text == help_text()
    assert all(f"`demo: {name}`" in help_text() for name in THEMES)
    assert all(name in demo().manifest.title for name in THEMES)


@pytest.mark.requirement("runtime.agents.demo.themes")
async def test_words_come_at_the_pace_that_is_set(tmp_path: Path):
    kept, paced = Kept(tmp_path), Paced()
    agent = DemoAgent(DemoOptions(pace=0.25), sleep=paced)
    async with kept.run_agents({"demo": agent}) as runtime:
        await runtime.submit("thread", "demo", "help", turn_id="turn")
        await wait_for_end(runtime, "turn")
        facts = await facts_of(runtime)

    deltas = classes(facts).count("model.delta")
    assert paced.waits == [0.25] * deltas
    assert deltas == len(help_text().split())


@pytest.mark.requirement("runtime.agents.manifest")
async def test_the_manifest_says_what_the_demo_can():
    manifest = demo().manifest
    assert manifest_issues(manifest) == []
    assert (manifest.resume, manifest.subagents, manifest.evidence) == ("yes", "yes", "yes")


def _remarks(played: Played) -> list[str]:
    """What the projection had to say against the facts; a failed call is no such thing."""
    remarks = played.state.diagnostics.items.values()
    return [f"{item.code}: {item.message}" for item in remarks if item.code in DIAGNOSTIC_CODES]

"""Runtimes on one journal: none touches what another may still be running."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal import Journal, JournalUnwritable, open_journal
from factwire.runtime import (
    Identity,
    Provider,
    Runtime,
    ThreadElsewhere,
    open_identity,
)
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.recovery import recover
from tests.runtime.agents import (
    Agent,
    ask_and_obey,
    classes,
    echo,
    endless,
    facts_of,
    open_action,
    run_agent,
    wait_for_end,
)
from tests.runtime.steered import Failing, runtime_of, wait_for_fact

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Identity, Identity]:
    """The identities of two machines."""
    return open_identity(tmp_path / "one"), open_identity(tmp_path / "two")


def on(journal: Journal, identity: Identity, folder: Path, script: Any = echo, **how: Any) -> Any:
    agents = {"agent": Agent(script, **how)}
    return runtime_of(agents, folder, journal, identity=identity)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.claims")
async def test_a_turn_of_another_runtime_is_left_alone(
    tmp_path: Path, machines: tuple[Identity, Identity]
):
    async with (
        open_journal("memory:") as journal,
        on(journal, machines[0], tmp_path, endless) as first,
    ):
        await first.submit("thread", "agent", "work", turn_id="turn")
        await first.submit("thread", "agent", "more", turn_id="queued")
        await wait_for_fact(first, "tool.started")
        async with on(journal, machines[1], tmp_path) as second:
            # It recovered on its way in, and would have closed the turn.
            for refused in (
                second.submit("thread", "agent", "mine"),
                second.cancel("thread", "turn"),
                second.remove("thread", "queued"),
                second.steer("thread", "left"),
            ):
                with pytest.raises(ThreadElsewhere) as raised:
                    await refused
                assert raised.value.code == "thread_elsewhere"
            other = await second.submit("elsewhere", "agent", "mine", turn_id="mine")
            await wait_for_end(second, "mine", "elsewhere")
        await first.cancel("thread", "turn")
        facts = await facts_of(first)

    assert other.status == "started"
    assert "turn.failed" not in classes(facts)
    assert inspect_stream(facts) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.claims")
async def test_what_another_claims_can_be_taken_over_by_who_knows_that_it_is_gone(
    tmp_path: Path, machines: tuple[Identity, Identity]
):
    async with open_journal("memory:") as journal:
        async with on(journal, machines[0], tmp_path, endless) as first:
            await first.submit("thread", "agent", "work", turn_id="turn")
            await first.submit("thread", "agent", "more", turn_id="queued")
            await wait_for_fact(first, "tool.started")
        async with on(journal, machines[1], tmp_path) as second:
            thread = await second.thread("thread")
            assert not thread.is_busy
            await recover(second, ("thread",), take_over=True)
            assert await wait_for_end(second, "queued") == "completed"
            facts = await facts_of(second)

    assert classes(facts).count("turn.failed") == 1
    assert inspect_stream(facts) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.claims")
async def test_a_turn_that_waits_for_a_person_changes_hands_and_says_so(
    tmp_path: Path, machines: tuple[Identity, Identity]
):
    async with open_journal("memory:") as journal:
        async with on(journal, machines[0], tmp_path, ask_and_obey, resume="yes") as first:
            await first.submit("thread", "agent", "work", turn_id="turn")
            await open_action(first)
        async with on(journal, machines[1], tmp_path, endless, resume="yes") as second:
            await recover(second, take_over=True)
            async with on(
                journal, machines[0], tmp_path, ask_and_obey, resume="yes"
            ) as first_again:
                with pytest.raises(ThreadElsewhere):
                    await first_again.cancel("thread", "turn")
            facts = await facts_of(second)

    started = [fact for fact in facts if fact.event_class == "turn.started"]
    assert [fact.payload.get("takenOverFrom") for fact in started] == [
        None,
        machines[0].instance,
    ]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.claims")
async def test_a_retry_that_waits_belongs_to_the_runtime_that_will_try(
    tmp_path: Path, machines: tuple[Identity, Identity]
):
    from tests.runtime.test_retrying import SLOW, settings

    agents = {"agent": Agent(Failing(9))}
    async with (
        open_journal("memory:") as journal,
        runtime_of(
            agents, tmp_path, journal, identity=machines[0], settings=settings(SLOW)
        ) as first,
    ):
        await first.submit("thread", "agent", "work", turn_id="turn")
        await wait_for_fact(first, "turn.failed")
        async with on(journal, machines[1], tmp_path) as second:
            assert not (await second.thread("thread")).is_busy
            with pytest.raises(ThreadElsewhere):
                await second.submit("thread", "agent", "mine")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.dead")
async def test_what_a_dead_process_of_the_same_folder_claimed_is_free(tmp_path: Path):
    lived, now = open_identity(tmp_path), open_identity(tmp_path)
    async with open_journal("memory:") as journal:
        async with on(journal, lived, tmp_path, endless) as first:
            await first.submit("thread", "agent", "work", turn_id="turn")
            await wait_for_fact(first, "tool.started")
        assert now.is_other(lived.instance)
        lived.release()
        assert not now.is_other(lived.instance)
        async with on(journal, now, tmp_path) as second:
            again = await second.submit("thread", "agent", "mine", turn_id="mine")
            await wait_for_end(second, "mine")
            facts = await facts_of(second)

    assert again.status == "started"
    assert classes(facts).count("turn.failed") == 1


@pytest.mark.requirement("runtime.sharing.dead")
def test_a_killed_process_is_known_to_be_dead(tmp_path: Path):
    code = (
        "import sys; from factwire.runtime import open_identity\n"
        "print(open_identity(sys.argv[1]).instance, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    claimed = process.stdout.readline().strip()
    mine = open_identity(tmp_path)
    try:
        assert mine.is_other(claimed)
    finally:
        process.kill()
        process.communicate()
    assert not mine.is_other(claimed)
    assert claimed.split(":")[0] == (mine.instance or "").split(":")[0]
    open_identity(tmp_path).release()
    assert not (tmp_path / "instances" / claimed.split(":")[1]).exists()


@pytest.mark.requirement("runtime.sharing.dead")
def test_an_identity_is_for_its_user_alone_and_says_no_secret(tmp_path: Path):
    identity = open_identity(tmp_path / "data")
    kept = tmp_path / "data" / "identity.json"
    assert kept.stat().st_mode & 0o077 == 0
    assert Identity().claim() == {}
    assert not Identity().is_other(None)
    assert Identity().is_other(identity.instance)
    again = open_identity(tmp_path / "data")
    assert again.seal(("a",)) == identity.seal(("a",))
    assert again.instance != identity.instance


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.stale")
async def test_a_thread_on_which_somebody_else_wrote_is_read_again(
    tmp_path: Path, machines: tuple[Identity, Identity]
):
    async with (
        open_journal("memory:") as journal,
        on(journal, machines[0], tmp_path) as first,
        on(journal, machines[1], tmp_path) as second,
    ):
        for number in range(6):
            runtime: Runtime = (first, second)[number % 2]
            await runtime.submit("thread", "agent", "hi", turn_id=f"t{number}")
            await wait_for_end(runtime, f"t{number}")
        facts = await facts_of(first)

    assert classes(facts).count("turn.completed") == 6
    assert inspect_stream(facts) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.exclusive")
async def test_where_nobody_else_can_write_what_others_claimed_is_free(
    tmp_path: Path, machines: tuple[Identity, Identity]
):
    async with open_journal("memory:") as journal:
        async with on(journal, machines[0], tmp_path, endless) as first:
            await first.submit("thread", "agent", "work", turn_id="turn")
            await wait_for_fact(first, "tool.started")
        agents = {"agent": Agent(echo)}
        async with runtime_of(
            agents, tmp_path, journal, identity=machines[1], exclusive=True
        ) as second:
            assert await wait_for_end(second, "turn") == "failed"


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sharing.told")
@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_thread_that_another_runtime_tells_is_not_ended_by_a_restart(
    tmp_path: Path, exclusive: bool
):
    elsewhere = Mint("elsewhere")
    scope = FactScope(thread_id="thread", turn_id="turn", session_id="session")
    opening = [elsewhere.fact(scope, name) for name in ("turn.submitted", "turn.started")]
    async with open_journal("memory:") as journal:
        await journal.append(opening)
        async with runtime_of(
            {"agent": Agent(echo)}, tmp_path, journal, exclusive=exclusive
        ) as runtime:
            await recover(runtime)
            assert classes(await facts_of(runtime)) == ["turn.submitted", "turn.started"]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.journal-failure")
async def test_a_thread_whose_journal_failed_goes_on_once_it_takes_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    agents: dict[str, Provider] = {"agent": Agent(endless)}
    async with (
        open_journal("memory:") as journal,
        runtime_of(agents, tmp_path, journal) as runtime,
    ):
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        await wait_for_fact(runtime, "tool.started")
        with monkeypatch.context() as full:
            full.setattr(journal, "append", _full)
            with pytest.raises(JournalUnwritable):
                await runtime.steer("thread", "x", when_unsupported="queue")
            with pytest.raises(JournalUnwritable):
                await runtime.cancel("thread", "turn")
        agents["agent"] = Agent(echo)
        await runtime.submit("thread", "agent", "again", turn_id="next")
        assert await wait_for_end(runtime, "next") == "completed"
        facts = await facts_of(runtime)

    assert [fact.turn_id for fact in facts if fact.event_class == "turn.failed"] == ["turn"]
    assert inspect_stream(facts) == []


async def _full(*_: Any, **__: Any) -> Any:
    raise JournalUnwritable("no space left")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.watchers")
async def test_a_watcher_that_raises_is_dismissed_and_told_once(tmp_path: Path):
    seen: list[str | None] = []

    def broken(fact: Fact, _: object) -> None:
        if fact.event_class == "model.delta":
            raise ValueError("no")

    async with run_agent(echo, tmp_path) as runtime:
        log = (await runtime.thread("thread")).log
        stop = log.watch(broken)
        log.watch(lambda fact, _: seen.append(fact.event_class))
        await runtime.submit("thread", "agent", "one two three", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        await runtime.submit("thread", "agent", "four", turn_id="next")
        assert await wait_for_end(runtime, "next") == "completed"
        stop()
        facts, state = await facts_of(runtime), await runtime.state("thread")

    assert seen == classes(facts)
    warned = [remark.code for remark in state.diagnostics.items.values()]
    assert warned == ["watcher_failed"]
    assert inspect_stream(facts) == []
    assert asyncio.all_tasks() - {asyncio.current_task()} == set()

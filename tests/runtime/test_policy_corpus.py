"""Of hundreds of command lines that try to do what rules deny, none does, in the real sandbox; what
is left are the limits that the documentation names.
"""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from factwire.facts import Fact
from factwire.runtime import StartTurn
from factwire.runtime.policy import Policy, command_wrappers
from factwire.runtime.policy.shell_syntax import SimpleCommand
from factwire.runtime.sandbox import SandboxPolicy, sandbox_policy
from factwire.runtime.sandbox.sandbox_policy import DeniedPaths
from factwire.runtime.toolbox import Toolbox
from tests.runtime.agents import Agent, make_fact
from tests.runtime.command_corpus import (
    DENY,
    HIDDEN,
    LIMITS,
    NAMED,
    SWEEPS,
    TARGETS,
    Ground,
    build_carriers,
    build_corpus,
)
from tests.runtime.elsewhere import ROOT
from tests.runtime.programs import strict
from tests.runtime.toolboxes import Kept, use

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("runtime.policy.corpus")]

SHARDS = 8


async def find_reaching(
    folder: Path,
    lines: Sequence[str],
    *allow: str,
    committed: bool = False,
    sandbox: SandboxPolicy | None = None,
) -> set[str]:
    """The lines that reach what is forbidden, each run by an agent that asks nobody."""
    policy = Policy.of("dontAsk", allow=allow, deny=DENY)
    kept = Kept(folder, policy, sandbox=sandbox or strict())
    ground = Ground(kept.workspace)
    reaching: set[str] = set()

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = Toolbox(turn.host)
        for line in lines:
            ground.lay_out()
            if committed:
                ground.commit()
            command = line.replace("@/", f"{kept.workspace}/")
            outcome = await toolbox.call("run", {"command": command})
            if ground.was_reached(outcome.text):
                reaching.add(line)
        yield make_fact(turn.host, "turn.completed")

    async with kept.run_agents({"agent": Agent(script)}) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        assert await (await runtime.thread("thread")).wait_for("turn") == "completed"
    return reaching


@pytest.mark.nightly
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_no_line_reaches_what_is_forbidden_though_commands_are_allowed(
    tmp_path: Path, shard: int
):
    lines = build_corpus()[shard::SHARDS]
    assert await find_reaching(tmp_path, lines, "Bash") <= LIMITS.keys()


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS)
async def test_a_rule_for_a_program_does_not_let_it_run_another(tmp_path: Path, target: str):
    rules = {f"Bash({way.split()[0]} *)" for way in NAMED}
    lines = [way.format(c=target) for way in NAMED]
    assert await find_reaching(tmp_path, lines, *rules) == set()


async def test_no_line_reads_a_folder_that_a_rule_denies_where_there_is_no_sandbox(tmp_path: Path):
    unconfined = SandboxPolicy(mode="off")
    lines = build_carriers()
    assert await find_reaching(tmp_path, lines, "Bash", committed=True, sandbox=unconfined) == set()


@pytest.mark.parametrize("line", ["mv keys o", "git mv keys o", "mv -t sub keys", "mv ./keys/ o"])
async def test_a_folder_is_not_moved_away_from_the_rule_that_hides_its_files(
    tmp_path: Path, line: str
):
    kept = Kept(tmp_path, Policy.of("dontAsk", allow=["Bash"], deny=DENY), sandbox=strict())
    ground = Ground(kept.workspace)
    ground.lay_out()
    ground.commit()
    lines = [line, "cat o/key.txt", "cat sub/keys/key.txt", "mv sub other"]
    used = await use(kept, *(("run", {"command": each}) for each in lines))
    assert not ground.was_reached("".join(outcome.text for outcome in used.outcomes))
    assert not (kept.workspace / "sub").exists()


async def test_the_limits_are_those_that_the_documentation_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert len(LIMITS) <= 5
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    reaching = await find_reaching(tmp_path, [*LIMITS], "Bash", committed=True)
    assert reaching == LIMITS.keys()
    page = (ROOT / "docs" / "policy.md").read_text()
    assert all(f"`{line}`" in page for line in LIMITS)


async def test_a_reader_that_knows_no_programs_fails_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def trust_program(command: SimpleCommand) -> SimpleCommand:
        return command

    monkeypatch.setattr(command_wrappers, "check_program", trust_program)
    lines = [way.format(c=TARGETS[0]) for way in HIDDEN]
    assert not await find_reaching(tmp_path, lines, "Bash") <= LIMITS.keys()


async def test_a_sandbox_without_masks_fails_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def find_nothing(_rules: object, _workspace: Path) -> DeniedPaths:
        return DeniedPaths()

    monkeypatch.setattr(sandbox_policy, "find_denied_paths", find_nothing)
    assert not await find_reaching(tmp_path, SWEEPS, "Bash") <= LIMITS.keys()

"""Real agents by the command alone: run here or by an Edge, answered from another terminal."""

import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agents.conftest import Aimock
from tests.agents.homes import KEY, AgentHome
from tests.agents.replies import Reply, calls, says
from tests.cli.cli_commands import COMMAND, CommandOutput
from tests.cli.cli_homes import PATIENCE, Background, action_in, thread_in


class Case(msgspec.Struct, frozen=True):
    """An agent, whose model it speaks to, and the call by which it runs a command."""

    agent: str
    lives: str
    tool: str
    args: dict[str, Any]

    def replies(self) -> list[Reply]:
        return [
            says("It is made.", user_message="make it", has_tool_result=True),
            calls(self.tool, self.args, user_message="make it"),
            says("Yes, I made it."),
        ]


CASES = [
    Case("claude-code", "anthropic", "Bash", {"command": "touch made.txt", "description": "It"}),
    Case(
        "codex",
        "codex",
        "exec_command",
        {
            "cmd": "touch made.txt",
            "sandbox_permissions": "require_escalated",
            "justification": "It is wanted.",
        },
    ),
    Case("opencode", "opencode", "bash", {"command": "touch made.txt", "description": "It"}),
]

MODULE = """
from agents import Agent, function_tool


@function_tool
def weather(city: str) -> str:
    return f"sunny in {city}"


agent = Agent(name="Forecaster", model="tiny", tools=[weather])
"""


@contextmanager
def start_command(*arguments: str) -> Generator[Background]:
    """A command that runs, in the home that this process lives in."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
    )
    try:
        yield Background(process)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        if process.stdout:
            process.stdout.close()


def command(*arguments: str) -> CommandOutput:
    done = subprocess.run(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
        timeout=PATIENCE,
        check=False,
    )
    return CommandOutput(done.returncode, done.stdout, done.stderr)


def asked_and_approved(case: Case, made: Path, *flags: str) -> str:
    """Run a turn that asks, and approve it from elsewhere; the thread of it."""
    with start_command("run", case.agent, "make it", *flags) as running:
        seen = running.until("factwire deny act_")
        assert "touch made.txt" in seen
        assert not made.exists()
        shown = re.findall(r"--hash [0-9a-f]{16}", seen)[0].split()
        approved = command("approve", action_in(seen), *shown, *flags)
        assert (approved.code, approved.err) == (0, "")
        assert running.end() == 0, running.seen
    assert "It is made." in running.seen
    assert made.exists()
    return thread_in(running.seen)


@pytest.mark.requirement("sources.live.command-line")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.agent)
def test_an_agent_is_run_approved_from_another_terminal_and_goes_on(
    case: Case, aimock: Aimock, agent_home: AgentHome
):
    model = aimock(*case.replies())
    getattr(agent_home, case.lives)(model)

    thread = asked_and_approved(case, agent_home.workspace / "made.txt")
    again = command("run", case.agent, "did you?", "--thread", thread)

    assert (again.code, again.err) == (0, "")
    assert "Yes, I made it." in again.out
    assert "It is made." in str(model.bodies()[-1])
    journal = Path(agent_home.environment["XDG_STATE_HOME"], "factwire", "journal.db")
    kept = command("journal", "cat", str(journal))
    assert (kept.code, kept.out.count('"eventClass":"turn.completed"')) == (0, 2)
    assert KEY not in kept.out


@pytest.mark.requirement("sources.live.command-line")
def test_an_edge_runs_an_agent_for_a_command_elsewhere(aimock: Aimock, agent_home: AgentHome):
    case = CASES[0]
    model = aimock(*case.replies())
    getattr(agent_home, case.lives)(model)

    with start_command("edge", "--port", "0") as serving:
        payloads = serving.until("Ctrl-C to stop")
        address = next(word for word in payloads.split() if word.startswith("http://"))
        asked_and_approved(case, agent_home.workspace / "made.txt", "--edge", address)


@pytest.mark.requirement("sources.live.command-line")
def test_an_object_of_an_sdk_is_run_by_its_name(aimock: Aimock, agent_home: AgentHome):
    model = aimock(says("It is sunny.", has_tool_result=True), calls("weather", {"city": "Paris"}))
    agent_home.openai(model)
    (agent_home.workspace / "forecasts.py").write_text(MODULE, "utf-8")

    done = command("run", "forecasts:agent", "what is the weather?")

    assert (done.code, done.err) == (0, "")
    assert "✓ weather" in done.out
    assert "It is sunny." in done.out

"""Nothing leaves the machine: real agents run where no way out is, and do not look for one."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from factwire.runtime.agents import Make
from factwire.runtime.configuration import AgentSettings
from factwire.sources.claude_code import live as claude_code
from factwire.sources.codex import live as codex
from factwire.sources.opencode import live as opencode
from tests.agents.conftest import Aimock, Drive
from tests.agents.contacts import Watched
from tests.agents.homes import AgentHome
from tests.agents.loopback import interfaces
from tests.agents.replies import says
from tools.agents import OPENCODE

OUTSIDE = ("192.0.2.1", 443)
"""An address that is nobody's."""


class Case(NamedTuple):
    """A program, where it is when nobody watches it, and the agent that runs it."""

    name: str
    program: Callable[[], str]
    lives: str
    make: Make
    settings: AgentSettings


CASES = [
    Case(
        "claude",
        claude_code.PROGRAM.require_path,
        "anthropic",
        claude_code.agent,
        AgentSettings(kind="claude-code"),
    ),
    Case("codex", codex.PROGRAM.require_path, "codex", codex.agent, AgentSettings(kind="codex")),
    Case("opencode", lambda: OPENCODE, "opencode", opencode.agent, AgentSettings(kind="opencode")),
]

TRIES = f"import socket; socket.create_connection({OUTSIDE!r}, timeout=5)"
ASKS = "import socket; socket.getaddrinfo('nobody.example', 443)"


def test_only_loopback_is_there_for_this_process_and_for_what_it_starts():
    assert interfaces() == {"lo"}
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection(OUTSIDE, timeout=5)
    tried = subprocess.run(
        [sys.executable, "-c", TRIES], check=False, capture_output=True, text=True, timeout=30
    )
    assert "unreachable" in tried.stderr


@pytest.mark.asyncio
@pytest.mark.requirement("sources.live.loopback")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_an_agent_with_these_settings_reaches_for_nothing_but_its_model(
    *,
    case: Case,
    aimock: Aimock,
    agent_home: AgentHome,
    driven: Drive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    model = aimock(says("Hello."))
    getattr(agent_home, case.lives)(model)
    watched = Watched(tmp_path, case.name, case.program())
    monkeypatch.setenv("PATH", str(watched.folder), prepend=os.pathsep)

    async with driven(case.make(case.settings)) as run:
        outcome = await run.turn("hi")

    assert (outcome.status, outcome.answers) == ("completed", ["Hello."])
    assert ("127.0.0.1", model.port) in watched.contacts()
    assert list(watched.external_contacts()) == []


@pytest.mark.parametrize("does", [TRIES, ASKS])
def test_a_program_that_tries_to_leave_or_asks_for_a_name_is_seen(does: str, tmp_path: Path):
    watched = Watched(tmp_path, "python", sys.executable)
    subprocess.run(
        [watched.folder / "python", "-c", does], check=False, capture_output=True, timeout=280
    )
    assert list(watched.external_contacts())

"""`shell`: the prompt is a command line, and the exit code is how the turn ends.

It adds nothing to the line and has no model. The policy is asked about all of it, the sandbox holds
it, and it waits for a person across a restart.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

from factwire.facts import CapabilityManifest, Fact, Streaming
from factwire.projection import ThreadReadModel
from factwire.runtime.provider import (
    CancelTurn,
    ReadThread,
    RespondAction,
    StartTurn,
    read_from_facts,
)
from factwire.runtime.toolbox import Toolbox, ToolOutcome
from factwire.runtime.toolbox.tool_calls import find_pending_call
from factwire.runtime.turn_end import failure_payload

_HINTS: Final = {
    "nonzero_exit": "Check the output of the command.",
    "permission_denied": "Ask again, or allow the command by a rule.",
    "program_not_found": "Check the name of the program, or install it.",
    "programs_unavailable": "Configure the runtime with a way to run programs.",
    "sandbox_unavailable": "Install bubblewrap, or set sandbox.mode to prefer.",
    "timeout": "Give the command more time.",
}
_OTHER_HINT: Final = "Check the command and its output."

MANIFEST: Final = CapabilityManifest(
    agent_id="shell",
    title="Shell: the prompt is a command line",
    version="1",
    streaming=Streaming(text="no", reasoning="no", tool_args="no", tool_output="yes"),
    approvals="inline",
    action_types=("tool_approval",),
    controls=("send", "queue", "stop", "approve", "reject", "retry"),
    topologies=("solo_run",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="yes",
    subagents="no",
    artifacts="no",
    evidence="no",
    sandbox="yes",
    cost="no",
    structured_output="no",
)


class ShellAgent:
    """Runs command lines. The option `cwd` is a folder of the workspace, `seconds` a limit."""

    def __init__(self, manifest: CapabilityManifest = MANIFEST) -> None:
        self.manifest = manifest
        self._running: dict[str, Toolbox] = {}

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = self._running[turn.turn_id] = Toolbox(turn.host)
        try:
            outcome = await _outcome(turn, toolbox)
        finally:
            del self._running[turn.turn_id]
        yield _end(turn, outcome)

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        toolbox = self._running.get(cancel.turn_id)
        if toolbox is not None:
            await toolbox.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:  # noqa: ARG002
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return read_from_facts(read)


async def _outcome(turn: StartTurn, toolbox: Toolbox) -> ToolOutcome:
    args: dict[str, Any] = {"command": turn.prompt}
    args |= {name: turn.options[name] for name in ("cwd", "seconds") if name in turn.options}
    pending = find_pending_call(turn)
    if pending is not None:
        return await toolbox.resume(pending.action, args)
    return await toolbox.call("run", args)


def _end(turn: StartTurn, outcome: ToolOutcome) -> Fact:
    host = turn.host
    if outcome.ok:
        return host.mint.fact(host.scope, "turn.completed")
    category = outcome.category or "unknown"
    message = f"{turn.prompt.strip()[:80]}: {_reason(outcome)}"
    failure = failure_payload(category, message, _HINTS.get(category, _OTHER_HINT))
    return host.mint.fact(host.scope, "turn.failed", failure)


def _reason(outcome: ToolOutcome) -> str:
    code = outcome.data.get("exitCode")
    return f"exit code {code}" if code is not None else outcome.text[:500]

"""An agent that asks and makes whatever its prompt names, and an Edge that has it.

`form` asks for structured input and says what was answered; `page` asks before it writes a page and
changes it; `teammate` lets a subagent ask; `secret` asks before it prints a token.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Fact
from factwire.projection import ThreadReadModel
from factwire.runtime.action_cards import shown_hash
from factwire.runtime.agents.demo_agent import MANIFEST
from factwire.runtime.provider import (
    CancelTurn,
    DecisionRequest,
    ReadThread,
    RespondAction,
    StartTurn,
)
from factwire.runtime.toolbox import Toolbox
from tests.client.edge_processes import AGENTS
from tests.runtime.trusted_files import write_trusted
from tests.workbench.edges import WorkbenchEdge

ROOT = Path(__file__).parents[2]
AGENT = '[agents.asking]\nkind = "tests.workbench.asking:Asking"\n[policy]\nmode = "acceptEdits"\n'

FORM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["name", "tries"],
    "properties": {
        "name": {"type": "string", "title": "Name of the branch"},
        "size": {"type": "string", "title": "Size", "enum": ["small", "large"]},
        "checks": {
            "type": "array",
            "title": "Checks",
            "items": {"type": "string", "enum": ["types", "tests", "docs"]},
        },
        "tries": {"type": "integer", "title": "Tries", "minimum": 1, "maximum": 5},
        "push": {"type": "boolean", "title": "Push it, too"},
    },
}
SECRET: Final = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PAGE: Final = "<!doctype html>\n<title>Page</title>\n<h1 id=word>One</h1>\n"


class Asking:
    """Made by the Edge from its configuration."""

    def __init__(self, settings: object = None) -> None:
        del settings
        self.manifest: CapabilityManifest = msgspec.structs.replace(MANIFEST, agent_id="asking")

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = Toolbox(turn.host)
        payload = await _BEATS[turn.prompt.split()[0]](turn, toolbox)
        host = turn.host
        message = host.mint.ids("msg")
        yield host.mint.fact(host.scope, "text.final", {"text": payload}, message_id=message)
        yield host.mint.fact(host.scope, "turn.completed")

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        del cancel
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        del respond
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        del read
        return None


async def _form(turn: StartTurn, toolbox: Toolbox) -> str:
    del toolbox
    shown, digest = shown_hash("How shall I go on?", FORM["required"])
    decision = await turn.host.ask(
        DecisionRequest(
            action_type="structured_input",
            prompt="How shall I go on?",
            shown=shown,
            args_hash=digest,
            response_schema=FORM,
        )
    )
    await turn.host.mark_applied(decision)
    return f"Answered: {msgspec.json.encode(decision.response).decode()}"


async def _page(turn: StartTurn, toolbox: Toolbox) -> str:
    path = f"site-{turn.turn_id}/index.html"
    await toolbox.call("write", {"path": path, "content": PAGE})
    edit = {"path": path, "old": "One", "new": "Two"}
    outcome = await toolbox.call("patch", {"edits": [edit]}, always_ask=True)
    return "Changed." if outcome.ok else "Left."


async def _teammate(turn: StartTurn, toolbox: Toolbox) -> str:
    scope = turn.host.scope.within(subagent_id="sub_reader", task_id="task_read")
    spawned = {"name": "reader", "role": "reader", "title": "Read"}
    turn.host.emit(turn.host.mint.fact(scope, "subagent.spawned", spawned))
    outcome = await toolbox.call("run", {"command": ["true"]}, scope=scope, always_ask=True)
    return "Ran." if outcome.ok else "Left."


async def _secret(turn: StartTurn, toolbox: Toolbox) -> str:
    del turn
    command = ["echo", f"Authorization: Bearer {SECRET}"]
    outcome = await toolbox.call("run", {"command": command}, always_ask=True)
    return "Ran." if outcome.ok else "Left."


_BEATS: Final[dict[str, Callable[[StartTurn, Toolbox], Awaitable[str]]]] = {
    "form": _form,
    "page": _page,
    "teammate": _teammate,
    "secret": _secret,
}


class AskingEdge(WorkbenchEdge):
    """An Edge with this agent beside the demo."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_trusted(self.work / "factwire.toml", AGENTS + AGENT, self.environment)

    @property
    def environment(self) -> dict[str, str]:
        values = super().environment
        known = values.get("PYTHONPATH")
        return {**values, "PYTHONPATH": f"{known}:{ROOT}" if known else str(ROOT)}

"""Agents for the command line to run, named in a project's file as `tests.cli.turn_agents:NAME`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from factwire.facts import Fact
from factwire.projection.actions import Action
from factwire.runtime import CancelTurn, Host, StartTurn, TurnFailed
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.toolbox import Toolbox
from tests.cli.cli_recordings import HOSTILE
from tests.runtime.agents import Agent, Script, approval, make_fact
from tests.runtime.agents import echo as echo_script
from tests.runtime.agents import endless as endless_script
from tests.runtime.steered import Steerable

ROOT = Path(__file__).resolve().parent.parent.parent

NAMES = (
    "echo",
    "asks",
    "twice",
    "endless",
    "stubborn",
    "fails",
    "hostile",
    "wait_for_key",
    "streams",
    "talks",
    "listens",
    "warns",
)

CONFIGURATION = "".join(
    f'[agents.{name}]\nkind = "tests.cli.turn_agents:{name}"\n' for name in NAMES
)
"""A project's file that names all of them."""


class Obedient(Agent):
    """Stops at once when it is asked to."""

    def __init__(self, script: Script, *, resume: str = "no") -> None:
        super().__init__(script, resume=resume)
        self._stops: dict[str, asyncio.Event] = {}

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        stop = self._stops[turn.turn_id] = asyncio.Event()
        stopping = asyncio.create_task(stop.wait())
        script = super().start_turn(turn)
        while True:
            step = asyncio.ensure_future(anext(script, None))
            await asyncio.wait({step, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                step.cancel()
                return
            if (fact := await step) is None:
                return
            yield fact

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        self._stops[cancel.turn_id].set()
        return await super().cancel_turn(cancel)


def echo(_: AgentSettings) -> Agent:
    return Agent(echo_script)


def endless(_: AgentSettings) -> Agent:
    """Says that it waits, opens a tool, and never comes back."""
    return Obedient(_endless)


async def _endless(turn: StartTurn) -> AsyncIterator[Fact]:
    yield _text(turn.host, "Waiting.")
    async for fact in endless_script(turn):
        yield fact


def asks(_: AgentSettings) -> Agent:
    """Asks, across restarts too, and says what it was told."""
    return Obedient(_asks, resume="yes")


async def _asks(turn: StartTurn) -> AsyncIterator[Fact]:
    was_asked = _asked_before(turn)
    if was_asked is None:
        yield make_fact(turn.host, "tool.started", {"toolName": "deploy"}, tool_call_id="call")
        decision = await turn.host.ask(approval("call"))
    else:
        decision = await turn.host.await_open(was_asked.action_id)
    if decision.allowed:
        await turn.host.mark_applied(decision)
        yield make_fact(turn.host, "tool.result", {"summary": "deployed"}, tool_call_id="call")
    else:
        failure = {"failureCategory": "permission_denied"}
        yield make_fact(turn.host, "tool.failed", failure, tool_call_id="call")
    yield _text(turn.host, f"It was {decision.decision}.")
    yield make_fact(turn.host, "turn.completed")


def _asked_before(turn: StartTurn) -> Action | None:
    if not turn.resumed or turn.history is None:
        return None
    return next(action for action in turn.history.actions.values() if not action.applied)


def twice(_: AgentSettings) -> Agent:
    """Runs the prompt as a command, twice."""
    return Agent(_twice)


async def _twice(turn: StartTurn) -> AsyncIterator[Fact]:
    toolbox = Toolbox(turn.host)
    for _ in range(2):
        outcome = await toolbox.call("run", {"command": turn.prompt})
        yield _text(turn.host, f"ok: {outcome.ok}")
    yield make_fact(turn.host, "turn.completed")


def stubborn(_: AgentSettings) -> Agent:
    """Hears that it shall stop, and does not."""
    return Agent(_stubborn)


async def _stubborn(turn: StartTurn) -> AsyncIterator[Fact]:
    yield _text(turn.host, "Waiting.")
    yield make_fact(turn.host, "tool.started", {"toolName": "wait"}, tool_call_id="call")
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def fails(_: AgentSettings) -> Agent:
    return Agent(_fails)


async def _fails(turn: StartTurn) -> AsyncIterator[Fact]:
    yield _text(turn.host, "Trying.")
    raise TurnFailed("out_of_luck", "it did not work", "try again")


def warns(_: AgentSettings) -> Agent:
    """Has trouble, some of it again and again, and answers all the same."""
    return Agent(_warns)


async def _warns(turn: StartTurn) -> AsyncIterator[Fact]:
    for _ in range(2):
        yield make_fact(turn.host, "runtime.warning", {"code": "odd", "message": f"gone {HOSTILE}"})
    for attempt in range(1, 100):
        payload = {"status": "retrying", "message": f"attempt {attempt}"}
        yield make_fact(turn.host, "run.status", payload)
    yield _text(turn.host, "Done.")
    yield make_fact(turn.host, "turn.completed")


def hostile(_: AgentSettings) -> Agent:
    """Says and asks what would steer a terminal."""
    return Agent(_hostile)


async def _hostile(turn: StartTurn) -> AsyncIterator[Fact]:
    yield _text(turn.host, f"{HOSTILE}\nmore")
    yield make_fact(turn.host, "tool.started", {"toolName": HOSTILE}, tool_call_id="call")
    request = approval("call", prompt=HOSTILE, shown=f"rm -rf /\n{HOSTILE}")
    await turn.host.ask(request)
    yield make_fact(turn.host, "turn.completed")


def wait_for_key(_: AgentSettings) -> Agent:
    """Waits until somebody writes to the pipe `go` before it asks."""
    return Agent(_wait_and_ask)


async def _wait_and_ask(turn: StartTurn) -> AsyncIterator[Fact]:
    yield _text(turn.host, "Ready.")
    await asyncio.to_thread((turn.host.workspace / "go").read_bytes)
    async for fact in _asks(turn):
        yield fact


def streams(_: AgentSettings) -> Agent:
    """Streams text in pieces, and ends it with another than it streamed."""
    return Agent(_streams)


async def _streams(turn: StartTurn) -> AsyncIterator[Fact]:
    for piece in ("one\n\n    tw", "o\nthr", "ee"):
        yield make_fact(turn.host, "model.delta", {"delta": piece}, message_id="m")
    final = turn.prompt if turn.prompt != "same" else "one\n\n    two\nthree"
    yield make_fact(turn.host, "model.completed", {"text": final}, message_id="m")
    yield make_fact(turn.host, "turn.completed")


def talks(_: AgentSettings) -> Agent:
    """Talks until it is told to stop."""
    return Agent(_talks)


async def _talks(turn: StartTurn) -> AsyncIterator[Fact]:
    while True:
        yield make_fact(turn.host, "model.delta", {"delta": "and so on\n"}, message_id="m")
        await asyncio.sleep(0)


def _text(host: Host, text: str) -> Fact:
    key = host.mint.ids("msg")
    return make_fact(host, "model.completed", {"text": text}, message_id=key)


def listens(_: AgentSettings) -> Agent:
    """Waits until it is told something, and says that."""
    return Steerable(_listens)


async def _listens(turn: StartTurn) -> AsyncIterator[Fact]:
    yield _text(turn.host, "Listening.\n")
    await turn.host.wait_for_steer()
    for steer in await turn.host.take_steers():
        answer = {"text": f"Heard: {steer.text}."}
        yield make_fact(turn.host, "model.completed", answer, message_id="heard")
    yield make_fact(turn.host, "turn.completed")

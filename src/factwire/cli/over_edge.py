"""Runs over an Edge: started there, watched here; or left at a Hub for a device that is away.

The facts of a run come over a stream that resumes by itself and are reduced to the same state that
a local turn shows, so that displays and questions are the same. Only asking and stopping go to the
Edge. A module of its own because it needs the client, which is an extra.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
import typer

from factwire.cli.action_prompts import open_keyboard
from factwire.cli.edge_controls import build_controls
from factwire.cli.local_runtime import FactListener
from factwire.cli.run_command import TurnRequest
from factwire.cli.targets import (
    DEVICE_OFFLINE,
    EdgeTarget,
    describe_expiry,
    device_offline,
    edge_client,
)
from factwire.cli.terminal import LATER, CliError, print_note, terminal_safe
from factwire.cli.turn_display import Transcript
from factwire.cli.turn_session import WatchRequest, watch_turn
from factwire.client import AsyncClient, AsyncDeviceClient, ClientError, EdgeProblem, PlacedFact
from factwire.facts import Fact
from factwire.facts.resources import Run
from factwire.projection import Projection, ProjectionState, read_thread_model
from factwire.runtime.control import CancelRequest, Controls

_LEFT = "still running on the Edge; follow it with factwire tail --thread {}"
_ENDS = ("completed", "failed", "canceled")


async def run_over_edge(
    target: EdgeTarget, request: TurnRequest, work_dir: str | None, *, as_json: bool
) -> int:
    """Start a run on an Edge and watch it to its end."""
    async with edge_client(target) as client:
        start = await _load_thread(client, request.thread)
        try:
            run = await client.start_run(
                request.agent, request.prompt, thread_id=request.thread, work_dir=work_dir
            )
        except EdgeProblem as problem:
            if problem.code != DEVICE_OFFLINE or not isinstance(client, AsyncDeviceClient):
                raise
            return await queue_run(client, target, request, work_dir, as_json=as_json)
        work = EdgeThread(client, run, *start)
        watched = WatchRequest(
            work=work,
            turn_id=run.turn_id,
            begin=_begin_nothing,
            left=f"{_LEFT.format(work.thread_id)}{target.flags}",
            flags=target.flags,
            approve=request.approve,
        )
        transcript = Transcript(work.state, run.turn_id)
        async with work.follow_facts():
            return await watch_turn(watched, transcript, as_json=as_json)


async def queue_run(
    client: AsyncDeviceClient,
    target: EdgeTarget,
    request: TurnRequest,
    work_dir: str | None,
    *,
    as_json: bool,
) -> int:
    """Leave a run at the Hub for a device that is away, if that is wanted."""
    device = client.device
    if not (request.queue or _confirm_queue(device.name, can_ask=not as_json)):
        hint = f"nothing was started; with --queue, it waits until {device.name} is back"
        raise device_offline(device, terminal_safe(hint))
    if request.approve != "ask":
        raise CliError(
            f"--approve {request.approve} answers from this terminal, and a run that waits for "
            "its device has none; leave it out, and decide what the run asks at the Hub"
        )
    task = await client.hub.create_task(
        request.prompt,
        device_id=device.device_id,
        agent=request.agent,
        thread_id=request.thread,
        work_dir=work_dir,
        expires_in=request.expires_in,
    )
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(task) + b"\n")
        return LATER
    typer.echo(f"{terminal_safe(describe_expiry(device.name, task))}: {task.task_id}")
    print_note(f"see how far it is: factwire tasks{target.flags}")
    print_note(f"take it back: factwire cancel {task.task_id}{target.flags}")
    return LATER


def _confirm_queue(name: str, *, can_ask: bool) -> bool:
    """Whether somebody at this terminal wants a run to wait for its device."""
    if not can_ask or open_keyboard() is None:
        return False
    shown = terminal_safe(name)
    question = f"{shown} is offline. Leave the run for it, to start when {shown} is back?"
    return typer.confirm(question, err=True)


async def _begin_nothing() -> None:
    """The run was started by the same request that made its thread."""


async def _load_thread(client: AsyncClient, thread_id: str | None) -> tuple[Projection, str | None]:
    """A thread as it stands, and the cursor from which its facts go on."""
    if thread_id is None:
        return Projection(), None
    found = await client.read_model(thread_id)
    return Projection.from_read_model(read_thread_model(found.read_model)), found.as_of


class EdgeThread:
    """A thread of an Edge; `followed` keeps its state up to date."""

    def __init__(
        self, client: AsyncClient, run: Run, projection: Projection, cursor: str | None
    ) -> None:
        self.thread_id = run.thread_id or ""
        self.controls: Controls = build_controls(client, self._find_run_of)
        self._client = client
        self._run = run
        self._projection = projection
        self._cursor = cursor
        self._watchers: list[FactListener] = []
        self._moved = asyncio.Event()
        self._removed: set[str] = set()
        self._ends: dict[str, str] = {}
        self._following: asyncio.Task[None] | None = None

    @property
    def state(self) -> ProjectionState:
        return self._projection.state

    @asynccontextmanager
    async def follow_facts(self) -> AsyncGenerator[None]:
        self._following = asyncio.create_task(self._follow())
        self._following.add_done_callback(lambda _: self._moved.set())
        try:
            yield
        finally:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def watch(self, listener: FactListener) -> Callable[[], None]:
        self._watchers.append(listener)
        return lambda: self._watchers.remove(listener)

    async def wait_for_end(self, turn_id: str | None) -> str:
        turn_id = turn_id or self._run.turn_id
        while True:
            outcome = await self._outcome(turn_id)
            again = await self._next_attempt(turn_id) if outcome == "failed" else None
            if again is None:
                return outcome
            turn_id = again

    async def cancel(self, turn_id: str | None) -> bool:
        del turn_id  # The run is the turn.
        # What is refused has ended by itself meanwhile; that nobody answers is told by the stream.
        with suppress(ClientError):
            request = CancelRequest(target=self._run.run_id, reason="interrupted")
            await self.controls.cancel(request)
        return False

    def _find_run_of(self, action_id: str) -> str:
        action = self.state.actions.get(action_id)
        return (action.run_id if action is not None else None) or self._run.run_id

    async def _follow(self) -> None:
        facts = self._client.facts(thread_id=self.thread_id, cursor=self._cursor)
        async with facts:
            async for placed in facts:
                self._take(placed)

    def _take(self, placed: PlacedFact) -> None:
        fact = placed.fact
        changes = self._projection.apply(fact)
        word = fact.event_class.removeprefix("turn.") if fact.event_class else ""
        if word in _ENDS and fact.turn_id is not None:
            self._ends[fact.turn_id] = placed.cursor
        if fact.event_class == "queue.changed" and fact.payload.get("change") == "removed":
            self._removed.add(str(fact.payload.get("queuedTurnId")))
        for listener in tuple(self._watchers):
            listener(fact, changes)
        self._moved.set()

    async def _outcome(self, turn_id: str) -> str:
        """How a turn ended, once it has; raises what ended the stream before."""
        while True:
            self._moved.clear()
            node = self.state.graph.nodes.get(f"turn:{turn_id}")
            if node is not None and node.status in _ENDS:
                return node.status
            if turn_id in self._removed:
                return "canceled"
            if self._following is not None and self._following.done():
                self._following.result()
            await self._moved.wait()

    async def _next_attempt(self, turn_id: str) -> str | None:
        """The turn by which the Edge tries again; it is written together with the end."""
        after = self._client.past_facts(
            thread_id=self.thread_id, cursor=self._ends.get(turn_id), classes=("queue.changed",)
        )
        async for placed in after:
            if _is_retry_of(placed.fact, turn_id):
                return str(placed.fact.payload.get("queuedTurnId"))
        return None


def _is_retry_of(fact: Fact, turn_id: str) -> bool:
    return fact.payload.get("retryOf") == turn_id

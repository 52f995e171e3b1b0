"""A run on an Edge, seen here as if it ran here.

Its facts come over a stream that resumes by itself and are reduced to the same state that a local
turn shows, so that displays and questions are the same. Only asking and stopping go to the Edge.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from factwire.cli.edge.target import edge_client
from factwire.cli.run.showing import Watched, watch
from factwire.cli.run.transcript import Transcript
from factwire.cli.run.turn import Asked
from factwire.cli.run.work import Noted
from factwire.client import AsyncClient, ClientError, EdgeProblem, PlacedFact, Run
from factwire.facts import Fact
from factwire.projection import Projection, ProjectionState, read_thread_model
from factwire.projection.actions import Action
from factwire.runtime import RuntimeRefused

_LEFT = "left running on the Edge; factwire tail --thread {} shows how it goes on"
_ENDS = ("completed", "failed", "canceled")


class EdgeRefused(RuntimeRefused):
    """What an Edge refuses, as a runtime here would."""

    def __init__(self, problem: EdgeProblem) -> None:
        self.code = problem.code
        super().__init__(problem.detail)


async def run_over_edge(url: str, asked: Asked, work_dir: str | None, *, as_json: bool) -> int:
    """Start a run on an Edge and watch it to its end."""
    async with edge_client(url) as client:
        start = await _known(client, asked.thread)
        run = await client.start_run(
            asked.agent, asked.prompt, thread_id=asked.thread, work_dir=work_dir
        )
        work = EdgeWork(client, run, *start)
        watched = Watched(
            work=work,
            turn_id=run.turn_id,
            begin=_begun,
            left=_LEFT.format(work.thread_id),
        )
        transcript = Transcript(work.state, run.turn_id)
        async with work.followed():
            return await watch(watched, transcript, as_json=as_json)


async def _begun() -> None:
    """The run was started by the same request that made its thread."""


async def _known(client: AsyncClient, thread_id: str | None) -> tuple[Projection, str | None]:
    """A thread as it stands, and the cursor from which its facts go on."""
    if thread_id is None:
        return Projection(), None
    found = await client.read_model(thread_id)
    return Projection.from_read_model(read_thread_model(found.read_model)), found.as_of


class EdgeWork:
    """A thread of an Edge; `followed` keeps its state up to date."""

    def __init__(
        self, client: AsyncClient, run: Run, projection: Projection, cursor: str | None
    ) -> None:
        self.thread_id = run.thread_id or ""
        self._client = client
        self._run = run
        self._projection = projection
        self._cursor = cursor
        self._watchers: list[Noted] = []
        self._moved = asyncio.Event()
        self._removed: set[str] = set()
        self._ends: dict[str, str] = {}
        self._following: asyncio.Task[None] | None = None

    @property
    def state(self) -> ProjectionState:
        return self._projection.state

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[None]:
        self._following = asyncio.create_task(self._follow())
        self._following.add_done_callback(lambda _: self._moved.set())
        try:
            yield
        finally:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def watch(self, noted: Noted) -> Callable[[], None]:
        self._watchers.append(noted)
        return lambda: self._watchers.remove(noted)

    async def over(self, turn_id: str | None) -> str:
        turn_id = turn_id or self._run.turn_id
        while True:
            outcome = await self._outcome(turn_id)
            again = await self._next_attempt(turn_id) if outcome == "failed" else None
            if again is None:
                return outcome
            turn_id = again

    async def decide(self, action: Action, decision: str, reason: str | None, by: str) -> None:
        del by  # The Edge says by itself who decided.
        try:
            await self._client.decide(
                action.run_id or self._run.run_id,
                action.action_id,
                "allow" if decision == "approve" else "deny",
                reason=reason,
                args_hash=action.args_hash,
            )
        except EdgeProblem as problem:
            raise EdgeRefused(problem) from problem

    async def cancel(self, turn_id: str | None) -> bool:
        del turn_id  # The run is the turn.
        # What is refused has ended by itself meanwhile; that nobody answers is told by the stream.
        with suppress(ClientError):
            await self._client.cancel_run(self._run.run_id, reason="interrupted")
        return False

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
        for noted in tuple(self._watchers):
            noted(fact, changes)
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
            if _retries(placed.fact, turn_id):
                return str(placed.fact.payload.get("queuedTurnId"))
        return None


def _retries(fact: Fact, turn_id: str) -> bool:
    return fact.payload.get("retryOf") == turn_id

"""A live thread: its log, its open requests, its queue, and the turn that runs.

One turn at a time. A turn that comes while another runs waits in the queue, which is itself kept as
facts; when a turn ends, the next one starts by itself.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from factwire.facts import read_input, write_input
from factwire.projection import Projection
from factwire.projection.queue import QueuedTurn
from factwire.runtime.approvals import Approvals
from factwire.runtime.errors import RuntimeRefused, UnknownTurn
from factwire.runtime.limits import QUEUED_TURNS
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.submission import Submission
from factwire.runtime.thread_log import ThreadLog
from factwire.runtime.turns import Turn

Begin = Callable[["LiveThread", Submission], Awaitable[Turn]]


class QueueFull(RuntimeRefused):
    code = "queue_full"


class LiveThread:
    """One thread that a runtime works on."""

    def __init__(self, log: ThreadLog, mint: Mint, begin: Begin, room: asyncio.Semaphore) -> None:
        self.log = log
        self.mint = mint
        self.approvals = Approvals(log, mint)
        self.turn: Turn | None = None
        self._begin = begin
        self._room = room
        self._ended = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    @property
    def thread_id(self) -> str:
        return self.log.thread_id

    @property
    def projection(self) -> Projection:
        return self.log.projection

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def knows(self, turn_id: str) -> bool:
        """Whether a turn of this id was ever submitted or queued here."""
        state = self.projection.state
        queued = any(turn.queued_turn_id == turn_id for turn in state.queue.turns)
        return queued or f"turn:{turn_id}" in state.graph.nodes

    def outcome(self, turn_id: str) -> str | None:
        """How a turn ended, if it has."""
        node = self.projection.state.graph.nodes.get(f"turn:{turn_id}")
        ended = node is not None and node.status in ("completed", "failed", "canceled")
        return node.status if node is not None and ended else None

    def scope(self, submission: Submission, run_id: str | None = None) -> Scope:
        return Scope(
            session_id=self.projection.state.session_id or submission.session_id,
            thread_id=self.thread_id,
            turn_id=submission.turn_id,
            run_id=run_id,
            agent_id=submission.agent,
            project_id=submission.project_id,
        )

    async def start(self, submission: Submission) -> None:
        """Write down a turn that was asked for and start it; the thread must be free."""
        self.take_up(await self._begin(self, submission))

    def take_up(self, turn: Turn) -> None:
        """Run a turn that is written down, as soon as there is room."""
        self.turn = turn
        self._task = asyncio.get_running_loop().create_task(self._work(turn))

    async def enqueue(self, submission: Submission) -> None:
        """Let a turn wait until those before it have ended."""
        turns = self.projection.state.queue.turns
        if len(turns) >= QUEUED_TURNS:
            raise QueueFull(f"{QUEUED_TURNS} turns wait on thread {self.thread_id} already")
        await self._write_queue([*map(_row, turns), queued_row(submission)], submission)

    async def promote(self, turn_id: str) -> None:
        """Let a waiting turn go first."""
        chosen = self._queued(turn_id)
        others = [turn for turn in self.projection.state.queue.turns if turn is not chosen]
        await self._write_queue([_row(chosen), *map(_row, others)])

    async def remove(self, turn_id: str) -> None:
        """Take a turn out of the queue; it never runs."""
        chosen = self._queued(turn_id)
        others = [turn for turn in self.projection.state.queue.turns if turn is not chosen]
        await self._write_queue([*map(_row, others)])

    async def wait_idle(self) -> None:
        """Wait until nothing runs and nothing is queued; raises what kept a turn from its end."""
        async with self._ended:
            await self._ended.wait_for(lambda: not self.is_busy or self._failure is not None)
        if self._failure is not None:
            raise self._failure

    async def wait_for(self, turn_id: str) -> str:
        """Wait until a turn has ended; how it did, or what kept it from its end."""
        async with self._ended:
            await self._ended.wait_for(
                lambda: self.outcome(turn_id) is not None or self._failure is not None
            )
        outcome = self.outcome(turn_id)
        if outcome is None and self._failure is not None:
            raise self._failure
        return outcome or "unknown"

    async def stop(self) -> None:
        """Leave the turn where it is: the process ends, and the next one finds it so.

        What was accepted on the way is written before anybody else reads the journal.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.log.settle()

    async def _work(self, turn: Turn) -> None:
        try:
            async with self._room_for(turn):
                await turn.run()
            await self.log.save_checkpoint()
        except Exception as error:
            # The journal took no more; whoever waits for the turn must hear of it.
            self._failure = error
            raise
        finally:
            self.turn = None
            async with self._ended:
                self._ended.notify_all()
        await self._start_next()

    @asynccontextmanager
    async def _room_for(self, turn: Turn) -> AsyncGenerator[None]:
        """Wait for room to run a turn; one that is told to stop meanwhile needs none."""
        room = asyncio.ensure_future(self._room.acquire())
        stopping = asyncio.ensure_future(turn.stopping.wait())
        try:
            await asyncio.wait({room, stopping}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            stopping.cancel()
            if room.done() and not room.cancelled():
                self._room.release()
            else:
                room.cancel()

    async def _start_next(self) -> None:
        turns = self.projection.state.queue.turns
        if turns:
            await self.start(submission_of(turns[0]))
            return
        self._task = None
        async with self._ended:
            self._ended.notify_all()

    async def go_on(self) -> None:
        """Start what waits, if nothing runs."""
        if not self.is_busy:
            await self._start_next()

    def _queued(self, turn_id: str) -> QueuedTurn:
        for turn in self.projection.state.queue.turns:
            if turn.queued_turn_id == turn_id:
                return turn
        raise UnknownTurn(f"turn {turn_id} does not wait on thread {self.thread_id}")

    async def _write_queue(
        self, rows: list[dict[str, Any]], submission: Submission | None = None
    ) -> None:
        scope = Scope(session_id=self.projection.state.session_id, thread_id=self.thread_id)
        if submission is not None:
            scope = scope.within(session_id=scope.session_id or submission.session_id)
        payload = {"queuedTurns": rows, "queuedTurnCount": len(rows)}
        await self.log.write(self.mint.fact(scope, "queue.changed", payload))


def queued_row(submission: Submission) -> dict[str, Any]:
    """A submission as one row of `queue.changed`."""
    row = {
        "queuedTurnId": submission.turn_id,
        "prompt": submission.prompt,
        "agentId": submission.agent,
        "input": write_input(submission.input),
        "options": submission.options,
        "status": "queued",
    }
    return {name: value for name, value in row.items() if value}


def submission_of(turn: QueuedTurn) -> Submission:
    """The submission that a queued turn was made of."""
    return Submission(
        turn_id=turn.queued_turn_id,
        agent=turn.agent_id or "",
        prompt=turn.prompt or "",
        input=read_input(turn.input or []),
        options=turn.options or {},
    )


def _row(turn: QueuedTurn) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(turn)
    return row

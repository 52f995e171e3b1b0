"""A live thread: its log, its open requests, its queue, and the turn that runs.

A thread runs one turn at a time; `TurnSlots` bounds how many run at once in the whole runtime.
A turn that waits for a person gives its slot back.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Final, Literal

import msgspec

from factwire.facts import Fact, InvalidFacts, Person, TextInput
from factwire.journal import Journal
from factwire.journal.blobs import BlobError, BlobStore
from factwire.projection import Projection
from factwire.projection.changes import Changes
from factwire.projection.thread_status import QueuedTurn
from factwire.runtime.action_requests import ActionRequests
from factwire.runtime.errors import GateRefused, QueueFull, RuntimeRefused, TurnAlreadyActive
from factwire.runtime.limits import QUEUED_TURNS
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.retry_policy import (
    RetryPolicy,
    add_seconds,
    find_effect_of_turn,
    seconds_until,
)
from factwire.runtime.runtime_identity import Identity
from factwire.runtime.submissions import (
    Steers,
    Submission,
    SubmissionStatus,
    TurnQueue,
    build_run_times,
    changed_by,
)
from factwire.runtime.thread_log import ThreadLog
from factwire.runtime.turn_end import failure_payload
from factwire.runtime.turn_execution import Turn, build_cancellation


class TurnSlots:
    """So many places, taken in the order in which they were asked for."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Take a place, as soon as there is one."""
        if self._free > 0:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()
            with suppress(ValueError):
                self._waiting.remove(place)
            raise

    def release(self) -> None:
        """Give a place back."""
        self._free += 1
        while self._free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                self._free -= 1
                place.set_result(None)

    @asynccontextmanager
    async def hold_slot(self, log: ThreadLog) -> AsyncGenerator[None]:
        """Hold the place of a turn, except while it waits for a person."""
        holds = True

        def look(fact: Fact | None, changes: Changes | None) -> None:
            nonlocal holds
            del changes
            if fact is not None and fact.action_id is None:
                return
            if holds is bool(log.gates.open_actions):
                holds = not holds
                if holds:
                    self._free -= 1
                else:
                    self.release()

        look(None, None)
        stop = log.watch(look)
        try:
            yield
        finally:
            stop()
            if holds:
                self.release()


STOPPED: Final = "stopped"
"""Why turns that wait are held: a person stopped the turn before them."""

BeginTurn = Callable[["LiveThread", Submission], Awaitable[Turn]]
WhenBusy = Literal["queue", "refuse"]


class RuntimeServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the threads of a runtime share. One without agents only writes down what is asked."""

    journal: Journal
    blobs: BlobStore
    mint: Mint
    identity: Identity
    slots: TurnSlots
    begin: BeginTurn
    has_agents: bool
    retry: Callable[[str], RetryPolicy]
    failed: Callable[["LiveThread"], None]


class LiveThread:
    """One thread that a runtime works on."""

    def __init__(self, log: ThreadLog, around: RuntimeServices) -> None:
        self.log = log
        log.owner = self
        self.mint = around.mint
        self.approvals = ActionRequests(log, around.mint)
        self.queue = TurnQueue(log, around.mint, around.journal, around.blobs, around.identity)
        self.steers = Steers(log, around.mint, self.queue)
        self.turn: Turn | None = None
        self.order = asyncio.Lock()
        self.is_closing = False
        self._around = around
        self._ended = asyncio.Condition()
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failure: Exception | None = None
        """What kept a turn from its end: mostly a journal that takes no more."""
        self._removed: set[str] = set()
        self._attempts: dict[str, str] = {}

    @property
    def thread_id(self) -> str:
        return self.log.thread_id

    @property
    def projection(self) -> Projection:
        return self.log.projection

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, or waits for its time or for room."""
        return self._task is not None and not self._task.done()

    @property
    def is_idle(self) -> bool:
        """Whether all that is to be known of the thread is in its journal."""
        waits = self.turn is not None or bool(self.log.gates.open_actions)
        return not (waits or self.is_busy or self.order.locked() or self.log.has_failed)

    @property
    def is_waiting(self) -> bool:
        """Whether a turn waits for a person."""
        return self.turn is not None and bool(self.log.gates.open_actions)

    @property
    def is_working(self) -> bool:
        """Whether an agent is at work, and does not wait for a person or for room."""
        return (
            self.turn is not None
            and self.projection.state.runtime.status == "running"
            and (self.projection.state.runtime.active_turn_id == self.turn.turn_id)
        )

    def knows(self, turn_id: str) -> bool:
        """Whether a turn of this id was ever submitted, queued or said to another turn here."""
        state = self.projection.state
        queued = any(turn.queued_turn_id == turn_id for turn in state.queue.turns)
        known = queued or f"turn:{turn_id}" in state.graph.nodes
        return known or self.steers.find(turn_id) is not None

    def outcome(self, turn_id: str) -> str | None:
        """How a turn ended, if it has."""
        node = self.projection.state.graph.nodes.get(f"turn:{turn_id}")
        ended = node is not None and node.status in ("completed", "failed", "canceled")
        return node.status if node is not None and ended else None

    def latest_attempt(self, turn_id: str) -> str:
        """The turn that tries now, or tried last, what a turn was to do."""
        while turn_id in self._attempts:
            turn_id = self._attempts[turn_id]
        return turn_id

    def scope(self, submission: Submission, run_id: str | None = None) -> FactScope:
        return FactScope(
            session_id=self.projection.state.session_id or submission.session_id,
            thread_id=self.thread_id,
            turn_id=submission.turn_id,
            run_id=run_id,
            agent_id=submission.agent,
            project_id=submission.project_id,
            trace_id=submission.trace_id,
        )

    async def accept(
        self, submission: Submission, when_busy: WhenBusy = "queue"
    ) -> SubmissionStatus:
        """Start a turn, or let it wait until those before it have ended."""
        async with self.order:
            if self.knows(submission.turn_id):
                return "known"
            waiting = self.queue.next_turn
            if not self.is_busy and waiting is None:
                await self._start(submission)
                return "started"
            if when_busy == "refuse":
                active = self.turn.turn_id if self.turn else waiting and waiting.queued_turn_id
                raise TurnAlreadyActive(self.thread_id, active or "")
            if len(self.queue.turns) >= QUEUED_TURNS:
                raise QueueFull(f"thread {self.thread_id} already has {QUEUED_TURNS} queued turns")
            await self.log.write(self.queue.build_added(submission))
        self.continue_queue()
        return "queued"

    def resume_turn(self, turn: Turn) -> None:
        """Run a turn that is written down, as soon as there is room."""
        self.turn = turn
        self._task = asyncio.get_running_loop().create_task(self._work(turn))

    def continue_queue(self) -> None:
        """Start what waits, if nothing runs."""
        can_start = self._around.has_agents and not self.is_busy and not self.is_closing
        if can_start and self.queue.next_turn is not None:
            self._task = asyncio.get_running_loop().create_task(
                self._note_failure_of(self._start_next)
            )

    async def request_stop(self, turn: Turn, reason: str, by: Person | None = None) -> None:
        """Stop the turn that runs. What waits is held by the same append, so that nothing of it
        starts by itself, whenever the turn ends and whoever is there then.
        """
        try:
            async with self.order:
                if not turn.is_over and not turn.stopping.is_set():
                    turn.mark_stopping(reason, by)
                    held = self.queue.build_held(STOPPED, by)
                    await self.log.write(turn.build_cancelling(reason, by), *held)
        finally:
            # The agent stops even where the journal takes nothing more.
            await turn.cancel(reason, by)

    async def await_action(self, action_id: str) -> None:
        """Wait for a request that others may read already while this thread is still noting it."""
        if action_id not in self.projection.state.actions:
            await self.log.settle()

    async def release(self, turn_id: str | None = None, by: Person | None = None) -> None:
        """Let a turn that is held, or all of them, start when their turn comes."""
        async with self.order:
            if turn_id is not None:
                self.queue.turn(turn_id)
            facts = self.queue.build_released(turn_id, by)
            if facts:
                await self.log.write(*facts)
            self._moved.set()
        self.continue_queue()

    async def promote(self, turn_id: str, by: Person | None = None) -> None:
        """Let a waiting turn go first; one that is held is released by that."""
        async with self.order:
            self.queue.turn(turn_id)
            submission = await self.queue.submission(turn_id)
            await self.log.write(self.queue.build_first(submission, **changed_by(by)))
            self._moved.set()
        self.continue_queue()

    async def remove(
        self, turn_id: str, reason: str | None = None, by: Person | None = None
    ) -> None:
        """Take a turn out of the queue; it never runs."""
        async with self.order:
            self.queue.turn(turn_id)
            payload = build_cancellation(reason, by)
            await self.log.write(self.queue.build_removed(turn_id, **payload))
            self._removed.add(turn_id)
            self._moved.set()
        await self._notify_waiters()

    async def finish(self, submission: Submission, *end: Fact) -> None:
        """Write the end of a turn together with what follows: another attempt, and what was said
        to it and never taken. One append, so that a kill leaves all of it or nothing. After a turn
        that was stopped nothing starts by itself: what waited when it was stopped is held already,
        unless the agent stopped by itself.
        """
        async with self.order:
            stopping = self.projection.state.runtime.cancelling_turn_id == submission.turn_id
            is_canceled = end[0].event_class == "turn.canceled"
            follow = [
                *(self.queue.build_held(STOPPED) if is_canceled and not stopping else ()),
                *self.steers.build_leftover_turns(submission, held=stopping or is_canceled),
                *self._retry(submission, end[0]),
            ]
            for fact in (*end, *follow):
                self.log.put(fact)
            await self.log.flush()

    def _retry(self, submission: Submission, terminal: Fact) -> list[Fact]:
        """The facts of another attempt, or of why there is none."""
        policy = self._around.retry(submission.agent)
        if not policy.wants(terminal, submission.attempt):
            return []
        effect = find_effect_of_turn(self.projection.state, submission.turn_id)
        category = terminal.payload.get("failureCategory")
        if effect is not None and not policy.repeat_effects:
            message = f"not tried again after {category}: {effect} may have changed something"
            payload = {"code": "retry_withheld", "message": message}
            return [self.mint.fact(self.scope(submission), "runtime.warning", payload)]
        seconds = policy.delay(submission.attempt)
        again = self._build_retry(submission, seconds)
        self._attempts[submission.turn_id] = again.turn_id
        retry = {
            "status": "retrying",
            "reason": f"retry after {category}",
            "failureCategory": category,
            "maxAttempts": policy.attempts,
            "retryDelayMs": round(seconds * 1_000),
        }
        return [self.queue.build_first(again, control="retry", **retry)]

    def _build_retry(self, submission: Submission, seconds: float) -> Submission:
        """The same once more, with what was said to it meanwhile."""
        steer_parts = tuple(
            part
            for steer in self.steers.list_delivered(submission.turn_id)
            for part in (TextInput(text=steer.text), *steer.input)
        )
        return msgspec.structs.replace(
            submission,
            turn_id=self.mint.ids("trn"),
            input=(*submission.input, *steer_parts),
            retry_of=submission.turn_id,
            attempt=submission.attempt + 1,
            not_before=add_seconds(self.mint.clock(), seconds),
            created_at=None,
        )

    async def wait_idle(self) -> None:
        """Wait until nothing runs and nothing is queued; raises what kept a turn from its end."""
        async with self._ended:
            await self._ended.wait_for(lambda: not self.is_busy or self.failure is not None)
        if self.failure is not None:
            raise self.failure

    async def wait_for(self, turn_id: str) -> str:
        """Wait until a turn has ended; how it did, or what kept it from its end. One that was
        taken out of the queue counts as canceled.
        """
        async with self._ended:
            await self._ended.wait_for(
                lambda: self._is_settled(turn_id) or self.failure is not None
            )
        outcome = self.outcome(turn_id)
        if outcome is None and self._is_settled(turn_id):
            return "canceled"
        if outcome is None and self.failure is not None:
            raise self.failure
        return outcome or "unknown"

    async def wait_settled(self, turn_id: str) -> str:
        """Wait until a turn has ended and is not tried again; how its last attempt ended."""
        while True:
            outcome = await self.wait_for(turn_id)
            if turn_id not in self._attempts:
                return outcome
            turn_id = self._attempts[turn_id]

    async def wait_idle_or_waiting(self) -> None:
        """Wait until no agent is at work here: it ended, or waits for a person."""
        moved = asyncio.Event()
        stop = self.log.watch(lambda _, __: moved.set())
        try:
            while self.is_working:
                moved.clear()
                await moved.wait()
        finally:
            stop()

    def _is_settled(self, turn_id: str) -> bool:
        if self.turn is not None and self.turn.turn_id == turn_id:
            # Its end may be written already, but the thread and its place are not free yet.
            return False
        if self.outcome(turn_id) is not None or turn_id in self._removed:
            return True
        steer = self.steers.find(turn_id)
        return steer is not None and steer.status == "delivered"

    def begin_closing(self) -> None:
        """Start nothing more; what waits stays in the queue."""
        self.is_closing = True
        self._moved.set()

    async def stop(self) -> None:
        """Leave the turn where it is: the process ends, and the next one finds it so.

        What was accepted on the way is written before anybody else reads the journal.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.log.settle()

    async def _start(self, submission: Submission) -> None:
        """Write down a turn that was asked for and start it; the thread must be free."""
        self.resume_turn(await self._around.begin(self, submission))
        self.queue.mark_started(submission.turn_id)

    async def _work(self, turn: Turn) -> None:
        await self._note_failure_of(partial(self._run_turn, turn))
        if self.failure is None:
            await self._note_failure_of(self._start_next)

    async def _note_failure_of(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something; whoever waits for a turn hears of what keeps it from its end.

        The work is begun here: a task that is cancelled before its first step never gets here, and
        a coroutine that was made for it would be left behind.
        """
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - kept for all who wait, and for who asks later
            self.failure = error
            self._around.failed(self)
        finally:
            await self._notify_waiters()

    async def _run_turn(self, turn: Turn) -> None:
        try:
            async with self._hold_slot_for(turn):
                await turn.run()
            await self.log.save_checkpoint()
        finally:
            self.turn = None

    @asynccontextmanager
    async def _hold_slot_for(self, turn: Turn) -> AsyncGenerator[None]:
        """Wait for room to run a turn; one that is told to stop meanwhile needs none."""
        slots = self._around.slots
        entering, has_place = asyncio.ensure_future(slots.acquire()), False
        stopping = asyncio.ensure_future(turn.stopping.wait())
        try:
            await asyncio.wait({entering, stopping}, return_when=asyncio.FIRST_COMPLETED)
            has_place = entering.done()
            async with slots.hold_slot(self.log) if has_place else nullcontext():
                yield
        finally:
            stopping.cancel()
            if not entering.cancel() and not has_place:
                slots.release()

    async def _start_next(self) -> None:
        """Start what waits first; until its time has come, wait for that, or for a change."""
        while True:
            async with self.order:
                first = self.queue.next_turn
                if first is None or self.is_closing:
                    self._task = None
                    return
                seconds = seconds_until(first.not_before, self.mint.clock())
                if seconds <= 0 and await self._start_queued(first):
                    return
                self._moved.clear()
            if seconds > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._moved.wait()

    async def _start_queued(self, first: QueuedTurn) -> bool:
        """Start a turn that waited; one that cannot start any more ends as failed."""
        try:
            submission = await self.queue.submission(first.queued_turn_id)
        except (BlobError, InvalidFacts) as error:
            await self.log.write(self.queue.build_removed(first.queued_turn_id, reason=error.code))
            return False
        try:
            await self._start(submission)
        except GateRefused as error:
            await self.log.write(self.queue.build_removed(submission.turn_id, reason=error.code))
        except RuntimeRefused as error:
            await self.log.write(*self._build_refusal(submission, error))
            await self._notify_waiters()
        else:
            return True
        return False

    def _build_refusal(self, submission: Submission, error: RuntimeRefused) -> tuple[Fact, Fact]:
        scope = self.scope(submission)
        hint = "Fix what the message describes, and submit the turn again."
        end = {
            **failure_payload(error.code, str(error), hint),
            **build_run_times(submission, None),
        }
        submitted_fact = self.mint.fact(scope, "turn.submitted", submission.payload())
        return submitted_fact, self.mint.fact(scope, "turn.failed", end)

    async def _notify_waiters(self) -> None:
        async with self._ended:
            self._ended.notify_all()

"""`Runtime`: agents on one machine, their turns kept in one journal.

It starts turns and decides nothing in them. A turn id is an idempotency key: asked for twice, a
turn runs once. What a process that died had under way is found in the journal, and closed or taken
up again before anything new starts.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from factwire.facts import InputPart, write_input
from factwire.journal import Filter, Journal
from factwire.journal.blobs import BlobStore
from factwire.projection import Projection, ProjectionState, UnreadableCheckpoint
from factwire.runtime.errors import (
    TurnAlreadyActive,
    UnknownAgent,
    UnknownTurn,
)
from factwire.runtime.limits import ACTIVE_TURNS, INTERRUPT_SECONDS, TURN_SECONDS
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.means import Means
from factwire.runtime.minting import Mint
from factwire.runtime.provider import Decision, Provider, StartTurn
from factwire.runtime.recovery import close, left_behind, recover
from factwire.runtime.submission import Submission, submitted
from factwire.runtime.thread_log import ThreadLog
from factwire.runtime.turns import Turn, TurnHost

SubmittedAs = Literal["started", "queued", "known"]


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a submission; `known` is one that came before and runs only once."""

    turn_id: str
    thread_id: str
    status: SubmittedAs


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a runtime runs turns."""

    turn_seconds: float = TURN_SECONDS
    interrupt_seconds: float = INTERRUPT_SECONDS
    active_turns: int = ACTIVE_TURNS


class Runtime:
    """Runs turns; an async context manager that recovers on the way in."""

    def __init__(
        self,
        journal: Journal,
        blobs: BlobStore,
        agents: Mapping[str, Provider],
        *,
        workspace: Path,
        means: Means | None = None,
        mint: Mint | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.journal = journal
        self.blobs = blobs
        self.agents = dict(agents)
        self.workspace = workspace
        self.means = means or Means(blobs=blobs)
        self.mint = mint or Mint("factwire")
        self.settings = settings or Settings()
        self._threads: dict[str, LiveThread] = {}
        self._opening = asyncio.Lock()
        self._room = asyncio.Semaphore(self.settings.active_turns)

    async def __aenter__(self) -> Self:
        if self.means.processes is not None:
            await self.means.processes.reap()
        await recover(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for thread in list(self._threads.values()):
            await thread.stop()

    @property
    def live(self) -> tuple[LiveThread, ...]:
        """The threads that have been asked for."""
        return tuple(self._threads.values())

    def agent(self, name: str) -> Provider:
        """A registered agent."""
        if name not in self.agents:
            raise UnknownAgent(name, list(self.agents))
        return self.agents[name]

    async def thread(self, thread_id: str) -> LiveThread:
        """A thread, read from the journal the first time it is asked for."""
        async with self._opening:
            if thread_id not in self._threads:
                projection = await self._projection(thread_id)
                log = ThreadLog(self.journal, self.blobs, projection, thread_id)
                self._threads[thread_id] = LiveThread(log, self.mint, self._begin, self._room)
            return self._threads[thread_id]

    async def state(self, thread_id: str) -> ProjectionState:
        """What the facts of a thread come to now."""
        return (await self.thread(thread_id)).projection.state

    async def submit(
        self,
        thread_id: str,
        agent: str,
        prompt: str,
        *,
        turn_id: str | None = None,
        input: tuple[InputPart, ...] = (),  # noqa: A002
        options: dict[str, Any] | None = None,
        session_id: str | None = None,
        project_id: str | None = None,
        when_busy: Literal["queue", "refuse"] = "queue",
    ) -> Submitted:
        """Start a turn, or queue it behind the one that runs."""
        self.agent(agent)
        submission = Submission(
            turn_id=turn_id or self.mint.ids("trn"),
            agent=agent,
            prompt=prompt,
            input=input,
            options=options or {},
            session_id=session_id or self.mint.ids("ses"),
            project_id=project_id,
        )
        return await self._take_in(await self.thread(thread_id), submission, when_busy)

    async def retry(self, thread_id: str, turn_id: str) -> Submitted:
        """Run a turn that ended once more, as a new one that names it; the old one is kept."""
        thread = await self.thread(thread_id)
        asked = await submitted(self.journal, thread_id, turn_id)
        if asked is None:
            raise UnknownTurn(f"turn {turn_id} is not on thread {thread_id}")
        again = msgspec.structs.replace(
            asked, turn_id=self.mint.ids("trn"), retry_of=turn_id, attempt=asked.attempt + 1
        )
        return await self._take_in(thread, again, "queue")

    async def cancel(self, thread_id: str, turn_id: str, reason: str = "requested") -> None:
        """Stop a turn that runs, close one that nobody runs any more, or take one out of the
        queue.
        """
        thread = await self.thread(thread_id)
        if thread.turn is not None and thread.turn.turn_id == turn_id:
            await thread.turn.cancel(reason)
            await thread.wait_for(turn_id)
        elif left_behind(thread) == turn_id:
            await close(self, thread, turn_id, "turn.canceled", {"reason": reason})
        else:
            await thread.remove(turn_id)

    async def decide(
        self,
        thread_id: str,
        action_id: str,
        decision: str,
        *,
        by: str,
        reason: str | None = None,
        args_hash: str | None = None,
        response: object = None,
    ) -> Decision:
        """Answer an open request."""
        thread = await self.thread(thread_id)
        return await thread.approvals.decide(
            action_id, decision, by=by, reason=reason, args_hash=args_hash, response=response
        )

    async def _take_in(
        self, thread: LiveThread, submission: Submission, when_busy: str
    ) -> Submitted:
        status: SubmittedAs = "started"
        if thread.knows(submission.turn_id):
            status = "known"
        elif not thread.is_busy:
            await thread.start(submission)
        elif when_busy == "refuse":
            active = thread.turn.turn_id if thread.turn else ""
            raise TurnAlreadyActive(thread.thread_id, active)
        else:
            await thread.enqueue(submission)
            status = "queued"
        return Submitted(turn_id=submission.turn_id, thread_id=thread.thread_id, status=status)

    async def _begin(self, thread: LiveThread, submission: Submission) -> Turn:
        """Write down that a turn was asked for, and make it ready to run."""
        provider = self.agent(submission.agent)
        scope = thread.scope(submission, run_id=self.mint.ids("run"))
        asked: dict[str, Any] = {"prompt": submission.prompt, "agentId": submission.agent}
        if submission.input:
            asked["input"] = write_input(submission.input)
        if submission.options:
            asked["options"] = submission.options
        if submission.retry_of is not None:
            asked |= {"retryOf": submission.retry_of, "attempt": submission.attempt}
        await thread.log.write(self.mint.fact(scope, "turn.submitted", asked))
        return self.turn_of(thread, provider, submission, run_id=scope.run_id)

    def turn_of(
        self,
        thread: LiveThread,
        provider: Provider,
        submission: Submission,
        *,
        run_id: str | None,
        resumed: bool = False,
    ) -> Turn:
        """A turn that is written down, ready to run."""
        scope = thread.scope(submission, run_id)
        host = TurnHost(
            thread.log,
            thread.approvals,
            self.mint,
            scope,
            workspace=self.workspace,
            means=self.means,
        )
        start = StartTurn(
            turn_id=submission.turn_id,
            thread_id=thread.thread_id,
            prompt=submission.prompt,
            host=host,
            input=submission.input,
            options=submission.options,
            history=thread.projection.state,
            resumed=resumed,
        )
        return Turn(
            thread.log,
            thread.approvals,
            provider,
            start,
            seconds=self.settings.turn_seconds,
            interrupt_seconds=self.settings.interrupt_seconds,
        )

    async def _projection(self, thread_id: str) -> Projection:
        """The projection of a thread: its last checkpoint and the facts since."""
        saved = await self.journal.snapshot(thread_id)
        projection, after = Projection(thread_id), None
        if saved is not None:
            try:
                projection, after = Projection.restore(saved.data), saved.cursor
            except UnreadableCheckpoint:
                # One of another version; the facts are what counts.
                after = None
        async for stretch in self.journal.read(after, filter=Filter(thread=thread_id)):
            for _, fact in stretch.facts():
                projection.replay(fact)
        return projection

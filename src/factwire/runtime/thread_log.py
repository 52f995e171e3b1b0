"""`ThreadLog`: the one way by which a runtime writes facts of a thread.

Every fact passes the gates and the intake, gets the next sequence, is appended in order, and only
then reaches the live state and those who watch it. Facts that come while an append is under way
make up the next one, so that a fast agent is not slowed to one commit a fact. When an append
fails, nothing more is written: what was accepted but is not durable is refused to its writer.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

import msgspec

from factwire.facts import Blob, Fact, Intake, InvalidFacts, Ref, RefKind
from factwire.journal import AppendResult, ConflictingFact, Cursor
from factwire.projection import Changes, Projection
from factwire.runtime.errors import GateRefused
from factwire.runtime.gates import Gates
from factwire.runtime.limits import CHECKPOINT_FACTS, UNWRITTEN_FACTS
from factwire.runtime.mint import FactScope, Mint

Watcher = Callable[[Fact, Changes], None]
"""Called for every fact once it is durable, with what it changed."""


class FactStore(Protocol):
    """Where the facts of a thread go: a journal, or whatever stands for one."""

    async def append(self, batch: Sequence[Fact], /) -> AppendResult: ...

    async def save_snapshot(self, thread_id: str, cursor: Cursor, data: bytes, /) -> object: ...


class ContentStore(Protocol):
    """Where content goes that is too big for a fact."""

    async def put(self, content: bytes, /, *, kind: RefKind) -> Ref: ...


_SPEAKER_IDS: Final = frozenset({"step_id", "task_id", "parent_task_id", "subagent_id"})
"""Ids of whoever asks in a turn; it is the whole run that waits."""


class ThreadLog:
    """Writes one thread's facts; there is one for each thread that is live."""

    def __init__(
        self,
        journal: FactStore,
        blobs: ContentStore,
        projection: Projection,
        thread_id: str,
        mint: Mint | None = None,
    ) -> None:
        self.thread_id = thread_id
        self.projection = projection
        self.owner: object = None
        """Kept alive for as long as anybody may write here, so that there is no second log."""
        self.gates = Gates.of(projection.state)
        self._sequence = (projection.state.hydration.cursor or 0) + 1
        self._journal = journal
        self._blobs = blobs
        self._mint = mint or Mint("factwire")
        self._intake = Intake("collect", "facts")
        self._waiting: list[Fact] = []
        self._content: list[Blob] = []
        self._watchers: list[Watcher] = []
        self._writer: asyncio.Task[None] | None = None
        self._durable = self._sequence - 1
        self._progress = asyncio.Event()
        self._failure: BaseException | None = None
        self._cursor: Cursor | None = None
        self._saved = projection.state.hydration.event_count
        self._is_waiting = bool(self.gates.open_actions)
        self._asked_by: Fact | None = None
        self.run_times: dict[str, str] = {}
        """When the turn that runs was asked for and started; every status of it repeats them."""

    @property
    def has_failed(self) -> bool:
        """Whether the journal took no more; whoever wants to go on reads the thread again."""
        return self._failure is not None

    @property
    def run_status(self) -> Literal["running", "waiting"]:
        """Whether the run was last reported to work, or to wait for a person."""
        return "waiting" if self._is_waiting else "running"

    @property
    def last_sequence(self) -> int:
        """The sequence of the last fact that was accepted; 0 before the first."""
        return self._sequence - 1

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Have every durable fact told; returns how to stop it. One that raises is told nothing
        more, and that is told.
        """
        self._watchers.append(watcher)

        def stop() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return stop

    def put(self, *batch: Fact) -> None:
        """Accept facts, all or none, to be written soon; `flush` waits until they are."""
        if self._failure is not None:
            raise self._failure
        if len(batch) == 1:
            self.gates.feed(batch[0])
        else:
            self.gates = self.gates.after_batch(batch)
        for fact in batch:
            self._accept(fact)
            if fact.action_id is not None:
                self._asked_by = fact
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_waiting())
            self._writer.add_done_callback(_ignore_failure)

    async def write(self, *batch: Fact) -> None:
        """Accept facts and return when they are durable."""
        self.put(*batch)
        await self.flush()

    async def flush(self) -> None:
        """Wait until everything accepted so far is durable; raises what kept it from being so. What
        an agent says meanwhile is not waited for: there may be no end of that.
        """
        last = self.last_sequence
        await self.settle()
        if self._failure is not None and self._durable < last:
            raise self._failure

    async def settle(self) -> None:
        """Wait until everything accepted so far is written, whatever came of it; its writers hear
        of that.
        """
        last = self.last_sequence
        while self._writer is not None and self._durable < last:
            await self._progress.wait()

    def replace_projection(self, projection: Projection) -> bool:
        """Go on from a projection that was read anew; not while something is unwritten, or where
        it is not of the same moment.
        """
        is_current = (projection.state.hydration.cursor or 0) == self.last_sequence
        if self._writer is not None or not is_current:
            return False
        self.projection = projection
        self._saved = projection.state.hydration.event_count
        return True

    async def save_checkpoint(self) -> None:
        """Keep the projection in the journal, once enough was written that reading it all again
        would cost more; a growing state is so saved ever more rarely.
        """
        count = self.projection.state.hydration.event_count
        if self._cursor is None or count - self._saved < max(CHECKPOINT_FACTS, count // 8):
            return
        await self._journal.save_snapshot(
            self.thread_id, self._cursor, self.projection.checkpoint()
        )
        self._saved = count

    async def make_room(self) -> None:
        """Wait while too much is unwritten, so that a fast agent cannot fill the memory."""
        if len(self._waiting) > UNWRITTEN_FACTS:
            await self.flush()

    def _accept(self, fact: Fact) -> None:
        try:
            taken = self._intake.feed(fact)
        except InvalidFacts as error:
            first = error.issues[0]
            raise GateRefused(first.code, f"{first.path}: {first.message}", fact.id) from error
        for accepted in (taken.fact, *taken.notes):
            self._waiting.append(
                msgspec.structs.replace(accepted, sequence=self._sequence, thread_id=self.thread_id)
            )
            self._sequence += 1
        self._content += taken.blobs

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                self._note_waiting()
                batch, self._waiting = self._waiting, []
                content, self._content = self._content, []
                for blob in content:
                    await self._blobs.put(blob.content, kind=blob.ref.kind)
                await self._append(batch)
                self._durable = batch[-1].sequence or self._durable
                self._note_progress()
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._writer = None
            self._note_progress()

    def _note_progress(self) -> None:
        """Have those look again who wait for what was written."""
        self._progress.set()
        self._progress = asyncio.Event()

    def _note_waiting(self) -> None:
        """Have the run wait for a person, or go on, as the requests come to that are written now;
        one that a rule answered at once is not waited for.
        """
        asking, self._asked_by = self._asked_by, None
        if asking is None or self._is_waiting == (is_waiting := bool(self.gates.open_actions)):
            return
        self._is_waiting = is_waiting
        stopping = self.projection.state.runtime.cancelling_turn_id
        if self.gates.active_turn != asking.turn_id or asking.turn_id == stopping:
            return
        before, now = ("running", "waiting") if is_waiting else ("waiting", "running")
        names = FactScope.__struct_fields__
        ids = {name: getattr(asking, name) for name in names if name not in _SPEAKER_IDS}
        payload = {"from": before, "status": now, **self.run_times}
        self._accept(self._mint.fact(FactScope(**ids), "run.status", payload))

    async def _append(self, batch: list[Fact]) -> None:
        """Write a batch. A fact whose id is taken is left out and told: an agent that says a thing
        twice must not keep its turn from being written.
        """
        while batch:
            try:
                self._cursor = (await self._journal.append(batch)).cursor
            except ConflictingFact as error:
                batch = self._without(batch, error.fact_id)
                continue
            self._notify_watchers(batch)
            return

    def _without(self, batch: list[Fact], fact_id: str) -> list[Fact]:
        """The batch with a remark in the place of a fact; none of it is durable yet."""
        at = max(place for place, fact in enumerate(batch) if fact.id == fact_id)
        taken = batch[at]
        message = f"{fact_id!r} ({taken.event_class}) has the id of another fact and was left out"
        payload = {"code": "id_taken", "message": message}
        scope = FactScope(session_id=taken.session_id, turn_id=taken.turn_id, run_id=taken.run_id)
        remark = self._mint.fact(scope, "runtime.warning", payload)
        placed = msgspec.structs.replace(remark, sequence=taken.sequence, thread_id=self.thread_id)
        return [*batch[:at], placed, *batch[at + 1 :]]

    def _notify_watchers(self, batch: Sequence[Fact]) -> None:
        apply, watchers = self.projection.apply, self._watchers
        for fact in batch:
            changes = apply(fact)
            for watcher in tuple(watchers):
                try:
                    watcher(fact, changes)
                except Exception as error:  # noqa: BLE001 - what is durable stays so, whoever fails
                    self._dismiss(watcher, fact, error)

    def _dismiss(self, watcher: Watcher, fact: Fact, error: Exception) -> None:
        """Tell a watcher nothing more; the facts it missed are its own loss, and no journal's."""
        if watcher not in self._watchers:
            return
        self._watchers.remove(watcher)
        message = (
            f"a watcher failed at {fact.id} and receives no more facts: {type(error).__name__}"
        )
        scope = FactScope(session_id=fact.session_id, turn_id=fact.turn_id, run_id=fact.run_id)
        payload = {"code": "watcher_failed", "message": message}
        self._accept(self._mint.fact(scope, "runtime.warning", payload))


def _ignore_failure(writer: asyncio.Task[None]) -> None:
    """What kept a writer from writing is told by the next `put` or `flush`, not by the loop."""
    if not writer.cancelled():
        writer.exception()

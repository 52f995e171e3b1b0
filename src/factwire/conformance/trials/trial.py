"""A trial: one prompt to an agent, run to its end by a real runtime, on a journal in memory.

Whatever the agent asks is answered at once, as the trial says, and every state in which it waited
is kept. Nothing of the trial is left behind: its workspace and data are a temporary folder.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from factwire.conformance.limits import INTERRUPT_SECONDS, UNDER_WAY_SECONDS
from factwire.conformance.screens.refs import own_refs
from factwire.conformance.trials.witness import Account, Witness
from factwire.facts import Fact
from factwire.facts.vocabulary import ACTION_CLOSERS
from factwire.journal import Filter, Journal, open_journal
from factwire.journal.blobs import BlobStore, MemoryBlobs
from factwire.projection import Changes, ProjectionState, ThreadReadModel, decode_state
from factwire.runtime import (
    ActionDecided,
    ActionExpired,
    Means,
    ReadThread,
    Runtime,
    Settings,
)
from factwire.runtime.processes import Processes

AGENT: Final = "agent"
THREAD: Final = "thread"
_REQUESTS: Final = frozenset({"action.required", *ACTION_CLOSERS})


class Waited(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was open: the status of the thread then, and the call that waited."""

    action_id: str
    status: str
    tool_call_id: str | None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a prompt: what the agent gave, what the journal has, and what that comes to."""

    name: str
    turn_id: str
    outcome: str
    account: Account
    facts: tuple[Fact, ...]
    state: ProjectionState
    waits: tuple[Waited, ...]
    models: tuple[ThreadReadModel | None, ...]
    missing: tuple[str, ...]
    submitted: tuple[str, ...] = ()


class Stage:
    """A runtime around one agent, for as long as a trial takes."""

    def __init__(self, runtime: Runtime, witness: Witness, blobs: BlobStore) -> None:
        self.runtime = runtime
        self.witness = witness
        self.blobs = blobs
        self.waits: list[Waited] = []
        self._news = asyncio.Event()

    async def watch(self) -> None:
        """Listen to the thread: what the runtime writes of requests, the agent asked for."""
        (await self.runtime.thread(THREAD)).log.watch(self._heard)

    def _heard(self, fact: Fact, _: Changes) -> None:
        account = self.witness.account(fact.turn_id or "")
        if fact.event_class in _REQUESTS and account.ending == "running":
            # Its place in the order is the runtime's, and not the agent's.
            told = msgspec.structs.replace(fact, sequence=None)
            account.given += [] if _is_given(fact, account) else [told]
        self._news.set()

    async def submit(self, turn_id: str, prompt: str) -> str:
        done = await self.runtime.submit(THREAD, AGENT, prompt, turn_id=turn_id)
        return done.status

    async def ended(self, turn_id: str, decision: str | None = "approve") -> str:
        """How the turn ends, with every request answered; without a decision, `waiting` as soon
        as there is one.
        """
        thread = await self.runtime.thread(THREAD)
        over = asyncio.ensure_future(thread.wait_for(turn_id))
        over.add_done_callback(lambda _: self._news.set())
        try:
            while not over.done():
                self._news.clear()
                action = await self._open_action()
                if action is not None and decision is None:
                    return "waiting"
                if action is not None:
                    await self._answer(action, decision or "")
                elif not over.done():
                    await self._news.wait()
            return over.result()
        finally:
            over.cancel()

    async def _answer(self, action_id: str, decision: str) -> None:
        # Somebody else may have closed the request in this very moment.
        with suppress(ActionDecided, ActionExpired):
            await self.runtime.decide(THREAD, action_id, decision, by="conformance")

    async def under_way(self, turn_id: str) -> None:
        """Wait until the agent has given something, or has had a moment to begin."""
        thread, account = await self.runtime.thread(THREAD), self.witness.account(turn_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(UNDER_WAY_SECONDS):
                while not account.given and thread.outcome(turn_id) is None:
                    self._news.clear()
                    await self._news.wait()

    async def _open_action(self) -> str | None:
        state = await self.runtime.state(THREAD)
        for action in state.actions.values():
            if action.status == "pending":
                known = [wait.action_id for wait in self.waits]
                if action.action_id not in known:
                    self.waits.append(
                        Waited(
                            action_id=action.action_id,
                            status=state.runtime.status,
                            tool_call_id=action.tool_call_id,
                        )
                    )
                return action.action_id
        return None

    async def trial(self, name: str, turn_id: str, outcome: str, **more: tuple[str, ...]) -> Trial:
        """Everything that is known of the turn by now."""
        facts = await _facts_of(self.runtime.journal)
        provider = self.witness.provider
        models = [await provider.read_thread(ReadThread(thread_id=THREAD)) for _ in range(2)]
        thread = await self.runtime.thread(THREAD)
        return Trial(
            name=name,
            turn_id=turn_id,
            outcome=outcome,
            account=self.witness.account(turn_id),
            facts=facts,
            state=decode_state(thread.projection.snapshot()),
            waits=tuple(self.waits),
            models=tuple(models),
            missing=await self._missing(facts),
            **more,
        )

    async def _missing(self, facts: tuple[Fact, ...]) -> tuple[str, ...]:
        """Refs of Factwire's form whose content nobody kept."""
        return tuple([ref for ref in own_refs(facts) if not await self.blobs.exists(ref)])


def _is_given(fact: Fact, account: Account) -> bool:
    return any(isinstance(given, Fact) and given.id == fact.id for given in account.given)


async def _facts_of(journal: Journal) -> tuple[Fact, ...]:
    found: list[Fact] = []
    async for stretch in journal.read(filter=Filter(thread=THREAD)):
        found += [fact for _, fact in stretch.facts()]
    return tuple(found)


class Theatre(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives a runtime: journal, blobs and folders, in which the next one goes on."""

    journal: Journal
    blobs: BlobStore
    folder: Path
    seconds: float

    @asynccontextmanager
    async def stage(self, witness: Witness) -> AsyncGenerator[Stage]:
        """A runtime on this journal; one that is opened later recovers what the first one left."""
        workspace = self.folder / "workspace"
        processes = Processes(self.folder / "data", workspaces=[workspace], blobs=self.blobs)
        # The trial itself runs out of time first, and says so.
        settings = Settings(turn_seconds=2 * self.seconds, interrupt_seconds=INTERRUPT_SECONDS)
        runtime = Runtime(
            self.journal,
            self.blobs,
            {AGENT: witness},
            workspace=workspace,
            means=Means(blobs=self.blobs, processes=processes),
            settings=settings,
        )
        async with runtime:
            stage = Stage(runtime, witness, self.blobs)
            await stage.watch()
            yield stage


@asynccontextmanager
async def theatre(seconds: float) -> AsyncGenerator[Theatre]:
    """A place for one trial, taken down afterwards."""
    with TemporaryDirectory(prefix="factwire-conformance-", ignore_cleanup_errors=True) as name:
        async with open_journal("memory:") as journal:
            folder = _prepared(name)
            yield Theatre(journal=journal, blobs=MemoryBlobs(), folder=folder, seconds=seconds)


def _prepared(name: str) -> Path:
    folder = Path(name).resolve()
    (folder / "workspace").mkdir()
    return folder

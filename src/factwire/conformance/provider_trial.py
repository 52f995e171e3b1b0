"""A trial: one prompt to an agent, run to its end by a real runtime, on a journal in memory.

Everything that the agent gives is recorded before the runtime looks at it. Whatever it asks is
answered at once, as the trial says, and every state in which it waited is kept. Nothing of the
trial is left behind: its workspace and data are a temporary folder.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import msgspec

from factwire.conformance.limits import (
    AFTER_END_FACTS,
    AFTER_END_SECONDS,
    INTERRUPT_SECONDS,
    UNDER_WAY_SECONDS,
)
from factwire.conformance.screen_checks import own_refs
from factwire.facts import CapabilityManifest, Fact
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.journal import Filter, Journal, open_journal
from factwire.journal.blobs import BlobStore, MemoryBlobs
from factwire.projection import Changes, ProjectionState, ThreadReadModel, decode_state
from factwire.runtime import (
    ActionDecided,
    ActionExpired,
    CancelTurn,
    Decision,
    DecisionRequest,
    DeliveredSteer,
    FactScope,
    Host,
    Mint,
    Provider,
    ReadThread,
    RespondAction,
    Runtime,
    StartTurn,
    TurnResources,
    TurnSettings,
)
from factwire.runtime.processes import Processes
from factwire.runtime.standing_rules import RuleSubject
from factwire.runtime.turn_execution import open_agent_stream

Ending = Literal["running", "returned", "raised", "stopped"]
"""How a stream ended: by itself, by an exception, or because somebody stopped it."""


class ProviderRecord(msgspec.Struct, kw_only=True):
    """What an agent did in one turn; `given` are facts, or whatever it took for facts."""

    turn_id: str
    items: list[object] = msgspec.field(default_factory=list[object])
    starts: int = 0
    ending: Ending = "running"
    error: str | None = None


class RecordingProvider:
    """The agent, watched."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.accounts: dict[str, ProviderRecord] = {}

    @property
    def manifest(self) -> CapabilityManifest:
        return self.provider.manifest

    def account(self, turn_id: str) -> ProviderRecord:
        return self.accounts.setdefault(turn_id, ProviderRecord(turn_id=turn_id))

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        account = self.account(turn.turn_id)
        account.starts += 1
        watched = msgspec.structs.replace(turn, host=RecordingHost(turn.host, account))
        try:
            stream = open_agent_stream(self.provider, watched)
            async with aclosing(stream) as facts, aclosing(_heard_out(facts, account)) as heard:
                async for fact in heard:
                    yield fact
            account.ending = "returned"
        except (asyncio.CancelledError, GeneratorExit):
            account.ending = "stopped" if account.ending == "running" else account.ending
            raise
        except (Exception, SystemExit) as error:
            account.ending, account.error = "raised", f"{type(error).__name__}: {error}"
            raise

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        response = await self.provider.cancel_turn(cancel)
        self.account(cancel.turn_id).items += [] if response is None else [response]
        return response

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        response = await self.provider.respond_action(respond)
        self.account(respond.turn_id).items += [] if response is None else [response]
        return response

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return await self.provider.read_thread(read)


async def _heard_out(facts: AsyncIterator[Fact], account: ProviderRecord) -> AsyncGenerator[Fact]:
    """Facts as they come; at a turn's end, what the agent says after it is taken down first, since
    the runtime will not ask for it.
    """
    async for fact in facts:
        account.items.append(fact)
        if _ends(fact, account.turn_id):
            account.ending = "returned"
            await _record_rest(facts, account)
        yield fact


def _ends(fact: object, turn_id: str) -> bool:
    if not isinstance(fact, Fact):
        return False
    return fact.event_class in TURN_TERMINALS and fact.turn_id == turn_id


async def _record_rest(facts: AsyncIterator[Fact], account: ProviderRecord) -> None:
    try:
        async with asyncio.timeout(AFTER_END_SECONDS):
            for _ in range(AFTER_END_FACTS):
                account.items.append(await anext(facts))
    except (StopAsyncIteration, TimeoutError):
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the turn has ended in any case
        account.error = f"after the end: {type(error).__name__}: {error}"


class RecordingHost:
    """The host of a turn; what the agent writes through it is taken down as well."""

    def __init__(self, host: Host, account: ProviderRecord) -> None:
        self._host = host
        self._account = account

    @property
    def mint(self) -> Mint:
        return self._host.mint

    @property
    def scope(self) -> FactScope:
        return self._host.scope

    @property
    def workspace(self) -> Path:
        return self._host.workspace

    @property
    def resources(self) -> TurnResources:
        return self._host.resources

    def emit(self, *batch: Fact) -> None:
        self._account.items += batch
        self._host.emit(*batch)

    async def ask(self, request: DecisionRequest) -> Decision:
        return await self._host.ask(request)

    def standing_rule(self, subject: RuleSubject) -> str | None:
        return self._host.standing_rule(subject)

    async def await_open(self, action_id: str, shown: str | None = None) -> Decision:
        return await self._host.await_open(action_id, shown)

    async def mark_applied(self, decision: Decision) -> None:
        await self._host.mark_applied(decision)

    async def take_steers(self) -> tuple[DeliveredSteer, ...]:
        return await self._host.take_steers()

    async def wait_for_steer(self) -> None:
        await self._host.wait_for_steer()


AGENT: Final = "agent"
THREAD: Final = "thread"
_REQUESTS: Final = frozenset({"action.required", *ACTION_CLOSERS})


class WaitingAction(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was open: the status of the thread then, and the call that waited."""

    action_id: str
    status: str
    tool_call_id: str | None


class ProviderTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a prompt: what the agent gave, what the journal has, and what that comes to."""

    name: str
    turn_id: str
    outcome: str
    account: ProviderRecord
    facts: tuple[Fact, ...]
    state: ProjectionState
    waits: tuple[WaitingAction, ...]
    models: tuple[ThreadReadModel | None, ...]
    missing: tuple[str, ...]
    submitted: tuple[str, ...] = ()


class TrialRuntime:
    """A runtime around one agent, for as long as a trial takes."""

    def __init__(self, runtime: Runtime, witness: RecordingProvider, blobs: BlobStore) -> None:
        self.runtime = runtime
        self.witness = witness
        self.blobs = blobs
        self.waits: list[WaitingAction] = []
        self._news = asyncio.Event()

    async def watch(self) -> None:
        """Listen to the thread: what the runtime writes of requests, the agent asked for."""
        (await self.runtime.thread(THREAD)).log.watch(self._record_fact)

    def _record_fact(self, fact: Fact, _: Changes) -> None:
        account = self.witness.account(fact.turn_id or "")
        if fact.event_class in _REQUESTS and account.ending == "running":
            # Its place in the order is the runtime's, and not the agent's.
            recorded = msgspec.structs.replace(fact, sequence=None)
            account.items += [] if _is_recorded(fact, account) else [recorded]
        self._news.set()

    async def submit(self, turn_id: str, prompt: str, options: dict[str, Any] | None = None) -> str:
        done = await self.runtime.submit(
            THREAD, AGENT, prompt, turn_id=turn_id, options=options or {}
        )
        return done.status

    async def wait_for_end(self, turn_id: str, decision: str | None = "approve") -> str:
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
            card = await self.runtime.read_card(THREAD, action_id)
            await self.runtime.decide(
                THREAD, action_id, decision, by="conformance", args_hash=card.args_hash or ""
            )

    async def wait_for_first_fact(self, turn_id: str) -> None:
        """Wait until the agent has given something, or has had a moment to begin."""
        thread, account = await self.runtime.thread(THREAD), self.witness.account(turn_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(UNDER_WAY_SECONDS):
                while not account.items and thread.outcome(turn_id) is None:
                    self._news.clear()
                    await self._news.wait()

    async def _open_action(self) -> str | None:
        state = await self.runtime.state(THREAD)
        for action in state.actions.values():
            if action.status == "pending":
                known = [wait.action_id for wait in self.waits]
                if action.action_id not in known:
                    self.waits.append(
                        WaitingAction(
                            action_id=action.action_id,
                            status=state.runtime.status,
                            tool_call_id=action.tool_call_id,
                        )
                    )
                return action.action_id
        return None

    async def build_trial(
        self, name: str, turn_id: str, outcome: str, **more: tuple[str, ...]
    ) -> ProviderTrial:
        """Everything that is known of the turn by now."""
        facts = await _facts_of(self.runtime.journal)
        provider = self.witness.provider
        models = [await provider.read_thread(ReadThread(thread_id=THREAD)) for _ in range(2)]
        thread = await self.runtime.thread(THREAD)
        return ProviderTrial(
            name=name,
            turn_id=turn_id,
            outcome=outcome,
            account=self.witness.account(turn_id),
            facts=facts,
            state=decode_state(thread.projection.snapshot()),
            waits=tuple(self.waits),
            models=tuple(models),
            missing=await self._missing_refs(facts),
            **more,
        )

    async def _missing_refs(self, facts: tuple[Fact, ...]) -> tuple[str, ...]:
        """Refs of Factwire's form whose content nobody kept."""
        return tuple([ref for ref in own_refs(facts) if not await self.blobs.exists(ref)])


def _is_recorded(fact: Fact, account: ProviderRecord) -> bool:
    return any(isinstance(item, Fact) and item.id == fact.id for item in account.items)


async def _facts_of(journal: Journal) -> tuple[Fact, ...]:
    found: list[Fact] = []
    async for batch in journal.read(filter=Filter(thread=THREAD)):
        found += [fact for _, fact in batch.facts()]
    return tuple(found)


class TrialStorage(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives a runtime: journal, blobs and folders, in which the next one goes on."""

    journal: Journal
    blobs: BlobStore
    folder: Path
    seconds: float

    @asynccontextmanager
    async def open_runtime(self, witness: RecordingProvider) -> AsyncGenerator[TrialRuntime]:
        """A runtime on this journal; one that is opened later recovers what the first one left."""
        workspace = self.folder / "workspace"
        processes = Processes(self.folder / "data", workspaces=[workspace], blobs=self.blobs)
        # The trial itself runs out of time first, and says so.
        settings = TurnSettings(turn_seconds=2 * self.seconds, interrupt_seconds=INTERRUPT_SECONDS)
        runtime = Runtime(
            self.journal,
            self.blobs,
            {AGENT: witness},
            workspace=workspace,
            resources=TurnResources(blobs=self.blobs, processes=processes),
            settings=settings,
        )
        async with runtime:
            stage = TrialRuntime(runtime, witness, self.blobs)
            await stage.watch()
            yield stage


@asynccontextmanager
async def open_storage(seconds: float) -> AsyncGenerator[TrialStorage]:
    """A place for one trial, taken down afterwards."""
    with TemporaryDirectory(prefix="factwire-conformance-", ignore_cleanup_errors=True) as name:
        async with open_journal("memory:") as journal:
            folder = _make_trial_folder(name)
            yield TrialStorage(journal=journal, blobs=MemoryBlobs(), folder=folder, seconds=seconds)


def _make_trial_folder(name: str) -> Path:
    folder = Path(name).resolve()
    (folder / "workspace").mkdir()
    return folder

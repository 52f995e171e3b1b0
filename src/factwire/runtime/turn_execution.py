"""One turn: from its start to exactly one terminal, whatever the agent does."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Protocol, cast

import msgspec

from factwire.facts import Fact, Person, entity_of
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.open_work import TURN_OPENERS, LastIds, OpenWork
from factwire.facts.outcomes import call_outcome
from factwire.journal import Journal, JournalError
from factwire.projection.thread_status import CANCELLING
from factwire.runtime.action_requests import ActionRequests, DecisionDelivery
from factwire.runtime.errors import GateRefused, TurnFailed
from factwire.runtime.limits import ENDED_TURNS, INTERRUPT_SECONDS
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.provider import (
    CancelTurn,
    Decision,
    DecisionRequest,
    DeliveredSteer,
    Provider,
    StartTurn,
)
from factwire.runtime.standing_rules import RuleSubject, StandingRules
from factwire.runtime.structured_output import (
    OutputMisfit,
    OutputSchema,
    require_output_schema,
)
from factwire.runtime.submissions import Steers, Submission, build_run_times, read_started_at
from factwire.runtime.thread_log import ThreadLog
from factwire.runtime.turn_end import (
    TurnBaseline,
    build_result,
    carry_result,
    close_open_work,
    failure_payload,
    read_route,
)
from factwire.runtime.turn_resources import TurnResources

_EXPECTED: Final = "start_turn must be an async generator (use yield)"


def describe_non_stream(kind: str) -> str:
    """What to say of an agent whose `start_turn` gives something else."""
    return f"{_EXPECTED}, got {kind}"


def open_agent_stream(provider: Provider, turn: StartTurn) -> AsyncGenerator[Fact]:
    """The stream of a turn; whatever else `start_turn` gives fails the turn."""
    stream: Any = provider.start_turn(turn)
    if hasattr(stream, "__aiter__") and hasattr(stream, "aclose"):
        return cast("AsyncGenerator[Fact]", stream)
    if inspect.iscoroutine(stream):
        # Nobody will await it, which Python would complain about at some later time.
        stream.close()
        what = "a coroutine"
    else:
        what = type(stream).__name__
    hint = "Write start_turn as `async def` with a `yield` for each fact."
    raise TurnFailed("provider_error", describe_non_stream(what), hint)


_CALL_ENDS: Final = ("tool.result", "tool.failed")


class TurnHost:
    """The runtime as the agent of one turn sees it."""

    def __init__(
        self,
        log: ThreadLog,
        approvals: ActionRequests,
        mint: Mint,
        scope: FactScope,
        *,
        workspace: Path,
        resources: TurnResources,
        steers: Steers,
        standing: StandingRules,
    ) -> None:
        self.mint = mint
        self.scope = scope
        self.workspace = workspace
        self.resources = resources
        self._log = log
        self._approvals = approvals
        self._steers = steers
        self._standing = standing

    def emit(self, *batch: Fact) -> None:
        """Write facts of the agent, all or none. A call that is cancelled takes its open requests
        along, and one that the agent then closes itself is closed already. A change of the thread
        is reported with all that is on record of the thread.
        """
        facts: list[Fact] = []
        for fact in map(self._complete, batch):
            if fact.event_class in _CALL_ENDS and call_outcome(fact) == "canceled":
                facts += self._approvals.build_withdrawals(fact, facts)
            if not self._log.gates.is_withdrawn_again(fact):
                facts.append(fact)
        if facts:
            self._log.put(*facts)

    def _complete(self, fact: Fact) -> Fact:
        if fact.event_class != "thread.updated" or entity_of(fact) is not None:
            return fact
        row = self.resources.describe_thread(self._log.thread_id)
        return msgspec.structs.replace(fact, payload={**row, **fact.payload})

    async def ask(self, request: DecisionRequest) -> Decision:
        return await self._approvals.ask(self.scope, request, rule=self.standing_rule(request))

    def standing_rule(self, subject: RuleSubject) -> str | None:
        """The rule by which a person has allowed this from then on, if one has."""
        thread_id = self._log.thread_id
        rule = self._standing.find_allowing_rule(
            self.resources.policy, subject, thread_id, self.workspace
        )
        return None if rule is None else str(rule)

    async def await_open(self, action_id: str, shown: str | None = None) -> Decision:
        """Wait for the answer to a request that an earlier run of the turn made."""
        return await self._approvals.await_open(action_id, shown)

    async def mark_applied(self, decision: Decision) -> None:
        await self._approvals.mark_applied(decision)

    async def take_steers(self) -> tuple[DeliveredSteer, ...]:
        return await self._steers.take(self.scope)

    async def wait_for_steer(self) -> None:
        await self._steers.wait(self.scope.turn_id or "")


class Finish(Protocol):
    """Writes the end of a turn, and what follows from it, in one piece."""

    async def __call__(self, submission: Submission, *end: Fact) -> None: ...


class Turn:
    """A turn under way."""

    def __init__(
        self,
        log: ThreadLog,
        approvals: ActionRequests,
        provider: Provider,
        start: StartTurn,
        *,
        submission: Submission,
        finish: Finish,
        claim: dict[str, str],
        seconds: float,
        interrupt_seconds: float = INTERRUPT_SECONDS,
    ) -> None:
        self.turn_id = start.turn_id
        self.submission = submission
        self.is_over = False
        self._log = log
        self._approvals = approvals
        self._provider = provider
        self._start = start
        self._write_end = finish
        self._claim = claim
        host = start.host
        self._handover = DecisionDelivery(log, approvals, provider, host)
        self._seconds = seconds
        self._interrupt_seconds = interrupt_seconds
        self.stopping = asyncio.Event()
        self._cancellation: dict[str, Any] | None = None
        self._began: TurnBaseline | None = None
        self._started_at: str | None = None
        self._is_working = False
        self._interruption: asyncio.Task[None] | None = None
        self._has_left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def scope(self) -> FactScope:
        return self._start.host.scope

    @property
    def can_be_steered(self) -> bool:
        return self._provider.manifest.steer == "yes"

    async def find_open(self, journal: Journal) -> None:
        """Look up what an earlier run of the turn left open; to be done before it is resumed."""
        self._started_at = await read_started_at(journal, self._log.thread_id, self.turn_id)
        self._log.run_times = build_run_times(self.submission, self._started_at)
        await self._handover.find(journal)

    async def run(self) -> None:
        """Run the turn to its terminal."""
        self._task = asyncio.current_task()
        if self._cancellation is not None:
            await self._finish(self._fact("turn.canceled", self._cancellation))
            return
        if not self._start.resumed:
            await self._open()
        else:
            self._handover.resume()
        await self._finish(await self._run_agent())

    async def _open(self) -> None:
        self._began = TurnBaseline.measure(
            self._start.host.mint.clock(), self._log.projection.state
        )
        running = self._fact("run.status", {"status": "running"}, status="running")
        times = build_run_times(self.submission, None)
        agent = {"agentId": self._start.host.scope.agent_id, **times, **self._claim}
        started = self._fact("turn.started", agent)
        self._started_at = started.created_at
        self._log.run_times = build_run_times(self.submission, self._started_at)
        await self._log.write(started, running)

    def mark_stopping(self, reason: str, by: Person | None = None) -> None:
        """From now on the turn ends as canceled; the first reason counts."""
        self._cancellation = self._cancellation or build_cancellation(reason, by)
        self.stopping.set()

    def build_cancelling(self, reason: str, by: Person | None = None) -> Fact:
        """The fact that the turn was asked to stop."""
        before = "queued" if self._started_at is None else self._log.run_status
        times = build_run_times(self.submission, self._started_at)
        payload = {"status": CANCELLING, "from": before, **build_cancellation(reason, by), **times}
        return self._fact("run.status", payload, status="running")

    async def cancel(self, reason: str, by: Person | None = None) -> None:
        """Ask the agent to stop; after a while, stop it.

        Only the agent: the task goes on to write the end of the turn, and to start the next one.
        """
        self.mark_stopping(reason, by)
        if self._interruption is not None or not self._is_working:
            # The agent has been asked before, or was not asked for anything and will not be.
            return
        # A task of its own, because whoever asked may leave before the agent has stopped.
        self._interruption = asyncio.create_task(self._interrupt(reason))
        await asyncio.shield(self._interruption)

    async def _interrupt(self, reason: str) -> None:
        request = CancelTurn(turn_id=self.turn_id, thread_id=self._log.thread_id, reason=reason)
        try:
            async with asyncio.timeout(self._interrupt_seconds):
                fact = await self._provider.cancel_turn(request)
                if fact is not None:
                    self._start.host.emit(fact)
                await self._has_left.wait()
        except TimeoutError:
            pass
        except (Exception, SystemExit) as error:  # noqa: BLE001 - then it is stopped
            message = f"the agent could not be asked to stop: {type(error).__name__}: {error}"
            payload = {"code": "cancel_request_failed", "message": message}
            self._log.put(self._fact("runtime.warning", payload))
        if self._task is not None and not self._has_left.is_set():
            self._task.cancel()

    async def _run_agent(self) -> Fact:
        """Let the agent work; the fact that ends the turn."""
        if self._cancellation is not None:
            return self._fact("turn.canceled", self._cancellation)
        self._is_working = True
        try:
            async with asyncio.timeout(self._seconds):
                terminal = await self._run_stream()
        except asyncio.CancelledError:
            if self._cancellation is None:
                raise
            _uncancel()
            terminal = None
        except (JournalError, KeyboardInterrupt):
            raise
        except BaseException as error:  # whatever an agent raises ends its turn, and only that
            if isinstance(error, GeneratorExit) and not self._goes_on():
                raise
            terminal = self._build_failure(*self._describe_error(error))
        finally:
            self._has_left.set()
        if self._cancellation is not None:
            return self._fact("turn.canceled", self._cancellation)
        return terminal or self._build_failure("stream_interrupted")

    def _goes_on(self) -> bool:
        """Whether the turn still runs: one that is thrown away with its loop must not go on."""
        try:
            return asyncio.current_task() is self._task
        except RuntimeError:
            return False

    def _describe_error(self, error: BaseException) -> tuple[str, str, str | None]:
        """Category, message and hint of what an agent raised."""
        if isinstance(error, TurnFailed):
            return error.code, str(error), error.hint
        if isinstance(error, TimeoutError):
            return "timeout", f"the turn took more than {self._seconds:g} s", None
        if isinstance(error, GateRefused):
            return "invalid_fact", f"{error.code}: {error}", None
        return "provider_error", f"{type(error).__name__}: {error}", None

    async def _run_stream(self) -> Fact | None:
        schema = require_output_schema(self._start.options, self._provider.manifest)
        async with aclosing(open_agent_stream(self._provider, self._start)) as facts:
            terminal = await self._pump_stream(facts)
        if schema is None or terminal is None or terminal.event_class != "turn.completed":
            return terminal
        return self._validate_output(schema, terminal)

    def _validate_output(self, schema: OutputSchema, terminal: Fact) -> Fact:
        """The end of the turn with its output as the schema wants it; else it failed."""
        result = carry_result(terminal.payload)
        try:
            output = schema.read(result.pop("structuredOutput", None))
        except OutputMisfit as misfit:
            failure = failure_payload("invalid_output", str(misfit))
            return self._fact("turn.failed", {**result, **failure})
        fitting = {**terminal.payload, "structuredOutput": output}
        return msgspec.structs.replace(terminal, payload=fitting)

    async def _pump_stream(self, facts: AsyncIterator[Fact]) -> Fact | None:
        log, opened = self._log, OpenWork(LastIds(ENDED_TURNS))
        opened.begin_turn(self.turn_id, beside=False)
        async for fact in facts:
            is_own = opened.follow_turn(fact) and fact.turn_id == self.turn_id
            if fact.event_class in TURN_TERMINALS and is_own:
                return _name_as_own(fact)
            if fact.event_class not in TURN_OPENERS or not is_own:
                self._write(fact)
            await log.make_room()
        return None

    def _write(self, fact: Fact) -> None:
        if not (fact.event_class or "").startswith("action."):
            self._start.host.emit(fact)
            return
        heard = self._handover.to_recorded_fact(fact)
        if heard is not None:
            self._log.put(heard)
            self._handover.follow_request(heard)

    async def _finish(self, terminal: Fact) -> None:
        host = self._start.host
        await self._handover.stop(self._interrupt_seconds)
        await close_open_work(
            self._log,
            self._approvals,
            host.mint,
            host.scope,
            category="cancelled" if terminal.event_class == "turn.canceled" else "interrupted",
            message="the turn ended first",
        )
        times = build_run_times(self.submission, self._started_at)
        if self._log.projection.state.runtime.cancelling_turn_id == self.turn_id:
            times["from"] = CANCELLING
        terminal = self._ensure_accepted(terminal)
        terminal = msgspec.structs.replace(terminal, payload={**terminal.payload, **times})
        now, state = host.mint.clock(), self._log.projection.state
        result = build_result(terminal, self._began, now, state)
        snapshot = self._fact("snapshot.updated", result)
        self.is_over = True
        route = read_route(terminal.payload) if terminal.event_class == "turn.completed" else None
        if route is not None:
            self._log.put(self._fact("routing.decided", route))
        if self._started_at is not None:
            self._log.put(self._fact("run.status", {"status": "idle"}))
        await self._write_end(self.submission, terminal, snapshot)

    def _ensure_accepted(self, terminal: Fact) -> Fact:
        """The end as the agent told it, unless a gate refuses that: a turn ends in any case."""
        try:
            self._log.gates.copy().feed(terminal)
        except GateRefused as error:
            return self._build_failure("invalid_fact", f"{error.code}: {error}")
        return terminal

    def _build_failure(
        self, category: str, message: str | None = None, hint: str | None = None
    ) -> Fact:
        return self._build_end("turn.failed", **failure_payload(category, message, hint))

    def _build_end(self, event_class: str, **payload: str) -> Fact:
        return self._fact(event_class, payload)

    def _fact(self, event_class: str, payload: dict[str, Any], **ids: str) -> Fact:
        host = self._start.host
        return host.mint.fact(host.scope, event_class, payload, **ids)


def _name_as_own(end: Fact) -> Fact:
    """The end of the turn that the runtime began, so that no reader takes it for a child's."""
    is_unclear = entity_of(end) is not None
    return msgspec.structs.replace(end, runtime_entity="agent_turn") if is_unclear else end


def build_cancellation(reason: str | None, by: Person | None) -> dict[str, Any]:
    """What the end of a turn that was cancelled tells: why, and who cancelled it."""
    fields = {"reason": reason, "by": None if by is None else msgspec.to_builtins(by)}
    return {name: value for name, value in fields.items() if value is not None}


def _uncancel() -> None:
    """The cancellation was ours and is dealt with; what follows must not see it."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()

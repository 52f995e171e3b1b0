"""`RuntimeControls`: a runtime in this process, asked in the words of the control channel.
`ControlServer` lets other processes of the same user ask it too. Nothing is decided here.
"""

import asyncio
import getpass
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import CoroutineType, TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from factwire.facts import Person
from factwire.facts.resources import RuleMatch, StandingRule
from factwire.journal import Filter, Journal
from factwire.projection.actions import Action
from factwire.projection.thread_status import QueuedTurn
from factwire.runtime.control import control_client
from factwire.runtime.control.control_client import remove_dead_sockets
from factwire.runtime.control.control_messages import (
    CONNECTIONS,
    LINE_BYTES,
    PROMPT_CHARACTERS,
    READ_SECONDS,
    REFUSALS,
    WORK_SECONDS,
    CancelReply,
    CancelRequest,
    CardReply,
    CardRequest,
    ControlRefusal,
    ControlReply,
    DecideReply,
    DecideRequest,
    Malformed,
    QueueReply,
    QueueRequest,
    RefusalCode,
    RulesReply,
    RulesRequest,
    StatusReply,
    SteerReply,
    SteerRequest,
    ThreadStatus,
    WaitingTurn,
    answer_request,
    build_refusal,
    decode_request,
    encode,
)
from factwire.runtime.errors import RuntimeRefused, UnknownAction
from factwire.runtime.limits import RECENT_ACTIONS
from factwire.runtime.live_thread import LiveThread
from factwire.runtime.recovery import find_abandoned_turn
from factwire.runtime.runtime import Runtime, build_proposal


async def find_thread_of_action(journal: Journal, action_id: str) -> str | None:
    """The thread that an action was asked on: those that wait are looked at first."""
    after = None
    while True:
        page = await journal.threads(status="waiting", after=after)
        for thread in page.threads:
            if action_id in thread.open_actions:
                return thread.thread_id
        if page.after is None:
            break
        after = page.after
    async for batch in journal.read(filter=Filter(classes=("action.required",))):
        for _, fact in batch.facts():
            if fact.action_id == action_id:
                return fact.thread_id
    return None


async def find_turn_of_target(runtime: Runtime, target: str) -> tuple[str, str | None] | None:
    """The thread and the turn that a turn's or a thread's id means; no turn where none runs."""
    for thread in runtime.live:
        if thread.knows(target):
            return thread.thread_id, target
    if await runtime.journal.thread(target) is not None:
        return target, _current(await runtime.thread(target))
    thread_id = await _thread_of_turn(runtime.journal, target)
    return None if thread_id is None else (thread_id, target)


def _current(thread: LiveThread) -> str | None:
    """The turn that runs, that was left behind, or that waits to be tried again."""
    if thread.turn is not None:
        return thread.turn.turn_id
    turns = thread.queue.turns
    retrying = turns[0].queued_turn_id if turns and turns[0].retry_of is not None else None
    return find_abandoned_turn(thread) or retrying


async def _thread_of_turn(journal: Journal, turn_id: str) -> str | None:
    wanted = Filter(turn=turn_id, classes=("turn.submitted",))
    async for batch in journal.read(filter=wanted, limit=1):
        for _, fact in batch.facts():
            return fact.thread_id
    async for batch in journal.read(filter=Filter(classes=("queue.changed",))):
        for _, fact in batch.facts():
            rows: list[dict[str, object]] = fact.payload.get("queuedTurns") or []
            named = any(row.get("queuedTurnId") == turn_id for row in rows)
            if named or fact.queued_turn_id == turn_id:
                return fact.thread_id
    return None


_Arguments = ParamSpec("_Arguments")
_Reply = TypeVar("_Reply")


def _reply_refusals(
    method: "Callable[_Arguments, Awaitable[_Reply]]",
) -> "Callable[_Arguments, CoroutineType[Any, Any, _Reply | ControlRefusal]]":
    """What the runtime refuses is a reply with its code."""

    @wraps(method)
    async def reply(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Reply | ControlRefusal:
        try:
            return await method(*args, **kwargs)
        except RuntimeRefused as error:
            return build_refusal(_to_refusal_code(error.code), str(error))

    return reply


class RuntimeControls:
    """`Controls` of a runtime in this process; `by` is who decides and cancels."""

    def __init__(self, runtime: Runtime, *, by: Person) -> None:
        self._runtime = runtime
        self._by = by

    @_reply_refusals
    async def card(self, request: CardRequest) -> CardReply | ControlRefusal:
        thread_id = await self._find_thread(request.action_id)
        card = await self._runtime.read_card(thread_id, request.action_id)
        rule = await self._propose_rule(thread_id, request.action_id) if request.with_rule else None
        return CardReply(card=card, rule=rule)

    async def _propose_rule(self, thread_id: str, action_id: str) -> StandingRule:
        """The rule for an action, tried among the newest requests of its thread."""
        thread = await self._runtime.current(thread_id)
        proposal = await build_proposal(self._runtime, thread, action_id)
        actions = list(thread.projection.state.actions.values())[-RECENT_ACTIONS:]
        return proposal.to_resource(action_id, [(action, _to_match(action)) for action in actions])

    async def _find_thread(self, action_id: str) -> str:
        runtime = self._runtime
        found = _live_thread(runtime, action_id)
        found = found or await find_thread_of_action(runtime.journal, action_id)
        if found is None:
            raise UnknownAction(f"this runtime has no action {action_id}")
        return found

    @_reply_refusals
    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal:
        runtime = self._runtime
        thread_id = await self._find_thread(request.action_id)
        decision = await runtime.decide(
            thread_id,
            request.action_id,
            request.decision,
            by=self._by,
            reason=request.reason,
            args_hash=request.args_hash,
            always=request.always,
            expires_in=request.expires_in,
        )
        return DecideReply(
            action_id=decision.action_id,
            thread_id=thread_id,
            decision=decision.decision,
            decided_by=None if decision.decided_by is None else str(decision.decided_by),
        )

    @_reply_refusals
    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal:
        runtime, target = self._runtime, request.target
        found = await find_turn_of_target(runtime, target)
        if found is None:
            return build_refusal("unknown_turn", f"this runtime has no turn or thread {target}")
        thread_id, turn_id = found
        if turn_id is None:
            return build_refusal("turn_ended", f"no turn is running on thread {thread_id}")
        thread = await runtime.thread(thread_id)
        turn_id = thread.latest_attempt(turn_id)
        outcome = thread.outcome(turn_id)
        is_over = outcome is not None
        if outcome is None:
            reason = request.reason or f"requested by {self._by.name}"
            outcome = await runtime.cancel(
                thread_id, turn_id, reason, take_over=request.take_over, by=self._by
            )
        if is_over or outcome != "canceled":
            return build_refusal("turn_ended", f"turn {turn_id} is already {outcome}")
        return CancelReply(turn_id=turn_id, thread_id=thread_id)

    @_reply_refusals
    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal:
        runtime, thread_id = self._runtime, request.thread_id
        if await runtime.journal.thread(thread_id) is None:
            return build_refusal("unknown_turn", f"this runtime has no thread {thread_id}")
        if request.queued_turn_id is not None:
            receipt = await runtime.steer_queued(thread_id, request.queued_turn_id)
        else:
            receipt = await runtime.steer(
                thread_id,
                request.text,
                steer_id=request.steer_id,
                by=self._by,
                when_unsupported="queue" if request.queue else "refuse",
            )
        return SteerReply(
            steer_id=receipt.steer_id,
            thread_id=thread_id,
            turn_id=receipt.turn_id,
            status=receipt.status,
        )

    @_reply_refusals
    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal:
        runtime, thread_id = self._runtime, request.thread_id
        if await runtime.journal.thread(thread_id) is None:
            return build_refusal("unknown_turn", f"this runtime has no thread {thread_id}")
        if request.promote is not None:
            await runtime.promote(thread_id, request.promote)
        if request.remove is not None:
            await runtime.remove(thread_id, request.remove, by=self._by)
        if request.release is not None or request.release_all:
            await runtime.release(thread_id, request.release, by=self._by)
        turns = (await runtime.state(thread_id)).queue.turns
        return QueueReply(thread_id=thread_id, turns=tuple(map(_to_waiting_turn, turns)))

    @_reply_refusals
    async def rules(self, request: RulesRequest) -> RulesReply | ControlRefusal:
        if request.revoke is not None:
            await self._runtime.revoke_standing_rule(request.revoke, by=self._by)
        rules = await self._runtime.list_standing_rules()
        return RulesReply(rules=tuple(rules[::-1]))

    async def status(self) -> tuple[StatusReply, ...]:
        threads = tuple(map(_to_thread_status, self._runtime.live))
        return (StatusReply(pid=os.getpid(), threads=threads),)


def _to_match(action: Action) -> RuleMatch:
    return RuleMatch(
        approval_id=action.action_id,
        created_at=action.requested_at,
        summary=action.prompt or action.title,
    )


def _to_waiting_turn(turn: QueuedTurn) -> WaitingTurn:
    return WaitingTurn(
        turn_id=turn.queued_turn_id,
        prompt=(turn.prompt or "")[:PROMPT_CHARACTERS],
        agent_id=turn.agent_id,
        status=turn.status,
        not_before=turn.not_before,
    )


def _live_thread(runtime: Runtime, action_id: str) -> str | None:
    for thread in runtime.live:
        if action_id in thread.projection.state.actions:
            return thread.thread_id
    return None


def _to_thread_status(thread: LiveThread) -> ThreadStatus:
    actions = thread.projection.state.actions.values()
    return ThreadStatus(
        thread_id=thread.thread_id,
        turn_id=thread.turn.turn_id if thread.turn is not None else None,
        open_actions=tuple(action.action_id for action in actions if action.status == "pending"),
    )


def _to_refusal_code(code: str) -> RefusalCode:
    return code if code in REFUSALS else "failed"


class ControlServer:
    """Listens in a data folder for as long as the context lasts."""

    def __init__(
        self,
        runtime: Runtime,
        data: str | Path,
        *,
        by: Person | None = None,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._runtime = runtime
        self._by = by or terminal_person()
        self._data = Path(data)
        self._read_seconds = read_seconds
        self.clients = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.path: Path | None = None

    async def __aenter__(self) -> Self:
        await remove_dead_sockets(self._data)
        listening, self.path = control_client.listen(self._data)
        self._server = await asyncio.start_server(self._serve, sock=listening, limit=LINE_BYTES)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.path is not None:
            control_client.remove_socket(self.path)
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.clients += 1
        try:
            await self._send(writer, await self._answer_client(reader, writer))
        finally:
            self.clients -= 1
            writer.close()

    async def _answer_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> ControlReply:
        user = control_client.peer_user(writer.get_extra_info("socket"))
        if user is not None and user != os.geteuid():
            return build_refusal("not_allowed")
        if self.clients > CONNECTIONS:
            return build_refusal("too_many")
        try:
            async with asyncio.timeout(self._read_seconds):
                line = await reader.readuntil()
        except TimeoutError:
            return build_refusal("too_slow")
        except asyncio.LimitOverrunError:
            return build_refusal("too_large")
        except (asyncio.IncompleteReadError, OSError):
            return build_refusal("malformed", "expected a line, got the end of the stream")
        return await self._answer_line(line)

    async def _answer_line(self, line: bytes) -> ControlReply:
        try:
            request = decode_request(line)
        except Malformed as error:
            return build_refusal("malformed", str(error))
        try:
            async with asyncio.timeout(WORK_SECONDS):
                controls = RuntimeControls(self._runtime, by=self._by)
                return await answer_request(controls, request)
        except TimeoutError:
            return build_refusal("too_slow")
        except Exception as error:  # noqa: BLE001 - a client hears of it, the runtime goes on
            return build_refusal("failed", f"{type(error).__name__}: {error}")

    async def _send(self, writer: asyncio.StreamWriter, answer: ControlReply) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._read_seconds):
                writer.write(encode(answer))
                await writer.drain()


def user_name(configured: str | None = None) -> str:
    """The name of the person at this machine: as configured, else the system's name for them."""
    if configured is not None:
        return configured
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"user {os.geteuid()}"


def terminal_person(configured: str | None = None) -> Person:
    """Who acts here by a command; both ends of the channel belong to the same user."""
    return Person(name=user_name(configured), via="terminal")

"""Commands over an Edge: a run that is watched here, and answers that go there.

The facts of a run come over a stream that resumes by itself and are reduced to the same state that
a local turn shows, so that displays and questions are the same. Only asking and stopping go to the
Edge. A module of its own because it needs the client, which is an extra.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from factwire.cli.local_runtime import FactListener
from factwire.cli.run_command import TurnRequest
from factwire.cli.targets import edge_client
from factwire.cli.turn_display import Transcript
from factwire.cli.turn_session import WatchRequest, watch_turn
from factwire.client import AsyncClient, ClientError, EdgeProblem, PlacedFact
from factwire.facts import Fact
from factwire.facts.resources import Run
from factwire.projection import Projection, ProjectionState, read_thread_model
from factwire.runtime.control import (
    CancelReply,
    CancelRequest,
    CardReply,
    CardRequest,
    ControlError,
    ControlRefusal,
    ControlReply,
    Controls,
    DecideReply,
    DecideRequest,
    QueueReply,
    QueueRequest,
    RulesReply,
    RulesRequest,
    StatusReply,
    SteerReply,
    SteerRequest,
)
from factwire.runtime.control.control_messages import RefusalCode, WaitingTurn, build_refusal

if TYPE_CHECKING:
    from factwire.facts.resources import Approval, QueuedRun


_CODES: Final[dict[str, RefusalCode]] = {
    "unknown_approval": "unknown_action",
    "approval_decided": "action_already_decided",
    "approval_expired": "action_expired",
    "approval_changed": "action_changed",
    "approval_not_shown": "action_not_shown",
    "unknown_run": "unknown_turn",
    "unknown_thread": "unknown_turn",
    "run_ended": "turn_ended",
    "run_not_active": "turn_not_active",
    "steer_unsupported": "steer_unsupported",
    "steer_too_long": "steer_too_long",
    "queue_full": "queue_full",
    "thread_owned_elsewhere": "thread_elsewhere",
    "no_standing_rule": "no_standing_rule",
    "unknown_standing_rule": "unknown_standing_rule",
    "edge_stopping": "runtime_closing",
}
"""Code of an Edge's → the one that a runtime would have given."""

_ACTIVE: Final = ("queued", "running", "waiting")


class EdgeControlProblem(EdgeProblem, ControlError):
    """What an Edge refuses by a code that no runtime has: who asks, not what is asked for."""

    def __init__(self, problem: EdgeProblem) -> None:
        super().__init__(
            problem.status,
            problem.code,
            problem.detail,
            trace_id=problem.trace_id,
            members=problem.members,
        )

    def __str__(self) -> str:
        return self.detail


_Arguments = ParamSpec("_Arguments")
_Reply = TypeVar("_Reply")


def _reply_problems(
    method: "Callable[_Arguments, Awaitable[_Reply]]",
) -> "Callable[_Arguments, CoroutineType[Any, Any, _Reply | ControlRefusal]]":
    """What the Edge refuses by a known code is a reply; anything else is raised."""

    @wraps(method)
    async def reply(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Reply | ControlRefusal:
        try:
            return await method(*args, **kwargs)
        except EdgeProblem as problem:
            code = _CODES.get(problem.code)
            if code is None:
                raise EdgeControlProblem(problem) from problem
            return build_refusal(code, problem.detail)

    return reply


def _find_no_run(action_id: str) -> None:
    del action_id


class EdgeControls:
    """`Controls` of an Edge. `find_run` gives the run of an action that is known here; the
    approvals of the Edge are searched for any other.
    """

    def __init__(
        self, client: AsyncClient, find_run: Callable[[str], str | None] = _find_no_run
    ) -> None:
        self._client = client
        self._find_run = find_run

    @_reply_problems
    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal:
        run_id = self._find_run(request.action_id)
        if run_id is None:
            approval = await _find_approval(self._client, request.action_id)
            if approval is None:
                message = f"the Edge has no action {request.action_id}"
                return build_refusal("unknown_action", message)
            run_id = approval.run_id or ""
        decided = await self._client.decide(
            run_id,
            request.action_id,
            "allow" if request.decision == "approve" else "deny",
            reason=request.reason,
            args_hash=request.args_hash,
            always=request.always,
            expires_in=request.expires_in,
        )
        return DecideReply(
            action_id=decided.approval_id,
            thread_id=decided.thread_id or "",
            decision=decided.decision or decided.status,
            decided_by=None if decided.decided_by is None else str(decided.decided_by),
        )

    @_reply_problems
    async def card(self, request: CardRequest) -> CardReply | ControlRefusal:
        client, action_id = self._client, request.action_id
        rule = await client.standing_rule(action_id) if request.with_rule else None
        if rule is not None and rule.rule is None:
            return build_refusal("no_standing_rule", rule.reason)
        return CardReply(card=await client.decision_card(action_id), rule=rule)

    @_reply_problems
    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal:
        run = await _find_run(self._client, request.target)
        if run is None:
            thread = await self._client.thread(request.target)
            return build_refusal("turn_ended", f"no turn is running on thread {thread.thread_id}")
        canceled = await self._client.cancel_run(run.run_id, reason=request.reason)
        return CancelReply(turn_id=canceled.turn_id, thread_id=canceled.thread_id or "")

    @_reply_problems
    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal:
        client, thread_id = self._client, request.thread_id
        if request.queued_turn_id is not None:
            await client.steer_queued(thread_id, to_run_id(request.queued_turn_id))
            return SteerReply(
                steer_id=request.queued_turn_id,
                thread_id=thread_id,
                turn_id=await _latest_turn(client, thread_id),
                status="pending",
            )
        try:
            steer = await client.steer(thread_id, request.text)
        except EdgeProblem as problem:
            if problem.code != "steer_unsupported" or not request.queue:
                raise
            return _steer_to_turn(await client.send_message(thread_id, request.text))
        return SteerReply(
            steer_id=steer.steer_id,
            thread_id=steer.thread_id,
            turn_id=steer.turn_id,
            status=steer.status,
        )

    @_reply_problems
    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal:
        client, thread_id = self._client, request.thread_id
        if request.promote is not None:
            await client.promote(thread_id, to_run_id(request.promote))
        if request.remove is not None:
            await client.remove_queued(thread_id, to_run_id(request.remove))
        if request.release is not None:
            await client.continue_queued(thread_id, to_run_id(request.release))
        elif request.release_all:
            await client.continue_queue(thread_id)
        turns = tuple(map(_to_waiting, (await client.queue(thread_id)).items))
        return QueueReply(thread_id=thread_id, turns=turns)

    @_reply_problems
    async def rules(self, request: RulesRequest) -> RulesReply | ControlRefusal:
        if request.revoke is not None:
            await self._client.revoke_standing_rule(request.revoke)
        return RulesReply(rules=tuple([rule async for rule in self._client.standing_rules()]))

    async def status(self) -> tuple[StatusReply, ...]:
        """An Edge says what runs by its threads, not by its process."""
        return ()

    def is_abandoned(self, reply: ControlReply) -> bool:
        """An Edge runs what it writes down."""
        del reply
        return False


async def _find_approval(client: "AsyncClient", action_id: str) -> "Approval | None":
    """An approval by its id: most likely one that is open."""
    async for approval in client.approvals(status="pending", limit=500):
        if approval.approval_id == action_id:
            return approval
    async for approval in client.approvals(limit=500):
        if approval.approval_id == action_id:
            return approval
    return None


async def _find_run(client: "AsyncClient", target: str) -> "Run | None":
    """The run that is meant: by its id, by its turn's, or what runs on a thread of this id."""
    try:
        return await client.run(to_run_id(target))
    except EdgeProblem as problem:
        if problem.code != "unknown_run":
            raise
    active = [run async for run in client.runs(thread_id=target) if run.status in _ACTIVE]
    first = [run for run in active if run.status != "queued"]
    return next(iter(first or reversed(active)), None)


def _steer_to_turn(run: "Run") -> SteerReply:
    status = "queued" if run.status == "queued" else "started"
    return SteerReply(
        steer_id=run.turn_id, thread_id=run.thread_id or "", turn_id=run.turn_id, status=status
    )


async def _latest_turn(client: "AsyncClient", thread_id: str) -> str:
    thread = await client.thread(thread_id)
    return "" if thread.latest_run_id is None else (await client.run(thread.latest_run_id)).turn_id


def _to_waiting(run: "QueuedRun") -> WaitingTurn:
    return WaitingTurn(
        turn_id=run.run_id, prompt=run.prompt or "", agent_id=run.agent_id, status=run.status
    )


def to_run_id(target: str) -> str:
    """The run of a turn, by the Edge's rule; a run's own id stays what it is."""
    if target.startswith("run_"):
        return target
    return f"run_{target.removeprefix('trn_')}"


_LEFT = "still running on the Edge; follow it with factwire tail --thread {}"
_ENDS = ("completed", "failed", "canceled")


async def run_over_edge(
    url: str, request: TurnRequest, work_dir: str | None, *, as_json: bool
) -> int:
    """Start a run on an Edge and watch it to its end."""
    async with edge_client(url) as client:
        start = await _load_thread(client, request.thread)
        run = await client.start_run(
            request.agent, request.prompt, thread_id=request.thread, work_dir=work_dir
        )
        work = EdgeThread(client, run, *start)
        watched = WatchRequest(
            work=work,
            turn_id=run.turn_id,
            begin=_begin_nothing,
            left=_LEFT.format(work.thread_id),
            approve=request.approve,
        )
        transcript = Transcript(work.state, run.turn_id)
        async with work.follow_facts():
            return await watch_turn(watched, transcript, as_json=as_json)


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
        self.controls: Controls = EdgeControls(client, self._find_run_of)
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

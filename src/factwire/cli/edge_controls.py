"""The `Controls` of an Edge, and those of a device at a Hub: answers that go there.

What an Edge refuses by a code of its own becomes the one that a runtime would have given. A device
that is away gets nothing, but what can wait for it is left at its Hub: a decision, the end of a
task, a message as the next turn; the reply then says what it waits for. A module of its own because
it needs the client, which is an extra.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import msgspec

from factwire.cli.targets import DEVICE_OFFLINE, describe_expiry, format_minute
from factwire.client import AsyncClient, AsyncDeviceClient, EdgeProblem
from factwire.facts.resources import TASK_ENDS, AgentTask, HubApproval, Run
from factwire.facts.status_words import APPROVAL_SENTENCES, TASK_SENTENCES
from factwire.runtime.control import (
    CancelReply,
    CancelRequest,
    CardReply,
    CardRequest,
    ControlError,
    ControlRefusal,
    ControlReply,
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
    "approval_closed": "action_expired",
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
        return await self._cancel_run(run, request.reason)

    async def _cancel_run(self, run: Run, reason: str | None) -> CancelReply:
        canceled = await self._client.cancel_run(run.run_id, reason=reason)
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


_TASK: Final = "tsk_"
_STOP_SECONDS: Final = 10.0
"""Seconds that somebody who cancels a task waits until its device has stopped it."""


def build_controls(
    client: AsyncClient, find_run: Callable[[str], str | None] = _find_no_run
) -> EdgeControls:
    """The controls of an Edge, whichever way it is reached."""
    if isinstance(client, AsyncDeviceClient):
        return HubControls(client, find_run)
    return EdgeControls(client, find_run)


class HubControls(EdgeControls):
    """`Controls` of a device at a Hub, also while it is away."""

    def __init__(
        self, client: AsyncDeviceClient, find_run: Callable[[str], str | None] = _find_no_run
    ) -> None:
        super().__init__(client, find_run)
        self._device_client = client
        self._device = client.device
        self._hub = client.hub

    @_reply_problems
    async def card(self, request: CardRequest) -> CardReply | ControlRefusal:
        try:
            return await super().card(request)
        except EdgeProblem as problem:
            if problem.code != DEVICE_OFFLINE or request.with_rule:
                raise
        approval = await self._hub.find_approval(self._device, request.action_id)
        if approval is None:
            return build_refusal("unknown_action", f"the Hub has no action {request.action_id}")
        return CardReply(card=(await self._hub.approval(approval.approval_id)).card)

    @_reply_problems
    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal:
        reply = await super().decide(request)
        if isinstance(reply, ControlRefusal) or reply.decision != "pending":
            return reply
        approval = await self._hub.find_approval(self._device, request.action_id)
        if approval is None:
            return reply
        decision = {"allow": "approved", "deny": "denied"}.get(approval.decision or "", "pending")
        return msgspec.structs.replace(
            reply,
            decision=decision,
            decided_by=None if approval.decided_by is None else str(approval.decided_by),
            later=await self._describe_approval(approval),
        )

    async def _describe_approval(self, approval: HubApproval) -> str:
        """What a decision waits for that the facts of the device do not show yet."""
        votes = sum(vote.decision == "allow" for vote in approval.votes)
        sentence = APPROVAL_SENTENCES.get(
            f"{approval.state}_{await self._read_presence()}",
            APPROVAL_SENTENCES.get(approval.state, APPROVAL_SENTENCES["votes"]),
        )
        return sentence.format(device=self._device.name, votes=votes, required=approval.required)

    async def _read_presence(self) -> str:
        device = await self._hub.find_device(self._device.device_id)
        return "online" if device.online else "offline"

    @_reply_problems
    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal:
        if request.target.startswith(_TASK):
            return await self._cancel_task(request.target)
        return await super().cancel(request)

    async def _cancel_run(self, run: Run, reason: str | None) -> CancelReply:
        task = None
        if await self._read_presence() == "offline":
            task = await self._find_task(run)
        if task is not None:
            return await self._cancel_task(task.task_id)
        answer = await self._device_client.cancel_later(run.run_id, reason=reason)
        if isinstance(answer, Run):
            return CancelReply(turn_id=answer.turn_id, thread_id=answer.thread_id or "")
        later = TASK_SENTENCES["run_stopping_offline"].format(
            device=self._device.name, time=format_minute(answer.expires_at)
        )
        return CancelReply(turn_id=run.turn_id, thread_id=run.thread_id or "", later=later)

    async def _find_task(self, run: Run) -> AgentTask | None:
        """The task that a run is of, where it was started from the Hub."""
        async for task in self._hub.tasks(device_id=self._device.device_id, limit=100):
            if task.edge_run_id == run.run_id and task.status not in TASK_ENDS:
                return task
        return None

    async def _cancel_task(self, task_id: str) -> CancelReply:
        task, later = await self._hub.cancel_task(task_id), None
        if task.status not in TASK_ENDS and await self._read_presence() == "offline":
            later = TASK_SENTENCES["stopping_offline"]
        elif task.status not in TASK_ENDS:
            later = TASK_SENTENCES["stopping"]
            with suppress(TimeoutError):
                await self._hub.wait(task, seconds=_STOP_SECONDS)
                later = None
        return CancelReply(
            turn_id=task.task_id,
            thread_id=task.thread_id or "",
            later=msgspec.UNSET if later is None else later.format(device=self._device.name),
        )

    @_reply_problems
    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal:
        try:
            return await super().steer(request)
        except EdgeProblem as problem:
            if problem.code != DEVICE_OFFLINE or not request.queue or request.queued_turn_id:
                raise
        thread = await self._client.thread(request.thread_id)
        task = await self._hub.create_task(
            request.text,
            device_id=self._device.device_id,
            agent=thread.agent_id,
            thread_id=thread.thread_id,
        )
        return SteerReply(
            steer_id=task.task_id,
            thread_id=thread.thread_id,
            turn_id="",
            status="queued",
            later=describe_expiry(self._device.name, task),
        )

    @_reply_problems
    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal:
        if request.remove is not None and request.remove.startswith(_TASK):
            await self._hub.cancel_task(request.remove)
            request = msgspec.structs.replace(request, remove=None)
        reply = await super().queue(request)
        if isinstance(reply, ControlRefusal):
            return reply
        queued = self._hub.tasks(device_id=self._device.device_id, status="queued", limit=100)
        own = [task async for task in queued if task.thread_id == request.thread_id]
        waiting = (
            WaitingTurn(turn_id=task.task_id, prompt=task.prompt, agent_id=task.agent_type)
            for task in reversed(own)
        )
        return msgspec.structs.replace(reply, turns=(*reply.turns, *waiting))

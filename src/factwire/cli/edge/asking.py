"""What `approve`, `deny`, `cancel`, `steer` and `queue` ask, asked of an Edge.

The answers are those of a runtime's own channel, codes included, so that whoever reads them need
not know where the turn runs.
"""

from typing import TYPE_CHECKING, Final

from factwire.client import EdgeProblem
from factwire.runtime.control import (
    Answer,
    Cancel,
    Canceled,
    Decide,
    Decided,
    Queue,
    Queued,
    Request,
    Steer,
    SteerSaid,
)
from factwire.runtime.control.messages import RefusalCode, Waiting, refusal

if TYPE_CHECKING:
    from factwire.client import Approval, AsyncClient, QueuedRun, Run

_CODES: Final[dict[str, RefusalCode]] = {
    "unknown_approval": "unknown_action",
    "approval_decided": "action_already_decided",
    "approval_expired": "action_expired",
    "approval_changed": "action_changed",
    "unknown_run": "unknown_turn",
    "unknown_thread": "unknown_turn",
    "run_ended": "turn_ended",
    "run_not_active": "turn_not_active",
    "steer_unsupported": "steer_unsupported",
    "steer_too_long": "steer_too_long",
    "queue_full": "queue_full",
    "thread_owned_elsewhere": "thread_elsewhere",
    "no_standing_rule": "no_standing_rule",
    "edge_stopping": "runtime_closing",
}
"""Code of an Edge's → the one that a runtime would have given."""

_ACTIVE: Final = ("queued", "running", "waiting")


async def ask_edge(client: "AsyncClient", request: Request) -> Answer:
    """Ask an Edge; what it refuses by a known code is an answer, anything else is raised."""
    try:
        if isinstance(request, Decide):
            return await _decide(client, request)
        if isinstance(request, Cancel):
            return await _cancel(client, request)
        if isinstance(request, Steer):
            return await _steer(client, request)
        if isinstance(request, Queue):
            return await _queue(client, request)
    except EdgeProblem as problem:
        code = _CODES.get(problem.code)
        if code is None:
            raise
        return refusal(code, problem.detail)
    return refusal("malformed")


async def _decide(client: "AsyncClient", request: Decide) -> Answer:
    approval = await _approval(client, request.action_id)
    if approval is None:
        return refusal("unknown_action", f"no action {request.action_id} is known there")
    decided = await client.decide(
        approval.run_id or "",
        approval.approval_id,
        "allow" if request.decision == "approve" else "deny",
        reason=request.reason,
        args_hash=request.args_hash,
        always=request.always,
    )
    return Decided(
        action_id=decided.approval_id,
        thread_id=decided.thread_id or "",
        decision=decided.decision or decided.status,
        decided_by=decided.decided_by,
    )


async def _approval(client: "AsyncClient", action_id: str) -> "Approval | None":
    """An approval by its id: most likely one that is open."""
    async for approval in client.approvals(status="pending", limit=500):
        if approval.approval_id == action_id:
            return approval
    async for approval in client.approvals(limit=500):
        if approval.approval_id == action_id:
            return approval
    return None


async def _cancel(client: "AsyncClient", request: Cancel) -> Answer:
    run = await _run(client, request.target)
    if run is None:
        thread = await client.thread(request.target)
        return refusal("turn_ended", f"no turn runs on thread {thread.thread_id}")
    canceled = await client.cancel_run(run.run_id, reason=request.reason)
    return Canceled(turn_id=canceled.turn_id, thread_id=canceled.thread_id or "")


async def _run(client: "AsyncClient", target: str) -> "Run | None":
    """The run that is meant: by its id, by its turn's, or what runs on a thread of this id."""
    try:
        return await client.run(run_of(target))
    except EdgeProblem as problem:
        if problem.code != "unknown_run":
            raise
    active = [run async for run in client.runs(thread_id=target) if run.status in _ACTIVE]
    first = [run for run in active if run.status != "queued"]
    return next(iter(first or reversed(active)), None)


async def _steer(client: "AsyncClient", request: Steer) -> Answer:
    if request.queued_turn_id is not None:
        await client.steer_queued(request.thread_id, run_of(request.queued_turn_id))
        return SteerSaid(
            steer_id=request.queued_turn_id,
            thread_id=request.thread_id,
            turn_id=await _latest_turn(client, request.thread_id),
            status="pending",
        )
    try:
        said = await client.steer(request.thread_id, request.text)
    except EdgeProblem as problem:
        if problem.code != "steer_unsupported" or not request.queue:
            raise
        run = await client.send_message(request.thread_id, request.text)
        return _as_turn(run)
    return SteerSaid(
        steer_id=said.steer_id,
        thread_id=said.thread_id,
        turn_id=said.turn_id,
        status=said.status,
    )


def _as_turn(run: "Run") -> SteerSaid:
    status = "queued" if run.status == "queued" else "started"
    return SteerSaid(
        steer_id=run.turn_id, thread_id=run.thread_id or "", turn_id=run.turn_id, status=status
    )


async def _latest_turn(client: "AsyncClient", thread_id: str) -> str:
    thread = await client.thread(thread_id)
    return "" if thread.latest_run_id is None else (await client.run(thread.latest_run_id)).turn_id


async def _queue(client: "AsyncClient", request: Queue) -> Answer:
    thread_id = request.thread_id
    if request.promote is not None:
        await client.promote(thread_id, run_of(request.promote))
    if request.remove is not None:
        await client.remove_queued(thread_id, run_of(request.remove))
    turns = tuple(map(_waiting, await client.queue(thread_id)))
    return Queued(thread_id=thread_id, turns=turns)


def _waiting(run: "QueuedRun") -> Waiting:
    return Waiting(turn_id=run.run_id, prompt=run.prompt or "", agent_id=run.agent_id)


def run_of(target: str) -> str:
    """The run of a turn, by the Edge's rule; a run's own id stays what it is."""
    if target.startswith("run_"):
        return target
    return f"run_{target.removeprefix('trn_')}"

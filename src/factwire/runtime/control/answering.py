"""Answering: what a request does to a runtime, and what it is told. Nothing is decided here."""

import os

from factwire.runtime.control.finding import thread_of_action, turn_of_target
from factwire.runtime.control.limits import PROMPT_CHARACTERS
from factwire.runtime.control.messages import (
    REFUSALS,
    Answer,
    Cancel,
    Canceled,
    Decide,
    Decided,
    Queue,
    Queued,
    RefusalCode,
    Request,
    Running,
    Steer,
    SteerSaid,
    ThreadNow,
    Waiting,
    refusal,
)
from factwire.runtime.errors import RuntimeRefused
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.runtime import Runtime


async def answer(runtime: Runtime, request: Request, *, by: str) -> Answer:
    """Do what is asked; what the runtime refuses is told by its code."""
    try:
        if isinstance(request, Decide):
            return await _decide(runtime, request, by)
        if isinstance(request, Cancel):
            return await _cancel(runtime, request, by)
        if isinstance(request, Steer):
            return await _steer(runtime, request)
        if isinstance(request, Queue):
            return await _queue(runtime, request)
        return Running(pid=os.getpid(), threads=tuple(map(_now, runtime.live)))
    except RuntimeRefused as error:
        return refusal(_code(error.code), str(error))


async def _decide(runtime: Runtime, request: Decide, by: str) -> Answer:
    thread_id = _live_thread(runtime, request.action_id)
    thread_id = thread_id or await thread_of_action(runtime.journal, request.action_id)
    if thread_id is None:
        return refusal("unknown_action", f"no action {request.action_id} is known here")
    made = await runtime.decide(
        thread_id,
        request.action_id,
        request.decision,
        by=by,
        reason=request.reason,
        args_hash=request.args_hash,
        always=request.always,
    )
    return Decided(
        action_id=made.action_id,
        thread_id=thread_id,
        decision=made.decision,
        decided_by=made.decided_by,
    )


async def _cancel(runtime: Runtime, request: Cancel, by: str) -> Answer:
    found = await turn_of_target(runtime, request.target)
    if found is None:
        return refusal("unknown_turn", f"no turn or thread {request.target} is known here")
    thread_id, turn_id = found
    if turn_id is None:
        return refusal("turn_ended", f"no turn runs on thread {thread_id}")
    thread = await runtime.thread(thread_id)
    turn_id = thread.latest_attempt(turn_id)
    if thread.outcome(turn_id) is not None:
        return refusal("turn_ended", f"turn {turn_id} is {thread.outcome(turn_id)} already")
    reason = request.reason or f"requested by {by}"
    await runtime.cancel(thread_id, turn_id, reason, take_over=request.take_over)
    return Canceled(turn_id=turn_id, thread_id=thread_id)


async def _steer(runtime: Runtime, request: Steer) -> Answer:
    thread_id = request.thread_id
    if await runtime.journal.thread(thread_id) is None:
        return refusal("unknown_turn", f"no thread {thread_id} is known here")
    if request.queued_turn_id is not None:
        made = await runtime.steer_queued(thread_id, request.queued_turn_id)
    else:
        made = await runtime.steer(
            thread_id,
            request.text,
            steer_id=request.steer_id,
            when_unsupported="queue" if request.queue else "refuse",
        )
    return SteerSaid(
        steer_id=made.steer_id, thread_id=thread_id, turn_id=made.turn_id, status=made.status
    )


async def _queue(runtime: Runtime, request: Queue) -> Answer:
    thread_id = request.thread_id
    if await runtime.journal.thread(thread_id) is None:
        return refusal("unknown_turn", f"no thread {thread_id} is known here")
    if request.promote is not None:
        await runtime.promote(thread_id, request.promote)
    if request.remove is not None:
        await runtime.remove(thread_id, request.remove)
    turns = (await runtime.state(thread_id)).queue.turns
    rows = (
        Waiting(
            turn_id=turn.queued_turn_id,
            prompt=(turn.prompt or "")[:PROMPT_CHARACTERS],
            agent_id=turn.agent_id,
            status=turn.status,
            not_before=turn.not_before,
        )
        for turn in turns
    )
    return Queued(thread_id=thread_id, turns=tuple(rows))


def _live_thread(runtime: Runtime, action_id: str) -> str | None:
    for thread in runtime.live:
        if action_id in thread.projection.state.actions:
            return thread.thread_id
    return None


def _now(thread: LiveThread) -> ThreadNow:
    actions = thread.projection.state.actions.values()
    return ThreadNow(
        thread_id=thread.thread_id,
        turn_id=thread.turn.turn_id if thread.turn is not None else None,
        open_actions=tuple(action.action_id for action in actions if action.status == "pending"),
    )


def _code(code: str) -> RefusalCode:
    return code if code in REFUSALS else "failed"

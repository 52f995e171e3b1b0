"""Answering: what a request does to a runtime, and what it is told. Nothing is decided here."""

import os

from factwire.runtime.control.finding import thread_of_action, turn_of_target
from factwire.runtime.control.messages import (
    REFUSALS,
    Answer,
    Cancel,
    Canceled,
    Decide,
    Decided,
    RefusalCode,
    Request,
    Running,
    ThreadNow,
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
    if thread.outcome(turn_id) is not None:
        return refusal("turn_ended", f"turn {turn_id} is {thread.outcome(turn_id)} already")
    await runtime.cancel(thread_id, turn_id, request.reason or f"requested by {by}")
    return Canceled(turn_id=turn_id, thread_id=thread_id)


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

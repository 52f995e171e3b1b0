"""What becomes of a request to steer: it is said to the turn that runs, or is a turn of its own."""

from typing import TYPE_CHECKING

import msgspec

from factwire.runtime.errors import NothingToSteer, SteerUnsupported
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.provider import SteerTaken
from factwire.runtime.submission import Steered, SteeredAs, Submission, submitted
from factwire.runtime.turns import Turn

if TYPE_CHECKING:
    from factwire.runtime.runtime import Runtime


async def steer_running(thread: LiveThread, said: SteerTaken, turn_id: str | None) -> Steered:
    """Write something down for the turn that runs; what was given before is not given again."""
    async with thread.order:
        known = _known(thread, said.steer_id)
        if known is not None:
            return known
        turn = _steerable(thread, turn_id)
        await thread.steers.add(turn.scope, said)
        return steered(thread, turn.turn_id, said.steer_id, "pending")


async def steer_with_queued(thread: LiveThread, queued_turn_id: str) -> Steered:
    """Say to the turn that runs what a queued turn was to be asked."""
    async with thread.order:
        turn = _steerable(thread, None)
        thread.queue.turn(queued_turn_id)
        submission = await thread.queue.submission(queued_turn_id)
        await thread.steers.turn_into_steer(turn.scope, submission)
        return steered(thread, turn.turn_id, queued_turn_id, "pending")


async def next_turn(runtime: "Runtime", thread: LiveThread, said: SteerTaken) -> Submission:
    """The turn that a steer becomes: of the agent that works on the thread, or did last."""
    last = thread.projection.state.runtime.latest_turn_id
    before = None if thread.turn is None else thread.turn.submission
    if before is None and last is not None:
        before = await submitted(runtime.journal, runtime.blobs, thread.thread_id, last)
    if before is None:
        raise NothingToSteer(f"no turn ever ran on thread {thread.thread_id}; submit one")
    runtime.agent(before.agent)
    return msgspec.structs.replace(
        before,
        turn_id=said.steer_id,
        prompt=said.text,
        input=said.input,
        retry_of=None,
        attempt=1,
        not_before=None,
        trace_id=None,
    )


def steered(thread: LiveThread, turn_id: str, steer_id: str, status: SteeredAs) -> Steered:
    return Steered(steer_id=steer_id, thread_id=thread.thread_id, turn_id=turn_id, status=status)


def _known(thread: LiveThread, steer_id: str) -> Steered | None:
    steer = thread.steers.known(steer_id)
    if steer is not None and steer.status in ("pending", "delivered"):
        status: SteeredAs = "pending" if steer.status == "pending" else "delivered"
        return steered(thread, steer.turn_id or "", steer_id, status)
    if not thread.knows(steer_id):
        return None
    waits = any(turn.queued_turn_id == steer_id for turn in thread.queue.turns)
    return steered(thread, steer_id, steer_id, "queued" if waits else "started")


def _steerable(thread: LiveThread, turn_id: str | None) -> Turn:
    turn = thread.turn
    if turn is None or turn.is_over or turn_id not in (None, turn.turn_id):
        wanted = "no turn" if turn_id is None else f"turn {turn_id} does not run, and nothing else"
        raise NothingToSteer(f"{wanted} can be steered on thread {thread.thread_id} now")
    if not turn.can_be_steered:
        raise SteerUnsupported(turn.submission.agent)
    return turn

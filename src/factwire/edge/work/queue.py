"""The queue of a thread: who waits, and in which order."""

import msgspec

from factwire.edge.events import run_of
from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.work.runs import refusals


class QueuedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A run that has not started."""

    run_id: str
    prompt: str | None = None
    agent_id: str | None = None


async def waiting(machine: Machine, thread_id: str) -> list[QueuedRun]:
    """What waits on a thread, next first."""
    machine.own_thread(thread_id)
    state = await machine.runtime.state(thread_id)
    return [
        QueuedRun(run_id=run_of(turn.queued_turn_id), prompt=turn.prompt, agent_id=turn.agent_id)
        for turn in state.queue.turns
    ]


async def promote(machine: Machine, thread_id: str, run_id: str) -> list[QueuedRun]:
    with refusals():
        await machine.runtime.promote(thread_id, await _turn(machine, thread_id, run_id))
    return await _now(machine, thread_id)


async def steer(machine: Machine, thread_id: str, run_id: str) -> list[QueuedRun]:
    with refusals():
        await machine.runtime.steer_queued(thread_id, await _turn(machine, thread_id, run_id))
    return await _now(machine, thread_id)


async def remove(machine: Machine, thread_id: str, run_id: str) -> list[QueuedRun]:
    with refusals():
        await machine.runtime.remove(thread_id, await _turn(machine, thread_id, run_id))
    return await _now(machine, thread_id)


async def _turn(machine: Machine, thread_id: str, run_id: str) -> str:
    machine.own_thread(thread_id)
    state = await machine.runtime.state(thread_id)
    for turn in state.queue.turns:
        if run_of(turn.queued_turn_id) == run_id:
            return turn.queued_turn_id
    raise Problem(404, "unknown_run", "no run of this id waits on this thread")


async def _now(machine: Machine, thread_id: str) -> list[QueuedRun]:
    await machine.settled()
    return await waiting(machine, thread_id)

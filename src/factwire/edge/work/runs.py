"""Runs: asked for, steered, cancelled, tried again; and the answers that they wait for.

The runtime decides; what it refuses becomes a problem with a status, by one table.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Literal

import msgspec

from factwire.edge.events import run_of
from factwire.edge.limits import RUNS_WAITING
from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.rows import Approval, Run
from factwire.edge.work import projects, worktrees
from factwire.facts import InputPart
from factwire.runtime import RuntimeRefused
from factwire.runtime.submission import Steered

STATUSES: Final[dict[str, tuple[int, str]]] = {
    "unknown_agent": (400, "unknown_agent"),
    "unknown_decision": (400, "unknown_decision"),
    "workspace_not_allowed": (403, "workspace_not_allowed"),
    "unknown_turn": (404, "unknown_run"),
    "unknown_action": (404, "unknown_approval"),
    "turn_already_active": (409, "active_run_exists"),
    "thread_elsewhere": (409, "thread_owned_elsewhere"),
    "turn_not_active": (409, "run_not_active"),
    "steer_unsupported": (409, "steer_unsupported"),
    "steer_too_long": (413, "steer_too_long"),
    "action_already_decided": (409, "approval_decided"),
    "action_changed": (409, "approval_changed"),
    "action_expired": (410, "approval_expired"),
    "queue_full": (429, "queue_full"),
    "too_many_turns": (429, "too_many_runs"),
    "runtime_closing": (503, "edge_stopping"),
}
"""Code of the runtime's → status and code of the Edge's; any other is a 409 with its own code."""

_ENDED: Final = ("finished", "failed", "cancelled")


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is asked to do."""

    turn_id: str
    thread_id: str
    agent_id: str
    prompt: str
    input: tuple[InputPart, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    work_dir: str | None = None
    worktree: bool | None = None
    when_busy: Literal["queue", "refuse"] = "queue"
    trace_id: str | None = None


@contextmanager
def refusals() -> Generator[None]:
    """What a runtime refuses, as the problem that it is for a client."""
    try:
        yield
    except RuntimeRefused as error:
        status, code = STATUSES.get(error.code, (409, error.code))
        raise Problem(status, code, str(error)) from error


async def start(machine: Machine, new: NewRun) -> Run:
    """Start a run, or queue it; one that was asked for before is only told again."""
    thread = machine.own_thread(new.thread_id)
    if thread.status == "archived":
        raise Problem(409, "thread_archived", "the thread is archived; take it out first")
    folder = new.work_dir
    if folder is None and thread.project_id is not None:
        project = machine.records.projects.get(thread.project_id)
        folder = project.work_dir if project is not None else None
    with refusals():
        machine.registered.agent(new.agent_id)
        async with _place(machine, new, folder) as (place, worktree):
            await machine.runtime.submit(
                new.thread_id,
                new.agent_id,
                new.prompt,
                turn_id=new.turn_id,
                input=new.input,
                options=new.options,
                project_id=thread.project_id,
                workspace=place,
                worktree=worktree,
                trace_id=new.trace_id,
                when_busy=new.when_busy,
                when_full="refuse",
            )
    await machine.settled()
    return find(machine, run_of(new.turn_id))


@asynccontextmanager
async def _place(
    machine: Machine, new: NewRun, folder: str | None
) -> AsyncGenerator[tuple[str | None, dict[str, str] | None]]:
    """Where a run works, and what is to be told of its worktree, if it has one."""
    run_id = run_of(new.turn_id)
    wanted = machine.own_worktree if new.worktree is None else new.worktree
    if not wanted or machine.records.runs.get(run_id) is not None:
        yield folder, None
        return
    source = folder or str(machine.runtime.workspace)
    async with worktrees.fresh_worktree(machine, run_id, source) as made:
        yield made.path, worktrees.told(made)


async def steer(
    machine: Machine,
    thread_id: str,
    prompt: str,
    parts: tuple[InputPart, ...],
    steer_id: str,
) -> Steered:
    """Say something to the run that is under way; what became of it."""
    machine.own_thread(thread_id)
    with refusals():
        steered = await machine.runtime.steer(thread_id, prompt, input=parts, steer_id=steer_id)
    await machine.settled()
    return steered


async def cancel(machine: Machine, run_id: str, reason: str) -> Run:
    """Ask a run to stop; it may take a while, and its facts tell when it has."""
    run = find(machine, run_id)
    if run.status in _ENDED:
        if run.status == "cancelled":
            return run
        raise Problem(409, "run_ended", f"the run has {run.status} already")
    thread = machine.own_thread(run.thread_id or "")
    cancelling = asyncio.ensure_future(
        machine.runtime.cancel(thread.thread_id, run.turn_id, reason)
    )
    _CANCELLING.add(cancelling)
    cancelling.add_done_callback(_CANCELLING.discard)
    # What is refused is refused at once; whoever asked need not wait for an agent to stop.
    await asyncio.wait({cancelling}, timeout=_HEARD_SECONDS)
    if cancelling.done():
        with refusals():
            cancelling.result()
    await machine.settled()
    return machine.records.runs.get(run_id) or run


_CANCELLING: Final[set[asyncio.Future[None]]] = set()
_HEARD_SECONDS: Final = 0.2


async def retry(machine: Machine, run_id: str, trace_id: str | None = None) -> Run:
    """Run what ended once more, as a run of its own that names the old one."""
    run = find(machine, run_id)
    if run.status not in _ENDED:
        raise Problem(409, "active_run_exists", "the run has not ended; cancel it first")
    thread = machine.own_thread(run.thread_id or "")
    with refusals():
        submitted = await machine.runtime.retry(thread.thread_id, run.turn_id, trace_id=trace_id)
    await machine.settled()
    return find(machine, run_of(submitted.turn_id))


async def decide(
    machine: Machine,
    run_id: str,
    approval_id: str,
    decision: Literal["allow", "deny"],
    *,
    reason: str | None,
    args_hash: str | None,
    always: Literal["thread", "workspace"] | None,
    response: Any,
) -> Approval:
    """Decide what a run waits for. An approval of another run is none of this one's."""
    approval = machine.records.approvals.get(approval_id)
    if approval is None or approval.run_id != run_id:
        raise Problem(404, "unknown_approval", "this run has no approval of this id")
    thread = machine.own_thread(approval.thread_id or "")
    with refusals():
        await machine.runtime.decide(
            thread.thread_id,
            approval_id,
            decision,
            by="edge",
            reason=reason,
            args_hash=args_hash,
            response=response,
            always=always,
        )
    await machine.settled()
    return machine.records.approvals.get(approval_id) or approval


def find(machine: Machine, run_id: str) -> Run:
    """A run; raises `Problem`."""
    return machine.run(run_id)


def agent_for(machine: Machine, thread_id: str, named: str | None, default: str | None) -> str:
    """Whom a message is for: who is named, else who answered last, else the configured one."""
    agent = named or machine.thread(thread_id).agent_id or default
    if agent is None:
        raise Problem(
            400, "agent_required", "name an agent: the thread has none yet, and none is configured"
        )
    return agent


def project_of(machine: Machine, project_id: str | None) -> str | None:
    """A project that is known, or none; raises `Problem`."""
    return None if project_id is None else projects.find(machine, project_id).project_id


def ensure_room(machine: Machine) -> None:
    """Raise `Problem` while as many runs work, or wait for a person, as may; nothing is made for
    one more.
    """
    runtime = machine.runtime
    most = runtime.settings.active_turns
    if runtime.active_turns >= most:
        message = f"{most} runs are at work, as many as `limits.concurrent_runs` allows; wait for "
        raise _full(f"{message}one to end, or cancel one")
    if sum(thread.is_waiting for thread in runtime.live) >= RUNS_WAITING:
        raise _full(f"{RUNS_WAITING} runs wait for a person; decide some of them first")


def _full(message: str) -> Problem:
    return Problem(429, "too_many_runs", message, headers={"retry-after": "5"})

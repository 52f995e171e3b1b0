"""Runs: started, queued, steered, cancelled, retried, decided; what they printed and changed.

A person who grants a rule with one click must have seen the rule: so it is worked out here by what
grants it, and never by whoever shows it. That there is none is an answer and no refusal.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from typing import Any, Final, Literal, TypeVar

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import RECENT_REQUESTS, RUNS_WAITING
from factwire.edge.operations import outside_facts, thread_operations, worktree_operations
from factwire.edge.operations.worktree_operations import TaskWorktree
from factwire.edge.private_threads import IsPrivate
from factwire.edge.records.thread_records import bare_id, find_row, own_key
from factwire.facts import InputPart, Person
from factwire.facts.resources import (
    RUN_ENDS,
    Approval,
    DecisionCard,
    GrantedRule,
    Page,
    QueuedRun,
    RuleMatch,
    Run,
    RunDiff,
    RunProcess,
    RunWorktree,
    StandingRule,
)
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.projection import ProjectionState
from factwire.projection.coding import Process
from factwire.runtime import RuntimeRefused
from factwire.runtime.errors import WorkspaceNotAllowed
from factwire.runtime.mint import run_of
from factwire.runtime.policy import read_command
from factwire.runtime.processes import LogUnavailable
from factwire.runtime.processes.limits import LOG_READ_BYTES
from factwire.runtime.processes.process_spec import Stream
from factwire.runtime.runtime import build_proposal
from factwire.runtime.sandbox import WorkspaceDiff, diff_workspace
from factwire.runtime.submissions import HELD, SteerReceipt
from factwire.runtime.thread_states import ThreadStates
from factwire.serving.asgi import Problem
from factwire.serving.streams import FeedStopped

REFUSAL_STATUSES: Final[dict[str, tuple[int, str]]] = {
    "unknown_agent": (400, "unknown_agent"),
    "unknown_decision": (400, "unknown_decision"),
    "workspace_not_allowed": (403, "workspace_not_allowed"),
    "unknown_turn": (404, "unknown_run"),
    "unknown_action": (404, "unknown_approval"),
    "unknown_standing_rule": (404, "unknown_standing_rule"),
    "turn_already_active": (409, "active_run_exists"),
    "thread_elsewhere": (409, "thread_owned_elsewhere"),
    "turn_not_active": (409, "run_not_active"),
    "steer_unsupported": (409, "steer_unsupported"),
    "steer_too_long": (413, "steer_too_long"),
    "action_already_decided": (409, "approval_decided"),
    "action_changed": (409, "approval_changed"),
    "action_not_shown": (409, "approval_not_shown"),
    "action_expired": (410, "approval_expired"),
    "queue_full": (429, "queue_full"),
    "too_many_turns": (429, "too_many_runs"),
    "runtime_closing": (503, "edge_stopping"),
}
"""Code of the runtime's → status and code of the Edge's; any other is a 409 with its own code."""

_ENDED: Final = RUN_ENDS


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is asked to do."""

    turn_id: str
    thread_id: str
    agent_id: str
    prompt: str
    input: tuple[InputPart, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    work_dir: str | None = None
    worktree: bool | TaskWorktree | None = None
    when_busy: Literal["queue", "refuse"] = "queue"
    trace_id: str | None = None
    by: Person | None = None


@contextmanager
def translate_refusals() -> Generator[None]:
    """What a runtime refuses, as the problem that it is for a client."""
    try:
        yield
    except RuntimeRefused as error:
        status, code = REFUSAL_STATUSES.get(error.code, (409, error.code))
        raise Problem(status, code, str(error)) from error


async def start_run(edge: EdgeContext, new: NewRun) -> Run:
    """Start a run, or queue it; one that was asked for before is only told again."""
    thread = edge.find_own_thread(new.thread_id)
    if thread.status == "archived":
        raise Problem(409, "thread_archived", "the thread is archived; restore it first")
    folder = new.work_dir
    if folder is None and thread.project_id is not None:
        project = edge.records.projects.get(thread.project_id)
        folder = project.work_dir if project is not None else None
    with translate_refusals():
        edge.registered.agent(new.agent_id)
        async with _prepare_folder(edge, new, folder) as (place, worktree):
            await edge.runtime.submit(
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
                by=new.by,
                when_busy=new.when_busy,
                when_full="refuse",
            )
    await edge.wait_until_settled()
    return find_run(edge, run_of(new.turn_id))


@asynccontextmanager
async def _prepare_folder(
    edge: EdgeContext, new: NewRun, folder: str | None
) -> AsyncGenerator[tuple[str | None, dict[str, str] | None]]:
    """Where a run works, and what is to be told of its worktree, if it has one."""
    run_id = run_of(new.turn_id)
    wanted = edge.own_worktree if new.worktree is None else new.worktree
    if not wanted or edge.records.runs.get(run_id) is not None:
        yield folder, None
        return
    source = folder or str(edge.runtime.workspace)
    if isinstance(wanted, TaskWorktree):
        async with worktree_operations.choose_folder(
            edge, run_id, new.thread_id, source, wanted
        ) as chosen:
            yield chosen
        return
    async with worktree_operations.make_worktree(edge, run_id, source) as made:
        yield made.path, worktree_operations.describe_worktree(made)


async def steer_active_run(
    edge: EdgeContext,
    thread_id: str,
    prompt: str,
    parts: tuple[InputPart, ...],
    *,
    steer_id: str,
    by: Person,
) -> SteerReceipt:
    """Say something to the run that is under way; what became of it."""
    edge.find_own_thread(thread_id)
    with translate_refusals():
        steered = await edge.runtime.steer(thread_id, prompt, input=parts, steer_id=steer_id, by=by)
    await edge.wait_until_settled()
    return steered


async def request_cancel(edge: EdgeContext, run_id: str, reason: str, by: Person) -> Run:
    """Ask a run to stop; it may take a while, and its facts tell when it has."""
    run = find_run(edge, run_id)
    if run.status in _ENDED:
        if run.status == "cancelled":
            return run
        raise Problem(409, "run_ended", f"the run is already {run.status}")
    thread = edge.find_own_thread(run.thread_id or "")
    cancelling = asyncio.ensure_future(
        edge.runtime.cancel(thread.thread_id, run.turn_id, reason, by=by)
    )
    _CANCELLING.add(cancelling)
    cancelling.add_done_callback(_CANCELLING.discard)
    # What is refused is refused at once; whoever asked need not wait for an agent to stop.
    await asyncio.wait({cancelling}, timeout=_HEARD_SECONDS)
    if cancelling.done():
        with translate_refusals():
            cancelling.result()
    await edge.wait_until_settled()
    return edge.records.runs.get(run.run_id) or run


_CANCELLING: Final[set[asyncio.Future[str]]] = set()
_HEARD_SECONDS: Final = 0.2


async def retry_ended_run(
    edge: EdgeContext, run_id: str, by: Person, trace_id: str | None = None
) -> Run:
    """Run what ended once more, as a run of its own that names the old one."""
    run = find_run(edge, run_id)
    if run.status not in _ENDED:
        raise Problem(409, "active_run_exists", "the run has not ended; cancel it first")
    thread = edge.find_own_thread(run.thread_id or "")
    with translate_refusals():
        submitted = await edge.runtime.retry(
            thread.thread_id, run.turn_id, trace_id=trace_id, by=by
        )
    await edge.wait_until_settled()
    return find_run(edge, run_of(submitted.turn_id))


async def decide_approval(
    edge: EdgeContext,
    run_id: str,
    approval_id: str,
    decision: Literal["allow", "deny"],
    *,
    by: Person,
    reason: str | None,
    args_hash: str,
    always: Literal["thread", "workspace"] | None,
    expires_in: float | None,
    response: Any,
) -> Approval:
    """Decide what a run waits for. An approval of another run is none of this one's."""
    approval = find_row(edge.records.approvals, approval_id)
    if approval is None or not _is_asked_by(edge, approval, run_id):
        raise Problem(404, "unknown_approval", "this run has no approval with this id")
    thread = edge.find_thread(approval.thread_id or "")
    if thread.runtime_id != edge.mint.runtime_id:
        decided = outside_facts.OutsideDecision(
            decision=decision, by=by, reason=reason, args_hash=args_hash, response=response
        )
        if always is not None:
            edge.find_own_thread(thread.thread_id)
        return await outside_facts.decide_approval(edge, approval, decided)
    with translate_refusals():
        await edge.runtime.decide(
            thread.thread_id,
            bare_id(approval, approval.approval_id),
            decision,
            by=by,
            reason=reason,
            args_hash=args_hash,
            response=response,
            always=always,
            expires_in=expires_in,
        )
    await edge.wait_until_settled()
    return edge.records.approvals.get(approval.approval_id) or approval


def _is_asked_by(edge: EdgeContext, approval: Approval, run_id: str) -> bool:
    """Whether an id names the run that asks, which has no row where nothing else is known of it."""
    run = find_row(edge.records.runs, run_id)
    if run is not None or approval.run_id is None:
        return run is not None and approval.run_id == run.run_id
    own = own_key(approval.thread_id, bare_id(approval, approval.run_id))
    return run_id in (approval.run_id, own)


def find_run(edge: EdgeContext, run_id: str) -> Run:
    """A run; raises `Problem`."""
    return edge.find_run(run_id)


def find_approval(edge: EdgeContext, approval_id: str) -> Approval:
    """An approval; raises `Problem`."""
    row = find_row(edge.records.approvals, approval_id)
    if row is None:
        raise Problem(404, "unknown_approval", "no approval has this id")
    return row


async def read_card(edge: EdgeContext, approval_id: str) -> DecisionCard:
    """Exactly what an approval is about; raises `Problem`."""
    approval = find_approval(edge, approval_id)
    thread = edge.find_thread(approval.thread_id or "")
    if thread.runtime_id != edge.mint.runtime_id:
        return await outside_facts.build_outside_card(edge, approval)
    with translate_refusals():
        card = await edge.runtime.read_card(
            thread.thread_id, bare_id(approval, approval.approval_id)
        )
    return msgspec.structs.replace(card, request_id=approval.approval_id)


async def wait_for_approval(edge: EdgeContext, approval_id: str, seconds: float) -> Approval:
    """An approval once it is decided, or as it is after so many seconds; raises `Problem`."""
    return await _wait_for_row(
        edge, lambda: find_approval(edge, approval_id), lambda row: row.status != "pending", seconds
    )


async def wait_for_run(edge: EdgeContext, run_id: str, seconds: float) -> Run:
    """A run once it has ended, or as it is after so many seconds; raises `Problem`."""
    return await _wait_for_row(
        edge, lambda: find_run(edge, run_id), lambda row: row.status in _ENDED, seconds
    )


R = TypeVar("R")


async def _wait_for_row(
    edge: EdgeContext, find: Callable[[], R], is_final: Callable[[R], bool], seconds: float
) -> R:
    with suppress(TimeoutError, FeedStopped):
        async with asyncio.timeout(seconds):
            while not is_final(find()):
                await edge.feed.wait_for(edge.records.seq + 1)
    return find()


def choose_agent(edge: EdgeContext, thread_id: str, named: str | None, default: str | None) -> str:
    """Whom a message is for: who is named, else who answered last, else the configured one."""
    agent = named or edge.find_thread(thread_id).agent_id or default
    if agent is None:
        raise Problem(
            400,
            "agent_required",
            "name an agent: the thread has none yet, and no default is configured",
        )
    return agent


def check_project(edge: EdgeContext, project_id: str | None) -> str | None:
    """A project that is known, or none; raises `Problem`."""
    return (
        None if project_id is None else thread_operations.find_project(edge, project_id).project_id
    )


def ensure_capacity(edge: EdgeContext) -> None:
    """Raise `Problem` while as many runs work, or wait for a person, as may; nothing is made for
    one more.
    """
    runtime = edge.runtime
    most = runtime.settings.active_turns
    if runtime.active_turns >= most:
        message = f"{most} runs are active, the maximum set by `limits.concurrent_runs`; wait for "
        raise _too_many_runs(f"{message}one to end, or cancel one")
    if sum(thread.is_waiting for thread in runtime.live) >= RUNS_WAITING:
        raise _too_many_runs(
            f"{RUNS_WAITING} runs are waiting for decisions; decide some of them first"
        )


def _too_many_runs(message: str) -> Problem:
    return Problem(429, "too_many_runs", message, headers={"retry-after": "5"})


async def list_queue(edge: EdgeContext, thread_id: str) -> Page[QueuedRun]:
    """List the queued runs of a thread, next one first."""
    edge.find_own_thread(thread_id)
    return build_queue_page(edge, await edge.runtime.state(thread_id))


def build_queue_page(edge: EdgeContext, state: ProjectionState) -> Page[QueuedRun]:
    """The queued runs that the state of a thread has, next one first."""
    waiting = [
        QueuedRun(
            run_id=run_of(turn.queued_turn_id),
            prompt=turn.prompt,
            agent_id=turn.agent_id,
            status="held" if turn.status == HELD else "queued",
            held_at=turn.held_at,
            by=turn.by,
        )
        for turn in state.queue.turns
    ]
    return Page(items=waiting, as_of=str(edge.cursor))


async def promote_queued_run(
    edge: EdgeContext, thread_id: str, run_id: str, by: Person
) -> Page[QueuedRun]:
    turn_id = await _find_queued_turn(edge, thread_id, run_id)
    with translate_refusals():
        await edge.runtime.promote(thread_id, turn_id, by=by)
    return await _list_settled_queue(edge, thread_id)


async def release_queued_runs(
    edge: EdgeContext, thread_id: str, run_id: str | None, by: Person
) -> Page[QueuedRun]:
    """Go on after a stop: let a run that is held, or all of them, start in their order."""
    edge.find_own_thread(thread_id)
    turn_id = None if run_id is None else await _find_queued_turn(edge, thread_id, run_id)
    with translate_refusals():
        await edge.runtime.release(thread_id, turn_id, by=by)
    return await _list_settled_queue(edge, thread_id)


async def steer_queued_run(
    edge: EdgeContext, thread_id: str, run_id: str, by: Person
) -> Page[QueuedRun]:
    turn_id = await _find_queued_turn(edge, thread_id, run_id)
    with translate_refusals():
        await edge.runtime.steer_queued(thread_id, turn_id, by=by)
    return await _list_settled_queue(edge, thread_id)


async def remove_queued_run(
    edge: EdgeContext, thread_id: str, run_id: str, by: Person
) -> Page[QueuedRun]:
    turn_id = await _find_queued_turn(edge, thread_id, run_id)
    with translate_refusals():
        await edge.runtime.remove(thread_id, turn_id, by=by)
    return await _list_settled_queue(edge, thread_id)


async def _find_queued_turn(edge: EdgeContext, thread_id: str, run_id: str) -> str:
    edge.find_own_thread(thread_id)
    state = await edge.runtime.state(thread_id)
    for turn in state.queue.turns:
        if run_of(turn.queued_turn_id) == run_id:
            return turn.queued_turn_id
    raise Problem(404, "unknown_run", "no queued run of this thread has this id")


async def _list_settled_queue(edge: EdgeContext, thread_id: str) -> Page[QueuedRun]:
    await edge.wait_until_settled()
    return await list_queue(edge, thread_id)


_NOT_NOW: Final = 409


async def propose_standing_rule(
    edge: EdgeContext, approval_id: str, hidden: IsPrivate
) -> StandingRule:
    """The rule for an approval that waits, or why there is none; raises `Problem`. Earlier requests
    of hidden threads are left out.
    """
    approval = find_approval(edge, approval_id)
    try:
        return await _propose_rule(edge, approval, approval_id, hidden)
    except Problem as problem:
        if problem.status != _NOT_NOW:
            raise
        return StandingRule(approval_id=approval_id, code=problem.code, reason=problem.detail)


async def _propose_rule(
    edge: EdgeContext, approval: Approval, approval_id: str, hidden: IsPrivate
) -> StandingRule:
    if approval.status != "pending":
        raise Problem(_NOT_NOW, "approval_decided", f"the approval is already {approval.status}")
    row = edge.find_own_thread(approval.thread_id or "")
    with translate_refusals():
        thread = await edge.runtime.current(row.thread_id)
        bare = bare_id(approval, approval.approval_id)
        found = await build_proposal(edge.runtime, thread, bare)
    newest = islice(edge.records.approvals.newest(), RECENT_REQUESTS)
    rows = [row for row in newest if not hidden(row.thread_id)]
    return found.to_resource(approval_id, [(_EarlierRequest(row), _to_match(row)) for row in rows])


class _EarlierRequest:
    """An approval as the policy sees it: the command is in what was shown."""

    def __init__(self, row: Approval) -> None:
        self.tool_name = row.tool_name
        self.command = read_command(row.shown or "")
        self.cwd = row.cwd
        self.args_hash = row.args_hash


def _to_match(row: Approval) -> RuleMatch:
    return RuleMatch(
        approval_id=row.approval_id,
        created_at=row.created_at,
        thread_id=row.thread_id,
        summary=row.summary,
    )


async def list_standing_rules(edge: EdgeContext, hidden: IsPrivate) -> Page[GrantedRule]:
    """The rules that people granted on this Edge and that hold, newest first, but for those of
    hidden threads.
    """
    rules = await edge.runtime.list_standing_rules()
    shown = [rule for rule in reversed(rules) if not hidden(rule.thread_id)]
    return Page(items=shown, as_of=str(edge.cursor))


async def revoke_standing_rule(edge: EdgeContext, rule_id: str, by: Person) -> None:
    """Take a rule back; raises `Problem`."""
    with translate_refusals():
        await edge.runtime.revoke_standing_rule(rule_id, by=by)
    await edge.wait_until_settled()


LOG_BYTES: Final = LOG_READ_BYTES
"""Bytes of one read of a log."""


class LogBytes(msgspec.Struct, frozen=True):
    """Some bytes of one stream of one program."""

    process_id: str
    data: bytes


async def read_run_log(
    edge: EdgeContext,
    states: ThreadStates,
    run_id: str,
    *,
    process_id: str | None,
    stream: Stream,
    offset: int,
    limit: int,
) -> LogBytes:
    """Bytes of a log; of the newest program of the run, where none is named."""
    run = find_run(edge, run_id)
    processes = edge.runtime.resources.processes
    if processes is None or run.thread_id is None:
        raise Problem(404, "log_unavailable", "this Edge has no logs of that run")
    seen = await states.now(run.thread_id)
    known = [each.process_id for each in _run_processes(seen.projection.state, run)]
    chosen = process_id or (known[-1] if known else None)
    if chosen is None or chosen not in known:
        raise Problem(404, "log_unavailable", "no program of this run has a log")
    try:
        data = await processes.logs.read(chosen, stream, offset, limit)
    except LogUnavailable as error:
        raise Problem(404, "log_unavailable", str(error)) from error
    return LogBytes(chosen, data)


async def diff_run(edge: EdgeContext, run_id: str) -> RunDiff:
    """What a run changed, where it has a worktree; else what its folder has that its last commit
    has not.
    """
    run = find_run(edge, run_id)
    folder = run.work_dir or str(edge.runtime.workspace)
    if run.worktree is None:
        found = await diff_workspace(edge.runtime.workspaces.resolve(folder))
    else:
        found = await _worktree_diff(edge, run.worktree)
    return RunDiff(
        run_id=run_id,
        scope="workspace" if run.worktree is None else "run",
        available=found.available,
        reason=found.reason,
        base=found.base,
        tree=found.tree,
        files=found.files,
        truncated=found.truncated,
    )


async def _worktree_diff(edge: EdgeContext, worktree: RunWorktree) -> WorkspaceDiff:
    """What was changed since a worktree began, commits included: nothing that the run could have
    made of the worktree's own settings is looked at.
    """
    allowed = edge.runtime.workspaces
    try:
        place = await run_disk_work(allowed.resolve, worktree.path)
    except WorkspaceNotAllowed:
        return WorkspaceDiff(available=False, reason="worktree_removed")
    try:
        source = await run_disk_work(allowed.resolve, worktree.repository)
    except WorkspaceNotAllowed:
        return WorkspaceDiff(available=False, reason="repository_not_allowed")
    return await diff_workspace(place, repository=source, base=worktree.base)


async def list_processes(edge: EdgeContext, states: ThreadStates, run_id: str) -> Page[RunProcess]:
    """The programs of a run, as the projection of its thread has them."""
    run = find_run(edge, run_id)
    seen = await states.now(run.thread_id or "")
    found = [
        RunProcess(
            process_id=process.process_id,
            run_id=run_id,
            kind=process.kind,
            status=process.status,
            command=process.command,
            cwd=process.cwd,
            exit_code=process.exit_code,
            signal=process.signal,
            output_bytes=process.output_bytes,
            output_ref=process.output_ref,
            tool_call_id=process.tool_call_id,
            started_at=process.started_at,
            completed_at=process.completed_at,
        )
        for process in _run_processes(seen.projection.state, run)
    ]
    return Page(items=found, as_of=str(seen.cursor))


def _run_processes(state: ProjectionState, run: Run) -> list[Process]:
    """The programs of a run, in the order in which they were started."""
    return [process for process in state.processes.values() if process.turn_id == run.turn_id]

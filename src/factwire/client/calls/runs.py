"""Runs: asked for, watched, stopped; what they print, what they changed, what they wait for."""

from collections.abc import Mapping
from typing import Any, Literal

from factwire.client.address import path_of, query_of
from factwire.client.call import Answer, Call, delete, get, given, json, nothing, post
from factwire.client.calls.threads import Input
from factwire.client.resources import (
    Approval,
    ApprovalStatus,
    LogPiece,
    Page,
    Run,
    RunDiff,
    RunStatus,
    StandingRule,
)


def runs(
    *,
    thread_id: str | None = None,
    project_id: str | None = None,
    status: RunStatus | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[Run]]:
    """Runs, newest first."""
    query = query_of(
        thread_id=thread_id, project_id=project_id, status=status, cursor=cursor, limit=limit
    )
    return get(path_of("runs"), json(Page[Run]), query)


def start_run(
    agent_id: str,
    prompt: str,
    *,
    thread_id: str | None = None,
    project_id: str | None = None,
    title: str | None = None,
    work_dir: str | None = None,
    worktree: bool | None = None,
    input: Input | None = None,  # noqa: A002 - the name of the contract
    options: Mapping[str, Any] | None = None,
    when_busy: Literal["queue", "refuse"] = "queue",
) -> Call[Run]:
    """Start a run on a thread, or without one on a fresh thread; in a git worktree of its own, if
    `worktree` says so or the Edge's configuration does.
    """
    body = given(
        agentId=agent_id,
        prompt=prompt,
        threadId=thread_id,
        projectId=project_id,
        title=title,
        workDir=work_dir,
        worktree=worktree,
        input=input,
        options=options,
        whenBusy=when_busy,
    )
    return post(path_of("runs"), json(Run), body)


def run(run_id: str) -> Call[Run]:
    """One run."""
    return get(path_of("runs", run_id), json(Run))


def cancel_run(run_id: str, *, reason: str | None = None) -> Call[Run]:
    """Ask a run to stop; events tell when it has."""
    return post(f"{path_of('runs', run_id)}:cancel", json(Run), given(reason=reason))


def retry_run(run_id: str) -> Call[Run]:
    """Run what ended once more, as a run of its own."""
    return post(f"{path_of('runs', run_id)}:retry", json(Run))


def log(
    run_id: str,
    *,
    stream: Literal["stdout", "stderr"] = "stdout",
    offset: int = 0,
    limit: int | None = None,
    process_id: str | None = None,
) -> Call[LogPiece]:
    """Bytes of what a program of a run printed; of its newest program, where none is named."""
    query = query_of(stream=stream, offset=offset, limit=limit, process_id=process_id)
    return get(path_of("runs", run_id, "logs"), _piece, query)


def diff(run_id: str) -> Call[RunDiff]:
    """What is different in the folder of a run from its last commit."""
    return get(path_of("runs", run_id, "diff"), json(RunDiff))


def delete_worktree(run_id: str) -> Call[None]:
    """Remove the worktree of a run that has ended, with whatever it holds."""
    return delete(path_of("runs", run_id, "worktree"), nothing)


def approvals(
    *,
    status: ApprovalStatus | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[Approval]]:
    """What waits for a person, and what was decided; newest first."""
    query = query_of(status=status, thread_id=thread_id, run_id=run_id, cursor=cursor, limit=limit)
    return get(path_of("approvals"), json(Page[Approval]), query)


def standing_rule(approval_id: str) -> Call[StandingRule]:
    """The rule that `always` would grant for what waits, or why there is none."""
    return get(path_of("approvals", approval_id, "standing-rule"), json(StandingRule))


def decide(
    run_id: str,
    approval_id: str,
    decision: Literal["allow", "deny"],
    *,
    reason: str | None = None,
    args_hash: str | None = None,
    always: Literal["thread", "workspace"] | None = None,
    response: Any = None,
) -> Call[Approval]:
    """Decide what a run waits for, once; `args_hash` binds it to what was shown."""
    body = given(
        runId=run_id,
        requestId=approval_id,
        decision=decision,
        reason=reason,
        argsHash=args_hash,
        always=always,
        response=response,
    )
    return post(path_of("permissions", "decide"), json(Approval), body)


def _piece(answer: Answer) -> LogPiece:
    return LogPiece(
        process_id=answer.headers["x-process-id"],
        offset=int(answer.headers["x-offset"]),
        next_offset=int(answer.headers["x-next-offset"]),
        data=answer.body,
    )

"""`factwire approve`, `deny`, `cancel`, `steer`, `queue`: sent to a runtime, or to the journal.

With `--edge`, an Edge is asked. Else a runtime that runs gets it by its control channel. Where none
does, the answer is written into the journal, and the turn goes on from it when somebody resumes it.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from factwire.cli.targets import (
    EdgeOption,
    JournalOption,
    WorkspaceOption,
    edge_client,
    edge_url,
    run_work,
)
from factwire.cli.terminal import DONE, ISSUES, CliError, terminal_safe

if TYPE_CHECKING:
    from factwire.cli.command_context import CommandContext
    from factwire.runtime import Runtime
    from factwire.runtime.control import ControlReply, ControlRequest, QueueReply


Action = Annotated[str, typer.Argument(metavar="ACTION", help="The id of the open action.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept with the decision.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def approve(
    action: Action,
    *,
    reason: Reason = None,
    always: Annotated[
        str | None,
        typer.Option(
            metavar="thread|workspace",
            help="Allow this pattern from now on: on this thread, or in this workspace.",
        ),
    ] = None,
    edge: EdgeOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Allow what an open action asks for, from wherever you are.

    Exit code 0: it is allowed. 1: refused, with a code: unknown_action, action_already_decided,
    action_expired. 2: nobody could be asked.
    """
    from factwire.runtime.control import DecideRequest

    if always not in (None, "thread", "workspace"):
        raise CliError(f"--always takes thread or workspace, not {terminal_safe(always)}")
    request = DecideRequest(action_id=action, decision="approve", reason=reason, always=always)
    run_work(_send(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


def deny(
    action: Action,
    *,
    reason: Reason = None,
    edge: EdgeOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Deny what an open action asks for; the agent is told and goes on without it."""
    from factwire.runtime.control import DecideRequest

    request = DecideRequest(action_id=action, decision="deny", reason=reason)
    run_work(_send(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


def cancel(
    target: Annotated[
        str, typer.Argument(metavar="TURN|THREAD", help="A turn, or the thread that it runs on.")
    ],
    *,
    reason: Reason = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also one that another runtime claims; be sure it is gone."),
    ] = False,
    edge: EdgeOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Stop a turn that runs, close one that was left behind, or take one out of its queue."""
    from factwire.runtime.control import CancelRequest

    request = CancelRequest(target=target, reason=reason, take_over=force)
    run_work(_send(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


def steer(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread with the turn.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What to say to it.")] = None,
    *,
    turn: Annotated[
        str | None,
        typer.Option(metavar="TURN", help="Say what this queued turn was to be asked, instead."),
    ] = None,
    queue_it: Annotated[
        bool, typer.Option("--queue", help="Where it cannot be steered, make it the next turn.")
    ] = False,
    edge: EdgeOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Say something to the turn that runs on a thread; its agent takes it between two steps.

    What the turn never takes is the next turn. Exit code 1: refused, with a code: turn_not_active,
    steer_unsupported, steer_too_long, queue_full.
    """
    from factwire.runtime.control import SteerRequest

    if (text is None) == (turn is None):
        raise CliError("give a text, or with --turn a queued turn")
    request = SteerRequest(thread_id=thread, text=text or "", queued_turn_id=turn, queue=queue_it)
    run_work(_send(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


def queue(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread.")],
    *,
    promote: Annotated[
        str | None, typer.Option(metavar="TURN", help="Let this turn go first.")
    ] = None,
    remove: Annotated[
        str | None, typer.Option(metavar="TURN", help="Take this turn out; it never runs.")
    ] = None,
    edge: EdgeOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """List the turns that wait on a thread, the next one first, and change their order."""
    from factwire.runtime.control import QueueRequest

    request = QueueRequest(thread_id=thread, promote=promote, remove=remove)
    run_work(_send(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


async def _send(
    request: "ControlRequest",
    edge: str | None,
    journal: JournalOption,
    workspace: WorkspaceOption,
    *,
    as_json: bool,
) -> int:
    from factwire.cli.command_context import load_context
    from factwire.runtime.control import ControlRefusal

    if edge is not None:
        answer, at_rest = await _ask_edge(edge, request), False
    else:
        where = await asyncio.to_thread(load_context, journal=journal, workspace=workspace)
        answer, at_rest = await _ask_here(where, request)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    elif isinstance(answer, ControlRefusal):
        raise CliError(f"{answer.code}: {terminal_safe(answer.message)}", ISSUES)
    else:
        _show(answer, at_rest=at_rest)
    return ISSUES if isinstance(answer, ControlRefusal) else DONE


async def _ask_edge(edge: str, request: "ControlRequest") -> "ControlReply":
    async with edge_client(edge) as client:
        from factwire.cli.over_edge import ask_edge

        return await ask_edge(client, request)


async def _ask_here(
    where: "CommandContext", request: "ControlRequest"
) -> "tuple[ControlReply, bool]":
    """The answer, and whether it was only written down because nobody runs the turn."""
    from factwire.cli.action_prompts import this_user
    from factwire.cli.local_runtime import open_without_agents
    from factwire.journal import JournalBusy
    from factwire.runtime.control import (
        ControlError,
        ControlRefusal,
        NobodyRunning,
        SteerRequest,
        answer_request,
        send_request,
    )

    refused: ControlRefusal | None = None
    try:
        response = await send_request(where.configuration.data, request)
        if not isinstance(response, ControlRefusal) or not response.code.startswith("unknown_"):
            return response, False
        refused = response
    except NobodyRunning:
        pass
    except ControlError as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error
    if isinstance(request, SteerRequest):
        # Nobody is there who could hear it.
        message = f"no turn runs on thread {request.thread_id}; factwire resume starts the next one"
        return refused or ControlRefusal(code="turn_not_active", message=message), False
    try:
        async with open_without_agents(where) as runtime:
            response = await answer_request(runtime, request, by=this_user())
            return response, await _is_left_behind(runtime, response)
    except CliError as error:
        # The one that holds the journal has said that it does not know.
        if refused is not None and isinstance(error.__cause__, JournalBusy):
            return refused, False
        raise


async def _is_left_behind(runtime: "Runtime", answer: "ControlReply") -> bool:
    from factwire.runtime.control import DecideReply
    from factwire.runtime.recovery import find_abandoned_turn

    if not isinstance(answer, DecideReply):
        return False
    return find_abandoned_turn(await runtime.thread(answer.thread_id)) is not None


def _show(answer: "ControlReply", *, at_rest: bool) -> None:
    from factwire.runtime.control import CancelReply, DecideReply, QueueReply, SteerReply

    console = Console(highlight=False, soft_wrap=True)
    if isinstance(answer, DecideReply):
        by = f" by {terminal_safe(answer.decided_by)}" if answer.decided_by else ""
        console.print(
            f"{terminal_safe(answer.decision)}{by}: {terminal_safe(answer.action_id)}", markup=False
        )
    elif isinstance(answer, CancelReply):
        console.print(f"canceled: {terminal_safe(answer.turn_id)}", markup=False)
    elif isinstance(answer, SteerReply):
        console.print(
            f"{terminal_safe(answer.status)}: {terminal_safe(answer.steer_id)}", markup=False
        )
    elif isinstance(answer, QueueReply):
        _show_queue(console, answer)
    if at_rest and isinstance(answer, DecideReply):
        thread = terminal_safe(answer.thread_id)
        console.print(f"nobody runs it now; go on with: factwire resume {thread}", markup=False)


def _show_queue(console: Console, queued: "QueueReply") -> None:
    for turn in queued.turns:
        words = [turn.status or "queued", turn.turn_id, turn.agent_id or "", turn.prompt]
        line = "  ".join(terminal_safe(word) for word in words if word)
        when = f"  not before {terminal_safe(turn.not_before)}" if turn.not_before else ""
        console.print(f"{line}{when}", markup=False)
    if not queued.turns:
        console.print("nothing waits", markup=False)

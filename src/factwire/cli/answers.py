"""`factwire approve`, `deny`, `cancel`, `steer`, `queue`: said to a runtime, or to the journal.

With `--edge`, an Edge is asked. Else a runtime that runs is told by its control channel. Where none
does, the answer is written into the journal, and the turn goes on from it when somebody resumes it.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from factwire.cli.edge.target import EdgeOption, edge_client, edge_url
from factwire.cli.failures import DONE, ISSUES, CliError
from factwire.cli.journal.access import run as run_work
from factwire.cli.run.options import JournalOption, WorkspaceOption
from factwire.cli.terminal_text import harmless

if TYPE_CHECKING:
    from factwire.cli.run.place import Place
    from factwire.runtime import Runtime
    from factwire.runtime.control import Answer, Queued, Request

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
    from factwire.runtime.control import Decide

    if always not in (None, "thread", "workspace"):
        raise CliError(f"--always takes thread or workspace, not {harmless(always)}")
    request = Decide(action_id=action, decision="approve", reason=reason, always=always)
    run_work(_say(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


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
    from factwire.runtime.control import Decide

    request = Decide(action_id=action, decision="deny", reason=reason)
    run_work(_say(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


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
    from factwire.runtime.control import Cancel

    request = Cancel(target=target, reason=reason, take_over=force)
    run_work(_say(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


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
    from factwire.runtime.control import Steer

    if (text is None) == (turn is None):
        raise CliError("give a text, or with --turn a queued turn")
    request = Steer(thread_id=thread, text=text or "", queued_turn_id=turn, queue=queue_it)
    run_work(_say(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


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
    from factwire.runtime.control import Queue

    request = Queue(thread_id=thread, promote=promote, remove=remove)
    run_work(_say(request, edge_url(edge, journal), journal, workspace, as_json=as_json))


async def _say(
    request: "Request",
    edge: str | None,
    journal: JournalOption,
    workspace: WorkspaceOption,
    *,
    as_json: bool,
) -> int:
    from factwire.cli.run.place import place
    from factwire.runtime.control import Refused

    if edge is not None:
        said, at_rest = await _answered_by(edge, request), False
    else:
        where = await asyncio.to_thread(place, journal=journal, workspace=workspace)
        said, at_rest = await _answered(where, request)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    elif isinstance(said, Refused):
        raise CliError(f"{said.code}: {harmless(said.message)}", ISSUES)
    else:
        _show(said, at_rest=at_rest)
    return ISSUES if isinstance(said, Refused) else DONE


async def _answered_by(edge: str, request: "Request") -> "Answer":
    async with edge_client(edge) as client:
        from factwire.cli.edge.asking import ask_edge

        return await ask_edge(client, request)


async def _answered(where: "Place", request: "Request") -> "tuple[Answer, bool]":
    """The answer, and whether it was only written down because nobody runs the turn."""
    from factwire.cli.run.answering import this_user
    from factwire.cli.run.opening import resting
    from factwire.journal import JournalBusy
    from factwire.runtime.control import ControlError, NobodyRunning, Refused, Steer, answer, ask

    refused: Refused | None = None
    try:
        said = await ask(where.configuration.data, request)
        if not isinstance(said, Refused) or not said.code.startswith("unknown_"):
            return said, False
        refused = said
    except NobodyRunning:
        pass
    except ControlError as error:
        raise CliError(f"{error.code}: {harmless(str(error))}") from error
    if isinstance(request, Steer):
        # Nobody is there who could hear it.
        message = f"no turn runs on thread {request.thread_id}; factwire resume starts the next one"
        return refused or Refused(code="turn_not_active", message=message), False
    try:
        async with resting(where) as runtime:
            said = await answer(runtime, request, by=this_user())
            return said, await _is_left(runtime, said)
    except CliError as error:
        # The one that holds the journal has said that it does not know.
        if refused is not None and isinstance(error.__cause__, JournalBusy):
            return refused, False
        raise


async def _is_left(runtime: "Runtime", said: "Answer") -> bool:
    from factwire.runtime.control import Decided
    from factwire.runtime.recovery import left_behind

    if not isinstance(said, Decided):
        return False
    return left_behind(await runtime.thread(said.thread_id)) is not None


def _show(said: "Answer", *, at_rest: bool) -> None:
    from factwire.runtime.control import Canceled, Decided, Queued, SteerSaid

    console = Console(highlight=False, soft_wrap=True)
    if isinstance(said, Decided):
        by = f" by {harmless(said.decided_by)}" if said.decided_by else ""
        console.print(f"{harmless(said.decision)}{by}: {harmless(said.action_id)}", markup=False)
    elif isinstance(said, Canceled):
        console.print(f"canceled: {harmless(said.turn_id)}", markup=False)
    elif isinstance(said, SteerSaid):
        console.print(f"{harmless(said.status)}: {harmless(said.steer_id)}", markup=False)
    elif isinstance(said, Queued):
        _show_queue(console, said)
    if at_rest and isinstance(said, Decided):
        thread = harmless(said.thread_id)
        console.print(f"nobody runs it now; go on with: factwire resume {thread}", markup=False)


def _show_queue(console: Console, said: "Queued") -> None:
    for turn in said.turns:
        words = [turn.status or "queued", turn.turn_id, turn.agent_id or "", turn.prompt]
        line = "  ".join(harmless(word) for word in words if word)
        when = f"  not before {harmless(turn.not_before)}" if turn.not_before else ""
        console.print(f"{line}{when}", markup=False)
    if not said.turns:
        console.print("nothing waits", markup=False)

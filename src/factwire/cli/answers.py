"""`factwire approve`, `deny` and `cancel`: said to the runtime that runs, or to the journal.

A runtime that runs is told by its control channel. Where none does, the answer is written into the
journal, and the turn goes on from it when somebody resumes it.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from factwire.cli.failures import DONE, ISSUES, CliError
from factwire.cli.journal.access import run as run_work
from factwire.cli.run.options import JournalOption, WorkspaceOption
from factwire.cli.terminal_text import harmless

if TYPE_CHECKING:
    from factwire.cli.run.place import Place
    from factwire.runtime import Runtime
    from factwire.runtime.control import Answer, Request

Action = Annotated[str, typer.Argument(metavar="ACTION", help="The id of the open action.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept with the decision.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def approve(
    action: Action,
    *,
    reason: Reason = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Allow what an open action asks for, from wherever you are.

    Exit code 0: it is allowed. 1: refused, with a code: unknown_action, action_already_decided,
    action_expired. 2: nobody could be asked.
    """
    from factwire.runtime.control import Decide

    request = Decide(action_id=action, decision="approve", reason=reason)
    run_work(_say(request, journal, workspace, as_json=as_json))


def deny(
    action: Action,
    *,
    reason: Reason = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Deny what an open action asks for; the agent is told and goes on without it."""
    from factwire.runtime.control import Decide

    request = Decide(action_id=action, decision="deny", reason=reason)
    run_work(_say(request, journal, workspace, as_json=as_json))


def cancel(
    target: Annotated[
        str, typer.Argument(metavar="TURN|THREAD", help="A turn, or the thread that it runs on.")
    ],
    *,
    reason: Reason = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Stop a turn that runs, close one that was left behind, or take one out of its queue."""
    from factwire.runtime.control import Cancel

    request = Cancel(target=target, reason=reason)
    run_work(_say(request, journal, workspace, as_json=as_json))


async def _say(
    request: "Request",
    journal: JournalOption,
    workspace: WorkspaceOption,
    *,
    as_json: bool,
) -> int:
    from factwire.cli.run.place import place
    from factwire.runtime.control import Refused

    where = await asyncio.to_thread(place, journal=journal, workspace=workspace)
    said, at_rest = await _answered(where, request)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    elif isinstance(said, Refused):
        raise CliError(f"{said.code}: {harmless(said.message)}", ISSUES)
    else:
        _show(said, at_rest=at_rest)
    return ISSUES if isinstance(said, Refused) else DONE


async def _answered(where: "Place", request: "Request") -> "tuple[Answer, bool]":
    """The answer, and whether it was only written down because nobody runs the turn."""
    from factwire.cli.run.answering import this_user
    from factwire.cli.run.opening import resting
    from factwire.journal import JournalBusy
    from factwire.runtime.control import ControlError, NobodyRunning, Refused, answer, ask

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
    from factwire.runtime.control import Canceled, Decided

    console = Console(highlight=False, soft_wrap=True)
    if isinstance(said, Decided):
        by = f" by {harmless(said.decided_by)}" if said.decided_by else ""
        console.print(f"{harmless(said.decision)}{by}: {harmless(said.action_id)}", markup=False)
    elif isinstance(said, Canceled):
        console.print(f"canceled: {harmless(said.turn_id)}", markup=False)
    if at_rest and isinstance(said, Decided):
        thread = harmless(said.thread_id)
        console.print(f"nobody runs it now; go on with: factwire resume {thread}", markup=False)

"""`factwire resume`: a thread, and whatever waits on it."""

from typing import Annotated

import typer

from factwire.cli.journal.access import run as run_work
from factwire.cli.run.options import JournalOption, WorkspaceOption


def resume(
    thread: Annotated[str, typer.Argument(help="The thread; factwire threads lists them.")],
    prompt: Annotated[
        str | None, typer.Argument(help="What to do next; without it, only what waits goes on.")
    ] = None,
    *,
    agent: Annotated[
        str | None, typer.Option(help="The agent for the prompt; the thread's last one if not.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run the last turn once more, if it did not complete.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Take over what another runtime claims; be sure it is gone."),
    ] = False,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts as they become durable (NDJSON).")
    ] = False,
) -> None:
    """Show where a thread stands and go on: wait for its open approval, start what is queued.

    A turn that ran when its process died is closed first; --retry runs it again. The exit code is
    that of the last turn, as for factwire run.
    """
    from factwire.cli.run.continuing import Next, carry_on
    from factwire.cli.run.place import AgentFlags, place

    wanted = Next(thread=thread, prompt=prompt, agent=agent, retry=retry, force=force)
    flags = AgentFlags(name=agent) if agent else None
    where = place(journal=journal, workspace=workspace, agent=flags)
    run_work(carry_on(where, wanted, as_json=as_json))

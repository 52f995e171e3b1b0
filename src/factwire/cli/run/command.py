"""`factwire run`: one turn of an agent, seen as it happens."""

from typing import Annotated

import typer

from factwire.cli.journal.access import run as run_work
from factwire.cli.run.options import JournalOption, WorkspaceOption


def run(
    agent: Annotated[str, typer.Argument(help="The agent; factwire doctor lists them.")],
    prompt: Annotated[str, typer.Argument(help="What it shall do.")],
    *,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this thread; a new one if not.")
    ] = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model, for agents that take one.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the model is served.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="MODE", help="default, acceptEdits, plan or dontAsk."),
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Allow this; may be repeated.")
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Ask about this; may be repeated.")
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Deny this; may be repeated.")
    ] = None,
    sandbox: Annotated[
        str | None, typer.Option(metavar="MODE", help="off, prefer or require.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts as they become durable (NDJSON).")
    ] = False,
) -> None:
    """Run one turn of an agent and watch it: answer, tools, output, and what waits for you.

    Approvals are asked here, or answered from another terminal with factwire approve and deny.
    Ctrl-C cancels the turn, twice quits at once. Exit code 0: completed. 1: failed. 2: it could not
    start. 130: cancelled.
    """
    from factwire.cli.run.place import AgentFlags, Rules, place
    from factwire.cli.run.turn import Asked, run_turn

    where = place(
        journal=journal,
        workspace=workspace,
        mode=policy,
        sandbox=sandbox,
        rules=Rules(allow=allow or (), ask=ask or (), deny=deny or ()),
        agent=AgentFlags(name=agent, model=model, base_url=base_url),
    )
    run_work(run_turn(where, Asked(agent=agent, prompt=prompt, thread=thread), as_json=as_json))

"""`factwire run`: one turn of an agent, seen as it happens."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from factwire.cli.edge.target import EdgeOption, edge_url
from factwire.cli.failures import CliError
from factwire.cli.journal.access import run as run_work
from factwire.cli.run.options import JournalOption, WorkspaceOption

if TYPE_CHECKING:
    from factwire.cli.run.turn import Asked


def run(
    agent: Annotated[str, typer.Argument(help="The agent; factwire doctor lists them.")],
    prompt: Annotated[str, typer.Argument(help="What it shall do.")],
    *,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this thread; a new one if not.")
    ] = None,
    edge: EdgeOption = None,
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

    asked = Asked(agent=agent, prompt=prompt, thread=thread)
    url = edge_url(edge, journal)
    if url is not None:
        decided = {"--model": model, "--base-url": base_url, "--policy": policy}
        decided |= {"--sandbox": sandbox, "--allow": allow, "--ask": ask, "--deny": deny}
        _ensure_its_own(decided)
        _run_over_edge(url, asked, workspace, as_json=as_json)
    where = place(
        journal=journal,
        workspace=workspace,
        mode=policy,
        sandbox=sandbox,
        rules=Rules(allow=allow or (), ask=ask or (), deny=deny or ()),
        agent=AgentFlags(name=agent, model=model, base_url=base_url),
    )
    run_work(run_turn(where, asked, as_json=as_json))


def _ensure_its_own(given: Mapping[str, object]) -> None:
    named = ", ".join(name for name, value in given.items() if value)
    if named:
        raise CliError(
            f"{named}: the Edge decides this by its own configuration; leave it out, or work here "
            "without --edge and FACTWIRE_EDGE"
        )


def _run_over_edge(url: str, asked: "Asked", workspace: Path | None, *, as_json: bool) -> NoReturn:
    try:
        from factwire.cli.run.over_edge import run_over_edge
    except ImportError as error:
        raise CliError(f"missing_extra: {error}") from error

    folder = None if workspace is None else str(workspace.resolve())
    run_work(run_over_edge(url, asked, folder, as_json=as_json))

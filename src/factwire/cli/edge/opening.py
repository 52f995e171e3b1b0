"""`factwire open`: the workbench of the Edge on this machine, signed in.

The Edge left the way in when it started, in its data folder; the browser gets the name of that
file, and so no list of processes ever shows the token.
"""

import webbrowser
from pathlib import Path
from typing import Annotated, Final
from urllib.request import ProxyHandler, build_opener

import typer

from factwire.cli.edge.target import data_folder
from factwire.cli.failures import CliError
from factwire.cli.terminal_text import harmless

_PATIENCE_SECONDS: Final = 5.0


def open_workbench(
    *,
    data: Annotated[
        Path | None, typer.Option(help="The Edge's data folder; the configured one if not given.")
    ] = None,
    show: Annotated[
        bool,
        typer.Option("--print", help="Print the link, which holds the token, and open nothing."),
    ] = False,
) -> None:
    """Open the workbench in your browser, signed in.

    Works for an Edge of this machine that made its own token. Exit code 2: no Edge answers, or no
    browser can be opened.
    """
    from factwire.edge.workbench.entrance import FILE_NAME, kept_link

    folder = (data or Path(data_folder())).resolve()
    link = kept_link(folder)
    if link is None:
        raise CliError(
            f"edge_not_started: {harmless(str(folder))} has no {FILE_NAME}; start `factwire edge` "
            "there, or, where you gave it a token, open its address and paste that"
        )
    _ensure_answers(link.partition("/#")[0])
    if show:
        typer.echo(link)
    elif not webbrowser.open((folder / FILE_NAME).as_uri()):
        raise CliError(
            "no_browser: none can be opened from here; `factwire open --print` shows the link"
        )


def _ensure_answers(address: str) -> None:
    # What runs on this machine is asked without whatever proxy the environment names.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"{address}/v1/health", timeout=_PATIENCE_SECONDS):
            return
    except OSError as error:
        raise CliError(
            f"edge_unreachable: nothing answers at {harmless(address)}; start `factwire edge`"
        ) from error

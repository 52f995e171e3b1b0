"""`factwire edge` serves this machine; `factwire open` opens its workbench, signed in.

The Edge leaves the way in when it starts, in its data folder; the browser gets the name of that
file, and so no list of processes ever shows the token.
"""

import os
import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.request import ProxyHandler, build_opener

import typer
from rich.console import Console

from factwire.cli.targets import data_folder
from factwire.cli.terminal import UNUSABLE, CliError, report, terminal_safe

if TYPE_CHECKING:
    from factwire.edge.startup import EdgeSettings, OpenEdge
    from factwire.runtime.configuration import Configuration


TOKEN_VARIABLE: Final = "FACTWIRE_TOKEN"  # noqa: S105 - the name of a variable
LOG_LEVEL_VARIABLE: Final = "FACTWIRE_LOG_LEVEL"
DEFAULT_PORT: Final = 8787

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]


def edge(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")
    ] = DEFAULT_PORT,
    data: Annotated[
        Path | None, typer.Option(help="The data folder; the configured one if not given.")
    ] = None,
    journal: Annotated[
        str | None, typer.Option(metavar="URL", help="The journal; the configured one if not.")
    ] = None,
    workspace: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder that runs may work in; may be repeated. The current one if "
            "neither this nor the configuration names any."
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who answers where nobody is named.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar=TOKEN_VARIABLE, help="The token to ask for; made if not given."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Answer to this host name, too; may be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin in; may be repeated."),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(envvar=LOG_LEVEL_VARIABLE, help="The least that is logged.")
    ] = "info",
    log_format: Annotated[
        LogFormat, typer.Option(help="Lines of JSON or of text; auto is text on a terminal.")
    ] = "auto",
) -> None:
    """Serve this machine: REST, WebSocket and event streams, all behind one token.

    The token is made at the first start, printed once, and kept in the data folder. Ctrl-C stops:
    readers are told to come again, running turns are closed or wait for the next start. Exit code
    2: it could not start, with the reason.
    """
    try:
        from factwire.edge.startup import EdgeSettings
    except ModuleNotFoundError as error:
        raise CliError(
            f"missing_extra: the Edge needs {error.name}, which is not here; install "
            "'factwire[edge]'"
        ) from error
    folders = [_require_folder(each) for each in workspace or ()]
    configuration = _load_settings(journal, data, agent, folders)
    settings = EdgeSettings(
        host=host,
        port=port,
        token=token,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
    )
    from factwire.serving.logs import set_up_logs

    set_up_logs(log_level, log_format)
    _serve(configuration, Path(configuration.workspaces[0]), settings)


def _serve(configuration: "Configuration", workspace: Path, settings: "EdgeSettings") -> None:
    from factwire.edge.edge_server import AddressUnusable, run, serve
    from factwire.edge.startup import DataUnusable
    from factwire.journal import JournalError
    from factwire.runtime import RuntimeRefused
    from factwire.serving.access_control import InsecureStart

    try:
        run(serve(configuration, workspace, settings, _greet))
    except (
        InsecureStart,
        AddressUnusable,
        DataUnusable,
        JournalError,
        RuntimeRefused,
    ) as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def _greet(edge: "OpenEdge", address: str) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]Factwire Edge[/bold] listens on {address}")
    if edge.fresh_token:
        console.print(f"Token, shown this once and kept in the data folder: {edge.token.value}")
    console.print(f"Workbench: {terminal_safe(_workbench_link(edge, address))}", markup=False)
    agents = ", ".join(edge.context.registered.agents) or "none"
    console.print(f"Agents: {terminal_safe(agents)}. Ctrl-C stops.", style="dim")
    console.print("From another terminal:", style="dim")
    place = f"FACTWIRE_EDGE={address} FACTWIRE_DATA={shlex.quote(str(edge.context.data))}"
    console.print(f'  {place} factwire run demo "hello"', markup=False)


def _workbench_link(edge: "OpenEdge", address: str) -> str:
    """What to click: the link itself beside a token that is shown anyway; a file that only this
    person can read for one that was shown before; the plain address for one that somebody chose.
    """
    from factwire.edge.workbench import signed_in_link, write_entrance

    if not edge.kept_token:
        return f"{address}/"
    link = signed_in_link(address, edge.token)
    try:
        file = write_entrance(edge.context.data, link)
    except OSError as error:
        report(f"the way into the workbench could not be kept: {error.strerror}")
        return f"{address}/"
    return link if edge.fresh_token else file.resolve().as_uri()


def _require_folder(path: Path) -> Path:
    real = path.resolve()
    if not real.is_dir():
        raise CliError(f"workspace_missing: there is no folder {terminal_safe(str(real))}")
    return real


def _load_settings(
    journal: str | None, data: Path | None, agent: str | None, workspaces: list[Path]
) -> "Configuration":
    import msgspec

    from factwire.cli.targets import journal_url
    from factwire.runtime.configuration import ConfigurationError, load_configuration

    flags = [("journal", journal_url(journal))] if journal else []
    flags += [("data", os.path.abspath(data))] if data else []  # noqa: PTH100 - links stay links
    flags += [("agent", agent)] if agent else []
    try:
        loaded = load_configuration(Path.cwd(), flags=flags).configuration
    except ConfigurationError as error:
        for problem in error.problems:
            report(str(problem))
        raise typer.Exit(UNUSABLE) from error
    folders = tuple(map(str, workspaces)) or loaded.workspaces or (str(Path.cwd().resolve()),)
    return msgspec.structs.replace(loaded, workspaces=folders)


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
    from factwire.edge.workbench import ENTRANCE_FILE, read_entrance_link

    folder = (data or Path(data_folder())).resolve()
    link = read_entrance_link(folder)
    if link is None:
        raise CliError(
            f"edge_not_started: {terminal_safe(str(folder))} has no {ENTRANCE_FILE}; "
            "start `factwire edge` there, or, where you gave it a token, open its address "
            "and paste that"
        )
    _require_answer(link.partition("/#")[0])
    if show:
        typer.echo(link)
    elif not webbrowser.open((folder / ENTRANCE_FILE).as_uri()):
        raise CliError(
            "no_browser: none can be opened from here; `factwire open --print` shows the link"
        )


def _require_answer(address: str) -> None:
    # What runs on this machine is asked without whatever proxy the environment names.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"{address}/v1/health", timeout=_PATIENCE_SECONDS):
            return
    except OSError as error:
        raise CliError(
            f"edge_unreachable: nothing answers at {terminal_safe(address)}; start `factwire edge`"
        ) from error

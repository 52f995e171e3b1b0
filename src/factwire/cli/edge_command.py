"""`factwire edge` serves this machine, and `factwire edge token` says what others may do there;
`factwire open` opens its workbench, signed in.

The Edge leaves the way in when it starts, in its data folder; the browser gets the name of that
file, and so no list of processes ever shows the token.
"""

import os
import shlex
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.request import ProxyHandler, build_opener

import typer
from rich.console import Console
from rich.table import Table

from factwire.cli.join_command import join_as_runner
from factwire.cli.targets import data_folder, edge_client, journal_url, load_settings, run_work
from factwire.cli.terminal import DONE, CliError, report, terminal_safe

if TYPE_CHECKING:
    from factwire.edge.startup import EdgeSettings, OpenEdge
    from factwire.runtime.configuration import Configuration, ResolvedConfiguration


TOKEN_VARIABLE: Final = "FACTWIRE_TOKEN"  # noqa: S105 - the name of a variable
LOG_LEVEL_VARIABLE: Final = "FACTWIRE_LOG_LEVEL"
DEFAULT_PORT: Final = 8787

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]


edge = typer.Typer(
    name="edge", invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
)
_tokens = typer.Typer(help="Create, list and revoke named tokens of a running Edge.")
edge.add_typer(_tokens, name="token")


class ScopeName(StrEnum):
    """What a token may do."""

    READ = "read"
    DECIDE = "decide"
    RUN = "run"
    ADMIN = "admin"


EdgeAddress = Annotated[
    str,
    typer.Option(
        "--edge", envvar="FACTWIRE_EDGE", metavar="URL", help="The address of the running Edge."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LOCAL_EDGE: Final = f"http://127.0.0.1:{DEFAULT_PORT}"


@_tokens.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Who or what uses it; shown with what it does.")],
    *,
    scope: Annotated[
        list[ScopeName],
        typer.Option(help="What it may do; can be repeated. admin includes all others."),
    ],
    edge_url: EdgeAddress = LOCAL_EDGE,
    as_json: AsJson = False,
) -> None:
    """Create a token with limited scopes, and print it: it cannot be shown again."""

    async def create() -> int:
        async with edge_client(edge_url) as client:
            made = await client.create_token(name, [each.value for each in scope])
        if as_json:
            _print_json(made)
        else:
            typer.echo(made.token)
            report(f"{made.token_id}: save it now, it is not shown again")
        return DONE

    run_work(create())


@_tokens.command("list")
def list_tokens(*, edge_url: EdgeAddress = LOCAL_EDGE, as_json: AsJson = False) -> None:
    """List the named tokens with their scopes and last use, newest first."""

    async def read() -> int:
        async with edge_client(edge_url) as client:
            rows = [row async for row in client.tokens()]
        if as_json:
            _print_json(rows)
            return DONE
        table = Table("id", "name", "scopes", "created", "last used", box=None)
        for row in rows:
            used = row.last_used_at or "never"
            name = terminal_safe(row.name)
            table.add_row(row.token_id, name, " ".join(row.scopes), row.created_at, used)
        Console(highlight=False).print(table if rows else "no named tokens")
        return DONE

    run_work(read())


@_tokens.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(help="The id that `list` shows.")],
    *,
    edge_url: EdgeAddress = LOCAL_EDGE,
) -> None:
    """Revoke a token at once; its open streams are closed."""

    async def revoke() -> int:
        async with edge_client(edge_url) as client:
            await client.revoke_token(token_id)
        report(f"{terminal_safe(token_id)} is revoked")
        return DONE

    run_work(revoke())


def _print_json(value: object) -> None:
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())


@edge.callback()
def serve_edge(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 picks any free port.")
    ] = DEFAULT_PORT,
    data: Annotated[
        Path | None, typer.Option(help="The data folder; from the configuration by default.")
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The journal; from the configuration by default."),
    ] = None,
    workspace: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder that runs may work in; can be repeated. The current folder if "
            "neither this nor the configuration names one."
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="The default agent.")] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar=TOKEN_VARIABLE, help="The token to require; generated by default."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Your name, shown with what you do; the system user by default."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An additional host name to accept; can be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="An origin whose pages may connect; can be repeated."),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(envvar=LOG_LEVEL_VARIABLE, help="The lowest level to log.")
    ] = "info",
    log_format: Annotated[
        LogFormat, typer.Option(help="Log as JSON or as text; auto means text on a terminal.")
    ] = "auto",
) -> None:
    """Serve this machine's agents over REST, WebSocket and event streams, behind one token.

    The token is created on the first start, printed once, and stored in the data folder. Ctrl-C
    stops the Edge: clients are asked to reconnect later, and running turns are closed or wait for
    the next start. Exit code 2: it could not start; the reason is printed.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        from factwire.edge.startup import EdgeSettings
    except ModuleNotFoundError as error:
        raise CliError(
            f"missing_extra: the Edge needs {error.name}, which is not installed; install "
            "'factwire[edge]'"
        ) from error
    folders = [_require_folder(each) for each in workspace or ()]
    named = {"agent": agent, "user": user}
    resolved = _load_settings(journal, data, named, folders)
    configuration = resolved.configuration
    settings = EdgeSettings(
        host=host,
        port=port,
        token=token,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        untrusted_project=str(resolved.untrusted) if resolved.untrusted else None,
    )
    from factwire.serving.logs import set_up_logs

    set_up_logs(log_level, log_format)
    join_as_runner(configuration)
    _serve(configuration, Path(configuration.workspaces[0]), settings)


def _serve(configuration: "Configuration", workspace: Path, settings: "EdgeSettings") -> None:
    from factwire.edge.startup import serve
    from factwire.journal import JournalError
    from factwire.runtime import RuntimeRefused
    from factwire.serving.access_control import InsecureStart
    from factwire.serving.http_server import AddressUnusable, DataUnusable, run

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
    console.print(f"[bold]Factwire Edge[/bold] listening on {address}")
    if edge.fresh_token:
        console.print(f"Token (shown only once, stored in the data folder): {edge.token.value}")
    console.print(f"Workbench: {terminal_safe(_workbench_link(edge, address))}", markup=False)
    agents = ", ".join(edge.context.registered.agents) or "none"
    console.print(f"Agents: {terminal_safe(agents)}. Press Ctrl-C to stop.", style="dim")
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
        report(f"could not save the workbench link: {error.strerror}")
        return f"{address}/"
    return link if edge.fresh_token else file.resolve().as_uri()


def _require_folder(path: Path) -> Path:
    real = path.resolve()
    if not real.is_dir():
        raise CliError(f"workspace_missing: folder not found: {terminal_safe(str(real))}")
    return real


def _load_settings(
    journal: str | None, data: Path | None, named: dict[str, str | None], workspaces: list[Path]
) -> "ResolvedConfiguration":
    import msgspec

    flags = [("journal", journal_url(journal))] if journal else []
    flags += [("data", os.path.abspath(data))] if data else []  # noqa: PTH100 - links stay links
    flags += [(key, value) for key, value in named.items() if value]
    resolved = load_settings(Path.cwd(), flags)
    loaded = resolved.configuration
    folders = tuple(map(str, workspaces)) or loaded.workspaces or (str(Path.cwd().resolve()),)
    configuration = msgspec.structs.replace(loaded, workspaces=folders)
    return msgspec.structs.replace(resolved, configuration=configuration)


_PATIENCE_SECONDS: Final = 5.0


def open_workbench(
    *,
    data: Annotated[
        Path | None, typer.Option(help="The Edge's data folder; from the configuration by default.")
    ] = None,
    show: Annotated[
        bool,
        typer.Option(
            "--print", help="Print the link, which contains the token, instead of opening it."
        ),
    ] = False,
) -> None:
    """Open the workbench in your browser, signed in.

    Works for an Edge on this machine that created its own token. Exit code 2: no Edge answers, or
    no browser can be opened.
    """
    from factwire.edge.workbench import ENTRANCE_FILE, read_entrance_link

    folder = (data or Path(data_folder())).resolve()
    link = read_entrance_link(folder)
    if link is None:
        raise CliError(
            f"edge_not_started: {terminal_safe(str(folder))} has no {ENTRANCE_FILE}; start "
            "`factwire edge` there, or, if you chose the token yourself, open its address and "
            "paste the token"
        )
    _require_answer(link.partition("/#")[0])
    if show:
        typer.echo(link)
    elif not webbrowser.open((folder / ENTRANCE_FILE).as_uri()):
        raise CliError(
            "no_browser: cannot open a browser here; `factwire open --print` shows the link"
        )


def _require_answer(address: str) -> None:
    # What runs on this machine is asked without whatever proxy the environment names.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"{address}/v1/health", timeout=_PATIENCE_SECONDS):
            return
    except OSError as error:
        raise CliError(
            f"edge_unreachable: no answer from {terminal_safe(address)}; start it with "
            "`factwire edge`"
        ) from error

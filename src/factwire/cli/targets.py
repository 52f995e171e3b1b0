"""What a command works on, a journal or an Edge: the options that name it, and how it is opened.

A bare path is a SQLite file. Commands that only read open it read-only, which works beside a
running writer and never creates anything. `--edge` names an Edge, else FACTWIRE_EDGE, unless
`--journal` says that a journal is meant. The token is FACTWIRE_TOKEN, else the one that an Edge
keeps in the configured data folder; that one is for this machine and goes to no other. `--hub`,
else FACTWIRE_HUB, names a Hub, by which the Edge of a device is reached in the name of whoever
signed in there; FACTWIRE_DEVICE_SECONDS is how long the device has to answer.
"""

import asyncio
import os
import re
import shlex
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeVar

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from factwire.cli.terminal import (
    INTERRUPTED,
    ISSUES,
    UNUSABLE,
    CliError,
    errors,
    print_note_once,
    report,
    terminal_safe,
)
from factwire.journal import (
    JOURNAL_SCHEMES,
    AppendRefused,
    CursorError,
    Journal,
    JournalCorrupt,
    JournalError,
    RestoreRefused,
    open_journal,
)

if TYPE_CHECKING:
    from factwire.client import AgentTask, AsyncClient, AsyncHubClient, Device, EdgeProblem
    from factwire.runtime.configuration import ConfigurationError, ResolvedConfiguration


Result = TypeVar("Result")

JournalUrl = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="sqlite:PATH or just a path, postgres://…, nats://….",
        show_default=False,
    ),
]


def open_for_reading(url: str) -> Journal:
    """The journal, to be opened for reading alone where its backend knows the difference."""
    found = journal_url(url)
    _require_file(found)
    is_file = found.startswith("sqlite:") and "?" not in found
    return _open_journal(f"{found}?mode=ro" if is_file else found)


def open_for_writing(url: str, *, create: bool) -> Journal:
    """The journal, to be opened for writing."""
    found = journal_url(url)
    if not create:
        _require_file(found)
    return _open_journal(found)


def run_work(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's work and exit with the code it returns."""
    raise typer.Exit(finish_work(work))


def finish_work(work: Coroutine[Any, Any, Result]) -> Result:
    """What a command's work results in; what a journal refuses becomes words."""
    try:
        with _print_warnings_plainly():
            return asyncio.run(work)
    except JournalError as error:
        raise to_cli_error(error) from error
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def to_cli_error(error: JournalError) -> CliError:
    """What to tell a person: the stable code, what happened, and where to go on from."""
    text = f"{error.code}: {terminal_safe(str(error))}"
    if isinstance(error, CursorError) and error.nearest is not None:
        text += f" ({error.nearest})"
    wrong = isinstance(error, AppendRefused | JournalCorrupt | RestoreRefused)
    return CliError(text, ISSUES if wrong else UNUSABLE)


@contextmanager
def _print_warnings_plainly() -> Generator[None]:
    """What a backend warns of, in one line instead of with a place in the code."""

    def show(message: Warning | str, *_: object) -> None:
        errors.print("warning:", style="bold yellow", end=" ")
        errors.print(terminal_safe(str(message)), markup=False, soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def journal_url(text: str) -> str:
    """The URL a text means. It is never repeated in an error, because it may hold a password."""
    scheme, colon, _ = text.partition(":")
    if colon and scheme in JOURNAL_SCHEMES:
        return text
    if "://" in text:
        known = ", ".join(f"{name}:" for name in JOURNAL_SCHEMES)
        raise CliError(
            f"{terminal_safe(scheme)}:// is not a kind of journal; use {known} or a path"
        )
    if "?" in text:
        raise CliError("a path cannot contain a question mark; use sqlite:PATH?mode=ro for options")
    return f"sqlite:{text}"


def _require_file(url: str) -> None:
    """SQLite would open a folder, or create a file, before it finds out."""
    if url.startswith("sqlite:"):
        path, _, _ = url.removeprefix("sqlite:").partition("?")
        if not Path(path).is_file():
            raise CliError(f"no journal at {terminal_safe(path)}")


def _open_journal(url: str) -> Journal:
    try:
        return open_journal(url)
    except JournalError as error:
        raise to_cli_error(error) from error
    except ValueError as error:
        scheme, _, _ = url.partition(":")
        raise CliError(f"the {scheme}: URL is invalid: {terminal_safe(str(error))}") from error


Advance = Callable[[int], None]


@contextmanager
def show_progress(doing: str, total: int | None = None) -> Generator[Advance]:
    """A bar over `total` facts, or one that only shows that work goes on; call to advance it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = [TextColumn("{task.description}"), BarColumn()]
    counted = [] if total is None else [MofNCompleteColumn()]
    with Progress(*columns, *counted, TimeElapsedColumn(), console=errors, transient=True) as drawn:
        task = drawn.add_task(doing, total=total)
        yield lambda facts: drawn.advance(task, facts)


JournalOption = Annotated[
    str | None,
    typer.Option(
        "--journal", metavar="URL", help="The journal; from the configuration by default."
    ),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", help="The folder to work in; the current folder by default."),
]


EDGE_VARIABLE: Final = "FACTWIRE_EDGE"
TOKEN_VARIABLE: Final = "FACTWIRE_TOKEN"  # noqa: S105 - the name of a variable

EdgeOption = Annotated[
    str | None,
    typer.Option(
        "--edge",
        metavar="URL",
        help=(f"Use this running Edge; {EDGE_VARIABLE} by default. Without either, use a journal."),
        show_default=False,
    ),
]


HUB_VARIABLE: Final = "FACTWIRE_HUB"
DEVICE_SECONDS_VARIABLE: Final = "FACTWIRE_DEVICE_SECONDS"

DeviceHubOption = Annotated[
    str | None,
    typer.Option(
        "--hub",
        metavar="URL",
        help=f"Use a device of yours at this Hub; {HUB_VARIABLE} by default.",
        show_default=False,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="The name or id of the device at the Hub; not needed if you have only one.",
    ),
]


class EdgeTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The Edge that a command is about: by its own address, or that of a `device` at a Hub, which
    is the only one there where it has no name.
    """

    edge: str = ""
    hub: str | None = None
    device: str | None = None

    @property
    def flags(self) -> str:
        """What other commands are to be given, so that they mean the same Edge."""
        if self.hub is None:
            return ""
        device = "" if self.device is None else f" --device {shlex.quote(self.device)}"
        return f" --hub {shlex.quote(self.hub)}{device}"


def choose_edge(
    edge: str | None, hub: str | None, device: str | None, journal: str | None
) -> EdgeTarget | None:
    """The Edge that options and environment name, None where they mean a journal."""
    named = {"--edge": edge, "--hub": hub or device, "--journal": journal}
    chosen = [option for option, value in named.items() if value]
    if len(chosen) > 1:
        raise CliError(f"choose one: {' or '.join(chosen)}")
    url = None if chosen in (["--hub"], ["--journal"]) else edge or os.environ.get(EDGE_VARIABLE)
    if url:
        return EdgeTarget(edge=url)
    hub = hub or os.environ.get(HUB_VARIABLE) or None
    if journal or (hub is None and device is None):
        return None
    from factwire.cli.over_hub import choose_hub

    return EdgeTarget(hub=choose_hub(hub), device=device)


def edge_url(edge: str | None, journal: str | None = None) -> str | None:
    """The Edge that is meant, None where it is a journal."""
    if edge and journal:
        raise CliError("choose one: --edge or --journal")
    return edge or (None if journal else os.environ.get(EDGE_VARIABLE) or None)


_PRODUCT = "factwire-cli"
"""By which an Edge knows that somebody sits at a terminal."""


@asynccontextmanager
async def edge_client(target: EdgeTarget | str) -> "AsyncGenerator[AsyncClient]":
    """A client for an Edge; whatever it refuses ends the command in one line."""
    chosen = EdgeTarget(edge=target) if isinstance(target, str) else target
    if chosen.hub is not None:
        async with hub_client(chosen.hub) as hub, await hub.edge(chosen.device) as client:
            with _name_device(client.device, chosen.flags):
                yield client
        return
    with report_client_errors():
        from factwire.client import AsyncClient, read_address

        local = read_address(chosen.edge).is_local
        named = os.environ.get(TOKEN_VARIABLE)
        if named or not local:
            client = AsyncClient(chosen.edge, token=named or None, product=_PRODUCT)
        else:
            client = AsyncClient(chosen.edge, data=data_folder(), product=_PRODUCT)
        async with client:
            yield client


DEVICE_OFFLINE: Final = "device_offline"


@contextmanager
def _name_device(device: "Device", flags: str) -> Generator[None]:
    """What a Hub could not pass on ends the command, with the name of the device."""
    from factwire.client import EdgeProblem

    try:
        yield
    except EdgeProblem as problem:
        name = terminal_safe(device.name)
        if problem.code == DEVICE_OFFLINE:
            raise device_offline(device, "nothing was sent") from problem
        if problem.code == "relay_timeout":
            look = terminal_safe(f"factwire threads{flags}")
            raise CliError(
                f"relay_timeout: {name} did not answer in time, and may have done it; look with "
                f"{look} before you repeat it"
            ) from problem
        raise


def device_offline(device: "Device", outcome: str) -> CliError:
    """The end of a command that a device that is away keeps from its work."""
    seen = terminal_safe(format_minute(device.last_seen_at))
    return CliError(
        f"{DEVICE_OFFLINE}: {terminal_safe(device.name)} is offline, last seen {seen}; {outcome}"
    )


def describe_expiry(device_name: str, task: "AgentTask") -> str:
    """That a task waits for its device, and for how long."""
    return f"queued for {device_name}, expires {format_minute(task.expires_at)}"


_MINUTE: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)\S*Z")


def format_minute(text: str) -> str:
    """A time of a Hub as a person reads it."""
    match = _MINUTE.fullmatch(text)
    return f"{match[1]} {match[2]} UTC" if match else text


@asynccontextmanager
async def hub_client(url: str) -> "AsyncGenerator[AsyncHubClient]":
    """A client for a Hub, for whoever signed in there on this machine."""
    with report_client_errors():
        from factwire.client import AsyncHubClient

        client = AsyncHubClient(
            url, data=data_folder(), device_seconds=_read_device_seconds(), product=_PRODUCT
        )
        async with client:
            yield client


def _read_device_seconds() -> float:
    """How long a device has to answer; ends the command where that is no number of seconds."""
    from factwire.client.limits import DEVICE_SECONDS

    text = os.environ.get(DEVICE_SECONDS_VARIABLE)
    if not text:
        return DEVICE_SECONDS
    if not (text.isascii() and text.isdigit()):
        raise CliError(
            f"{DEVICE_SECONDS_VARIABLE}: expected a whole number of seconds, got "
            f"{terminal_safe(text)}"
        )
    return float(text)


@contextmanager
def report_client_errors() -> Generator[None]:
    """What a client raises ends the command in one line."""
    try:
        from factwire.client import ClientError, EdgeProblem
    except ImportError as error:
        raise CliError(f"missing_extra: {error}") from error
    try:
        yield
    except EdgeProblem as error:
        raise CliError(
            f"{error.code}: {terminal_safe(error.detail)}", _exit_code_of_problem(error)
        ) from error
    except ClientError as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def _exit_code_of_problem(error: "EdgeProblem") -> int:
    """Whoever may not ask, or cannot be answered now, has not been refused for what they asked."""
    unusable = error.status in (401, 403, 421, 429) or error.status >= 500  # noqa: PLR2004 - HTTP
    return UNUSABLE if unusable or error.code == DEVICE_OFFLINE else ISSUES


def data_folder() -> str:
    """Where the configuration keeps things; ends the command where it cannot be read."""
    return load_settings(Path.cwd(), []).configuration.data


def load_settings(folder: Path, flags: list[tuple[str, str]]) -> "ResolvedConfiguration":
    """The configuration that holds in a folder; ends the command where it cannot be read, and
    names a project's file that is not trusted.
    """
    from factwire.runtime.configuration import (
        ConfigurationError,
        declare_redaction,
        load_configuration,
    )

    try:
        resolved = load_configuration(folder, flags=flags)
        declare_redaction(resolved.configuration.redaction)
    except ConfigurationError as error:
        raise _end_unusable(error) from error
    note_untrusted(resolved)
    return resolved


def declare_own_secrets() -> None:
    """Have this command hide what the settings of the current folder name; ends the command where
    they cannot be used. Without any file or variable of settings nothing is loaded for it.
    """
    home = Path(os.environ.get("HOME") or Path.home())
    config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    user = (config if config.is_absolute() else home / ".config") / "factwire" / "config.toml"
    here = Path.cwd()
    files = (user, *(folder / "factwire.toml" for folder in (here, *here.parents)))
    named = any(name.startswith("FACTWIRE_REDACTION_") for name in os.environ)
    if not named and not any(map(os.path.lexists, files)):
        return
    from factwire.runtime.configuration import ConfigurationError, load_redaction

    try:
        load_redaction(here)
    except ConfigurationError as error:
        raise _end_unusable(error) from error


def _end_unusable(error: "ConfigurationError") -> typer.Exit:
    for problem in error.problems:
        report(str(problem))
    return typer.Exit(UNUSABLE)


def note_untrusted(resolved: "ResolvedConfiguration") -> None:
    """Say once in a command which settings it ignores."""
    if resolved.untrusted is not None:
        print_note_once(str(resolved.untrusted))

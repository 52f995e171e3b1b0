"""Which Edge a command talks to, and with which token: one way for all of them.

`--edge` names it, else FACTWIRE_EDGE, unless `--journal` says that a journal is meant. The token is
FACTWIRE_TOKEN, else the one that an Edge keeps in the configured data folder; that one is for this
machine and goes to no other.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from factwire.cli.failures import ISSUES, UNUSABLE, CliError, report
from factwire.cli.terminal_text import harmless

if TYPE_CHECKING:
    from factwire.client import AsyncClient

VARIABLE: Final = "FACTWIRE_EDGE"
TOKEN_VARIABLE: Final = "FACTWIRE_TOKEN"  # noqa: S105 - the name of a variable

EdgeOption = Annotated[
    str | None,
    typer.Option(
        "--edge",
        metavar="URL",
        help=f"Ask this running Edge; {VARIABLE} if not given. Without both, work on a journal.",
        show_default=False,
    ),
]


def edge_url(edge: str | None, journal: str | None = None) -> str | None:
    """The Edge that is meant, None where it is a journal."""
    if edge and journal:
        raise CliError("choose one: --edge or --journal")
    return edge or (None if journal else os.environ.get(VARIABLE) or None)


@asynccontextmanager
async def edge_client(url: str) -> "AsyncGenerator[AsyncClient]":
    """A client for an Edge; whatever it refuses ends the command in one line."""
    try:
        from factwire.client import AsyncClient, ClientError, EdgeProblem, read_address
    except ImportError as error:
        raise CliError(f"missing_extra: {error}") from error
    try:
        local = read_address(url).is_local
        named = os.environ.get(TOKEN_VARIABLE)
        if named or not local:
            client = AsyncClient(url, token=named or None)
        else:
            client = AsyncClient(url, data=data_folder())
        async with client:
            yield client
    except EdgeProblem as error:
        raise CliError(
            f"{error.code}: {harmless(error.detail)}", _exit_code(error.status)
        ) from error
    except ClientError as error:
        raise CliError(f"{error.code}: {harmless(str(error))}") from error


def _exit_code(status: int) -> int:
    """Whoever may not ask, or cannot be answered now, has not been refused for what they asked."""
    unusable = status in (401, 403, 421, 429) or status >= 500  # noqa: PLR2004 - HTTP
    return UNUSABLE if unusable else ISSUES


def data_folder() -> str:
    """Where the configuration keeps things; ends the command where it cannot be read."""
    from factwire.runtime.configuration import ConfigurationError, load_configuration

    try:
        return load_configuration(Path.cwd()).configuration.data
    except ConfigurationError as error:
        for problem in error.problems:
            report(str(problem))
        raise typer.Exit(UNUSABLE) from error

"""`factwire config`: every setting with its value and where that came from; never a secret.

`factwire trust` and `untrust`: whose project's settings count. What is trusted is what was shown:
the bytes that are read once.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.targets import note_untrusted
from factwire.cli.terminal import (
    ISSUES,
    CliError,
    count_of,
    print_note,
    report,
    terminal_safe,
    terminal_safe_block,
)

if TYPE_CHECKING:
    from factwire.runtime.configuration import (
        ProjectFile,
        ProjectTrust,
        ResolvedConfiguration,
        SettingRow,
    )


def config(
    *,
    folder: Annotated[
        Path | None,
        typer.Option("--in", help="The folder to start from; the current folder by default."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, as a flag would."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every setting, its value and its source."""
    from factwire.runtime.configuration import list_setting_rows

    flags = [_parse_flag(text) for text in settings or []]
    found = list_setting_rows(_load_settings(folder, flags, as_json=as_json))
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode({"settings": found}) + b"\n")
    else:
        _show_rows(found)


def _parse_flag(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise CliError(f"--set expects KEY=VALUE, got {terminal_safe(key, 80)!r}")
    return key.strip(), value


def _load_settings(
    folder: Path | None, flags: list[tuple[str, str]], *, as_json: bool
) -> "ResolvedConfiguration":
    from factwire.runtime.configuration import ConfigurationError, load_configuration

    if folder is not None and not folder.is_dir():
        raise CliError(f"folder not found: {terminal_safe(str(folder))}")
    try:
        resolved = load_configuration(folder, flags=flags)
    except ConfigurationError as error:
        if as_json:
            found = {"code": error.code, "problems": error.problems}
            sys.stdout.buffer.write(msgspec.json.encode({"error": found}) + b"\n")
        else:
            for problem in error.problems:
                report(str(problem))
        raise typer.Exit(ISSUES) from error
    note_untrusted(resolved)
    return resolved


ProjectPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="PATH",
        help="A project's folder or its factwire.toml; by default the nearest one from here.",
    ),
]


def trust(
    path: ProjectPath = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Trust it without asking.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the trusted projects.")] = False,
) -> None:
    """Show what a project's factwire.toml changes, and trust it, so that its settings apply.

    A file that is changed afterwards has to be trusted again; the difference is shown. Exit code 1:
    it was not trusted, or it is not valid.
    """
    from factwire.runtime.configuration import ProjectTrust, read_project_file

    trusted = ProjectTrust()
    with _refuse_plainly():
        if show:
            for project in trusted.list_projects():
                typer.echo(f"{project.trusted_at}  {terminal_safe(project.path)}")
            return
        file = read_project_file(_find_file(path))
        if trusted.check(file) is None:
            print_note(f"{file.path} is already trusted")
            return
        _show_difference(trusted, file)
        _show_changes(file)
        if not (yes or _confirm(file)):
            raise CliError(f"{terminal_safe(str(file.path))} is not trusted", ISSUES)
        trusted.add(file)
    print_note(f"{file.path} is trusted")


def untrust(path: ProjectPath = None) -> None:
    """Ignore a project's factwire.toml again."""
    from factwire.runtime.configuration import ProjectTrust

    with _refuse_plainly():
        file = _find_file(path)
        place = file.parent.resolve() / file.name
        if not ProjectTrust().remove(place):
            raise CliError(f"{terminal_safe(str(place))} was not trusted", ISSUES)
    print_note(f"{place} is no longer trusted")


@contextmanager
def _refuse_plainly() -> Generator[None]:
    from factwire.runtime.configuration import TrustListUnusable

    try:
        yield
    except TrustListUnusable as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def _find_file(path: Path | None) -> Path:
    """The file that is meant. One that is gone can still be named, to trust it no longer."""
    from factwire.runtime.configuration import PROJECT_FILE, find_project_file

    if path is not None:
        return path / PROJECT_FILE if path.is_dir() else path
    found = find_project_file(Path.cwd())
    if found is None:
        raise CliError(f"there is no {PROJECT_FILE} in this folder or above it")
    return found


def _show_difference(trusted: "ProjectTrust", file: "ProjectFile") -> None:
    """What changed since the file was trusted, line by line."""
    from factwire.runtime.configuration import TrustListUnusable

    try:
        before = trusted.find(file.path)
    except TrustListUnusable as error:
        print_note(f"{error.code}: {error}; the list is begun anew")
        return
    if before is None:
        return
    lines = (terminal_safe_block(before.content), terminal_safe_block(file.shown))
    difference = list(unified_diff(*lines, "trusted", "now", lineterm=""))
    for line in difference or ["only what is not shown here was changed, such as a secret"]:
        typer.echo(line)
    typer.echo("")


def _show_changes(file: "ProjectFile") -> None:
    """Every setting of the file; ends the command where it is not valid."""
    from factwire.runtime.configuration import (
        ConfigurationError,
        Layer,
        list_layer_rows,
        project_layer,
    )

    try:
        layer = project_layer(file.path, file.data, str(Path.home()))
    except ConfigurationError as error:
        layer = Layer(problems=error.problems)
    for problem in layer.problems:
        report(str(problem))
    if layer.problems:
        raise typer.Exit(ISSUES)
    rows = list_layer_rows(layer)
    typer.echo(f"{terminal_safe(str(file.path))} sets {count_of(len(rows), 'value')}:")
    if rows:
        _show_rows(rows)


def _confirm(file: "ProjectFile") -> bool:
    if not sys.stdin.isatty():
        raise CliError("there is no terminal to ask in; use --yes to trust it")
    return typer.confirm(f"Trust {terminal_safe(str(file.path))}?", err=True)


def _show_rows(found: "list[SettingRow]") -> None:
    keys = max(len(row.key) for row in found)
    values = min(48, max(len(_value_text(row.value)) for row in found))
    console = Console(highlight=False, soft_wrap=True)
    for row in found:
        source = row.source if row.where is None else f"{row.source}: {row.where}"
        line = Text.assemble(
            (f"{terminal_safe(row.key):<{keys}}  ", "bold"),
            f"{_value_text(row.value):<{values}}  ",
            (terminal_safe(source), "dim"),
        )
        console.print(line)


def _value_text(value: Any) -> str:
    if value is None:
        return "-"
    return terminal_safe(value if isinstance(value, str) else msgspec.json.encode(value).decode())

"""`factwire config`: every setting with its value and where that came from; never a secret."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.terminal import ISSUES, CliError, report, terminal_safe

if TYPE_CHECKING:
    from factwire.runtime.configuration import ResolvedConfiguration, SettingRow


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
        return load_configuration(folder, flags=flags)
    except ConfigurationError as error:
        if as_json:
            found = {"code": error.code, "problems": error.problems}
            sys.stdout.buffer.write(msgspec.json.encode({"error": found}) + b"\n")
        else:
            for problem in error.problems:
                report(str(problem))
        raise typer.Exit(ISSUES) from error


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

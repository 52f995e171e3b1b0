"""`factwire schema`: the contracts as JSON Schema, TypeScript and AsyncAPI."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from factwire.cli.failures import CliError
from factwire.facts.schemas import schema_files


class FormatOption(StrEnum):
    """What can be written; `all` needs a folder."""

    json = "json"
    typescript = "typescript"
    asyncapi = "asyncapi"
    all = "all"


_FILES: Final = {
    FormatOption.typescript: "factwire.d.ts",
    FormatOption.asyncapi: "asyncapi.json",
}


def schema(
    form: Annotated[FormatOption, typer.Argument(metavar="json|typescript|asyncapi|all")],
    *,
    name: Annotated[
        str, typer.Option(help="Which JSON Schema: fact, runtime-event, ui-event, payloads, …")
    ] = "fact",
    output: Annotated[Path | None, typer.Option(help="A file to write; for all, a folder.")] = None,
) -> None:
    """Print a schema of the facts, or write all of them to a folder."""
    files = schema_files()
    if form is FormatOption.all:
        _write_all(files, output)
        return
    text = _chosen(files, _FILES.get(form, f"{name}.schema.json"))
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


def _chosen(files: dict[str, str], filename: str) -> str:
    if filename in files:
        return files[filename]
    known = ", ".join(n.removesuffix(".schema.json") for n in files if n.endswith(".schema.json"))
    wanted = filename.removesuffix(".schema.json")
    raise CliError(f"there is no schema called {wanted!r}; there are {known}")


def _write_all(files: dict[str, str], folder: Path | None) -> None:
    if folder is None:
        raise CliError("all writes several files: name a folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
    for filename, text in files.items():
        (folder / filename).write_text(text, encoding="utf-8")

"""`factwire schema`: the contracts as JSON Schema, TypeScript, AsyncAPI and OpenAPI.

The OpenAPI documents are made from the handlers of the servers, so they need their extras.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from factwire.cli.terminal import CliError, print_note
from factwire.journal.atomic_files import write_target


class FormatOption(StrEnum):
    """What can be written; `all` needs a folder."""

    json = "json"
    typescript = "typescript"
    asyncapi = "asyncapi"
    openapi = "openapi"
    all = "all"


_SUFFIXES: Final = {
    FormatOption.json: ".schema.json",
    FormatOption.typescript: ".d.ts",
    FormatOption.asyncapi: ".json",
    FormatOption.openapi: ".json",
}
_DEFAULTS: Final = {
    FormatOption.json: "fact",
    FormatOption.typescript: "factwire",
    FormatOption.asyncapi: "asyncapi",
    FormatOption.openapi: "openapi",
}

_OPENAPI: Final = "openapi.json"
_HUB_OPENAPI: Final = "hub-openapi.json"


def schema(
    form: Annotated[FormatOption, typer.Argument(metavar="json|typescript|asyncapi|openapi|all")],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            help="The schema: with json, one of fact, payloads, projection, read-models, …; "
            "with typescript, factwire or projection; with openapi, openapi or hub-openapi.",
            show_default="fact, factwire",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write; with all, a folder.")
    ] = None,
) -> None:
    """Print a schema of facts or of their projection, or write all schemas to a folder."""
    files = _openapi_files() if form is FormatOption.openapi else _schema_files()
    if form is FormatOption.all:
        _write_all(files, output)
        return
    text = _choose_file(files, form, _DEFAULTS[form] if name is None else name)
    if output is None:
        sys.stdout.write(text)
    else:
        write_target(output, text)


def _schema_files() -> dict[str, str]:
    from factwire.conformance.report import report_files
    from factwire.edge.events.event_schemas import edge_files
    from factwire.evidence.schemas import comparison_files, evidence_files
    from factwire.facts.schemas import schema_files
    from factwire.hub.frames.hub_asyncapi import hub_files
    from factwire.projection.schemas import projection_files

    about_runs = comparison_files() | evidence_files()
    servers = edge_files() | hub_files()
    return schema_files() | projection_files() | about_runs | servers | report_files()


def _openapi_files() -> dict[str, str]:
    """The documents of the servers that are installed."""
    from factwire.facts.schemas.schema_files import document_text

    try:
        from factwire.edge.edge_app import build_openapi
    except ModuleNotFoundError as error:
        raise CliError(
            f"{_OPENAPI} is generated from the Edge's routes, but {error.name} is not "
            "installed; install factwire[edge]"
        ) from error
    files = {_OPENAPI: document_text(build_openapi())}
    try:
        from factwire.hub import hub_app
    except ModuleNotFoundError as error:
        print_note(f"without {_HUB_OPENAPI}: {error.name} is not installed; see factwire[hub]")
        return files
    return {**files, _HUB_OPENAPI: document_text(hub_app.build_openapi())}


def _choose_file(files: dict[str, str], form: FormatOption, name: str) -> str:
    suffix = _SUFFIXES[form]
    named = {filename.removesuffix(suffix): text for filename, text in files.items()}
    # What still has a dot is a file of another form.
    known = [known for known in named if "." not in known]
    if name in known:
        return named[name]
    raise CliError(f"unknown schema {name!r}; choose from {', '.join(known)}")


def _write_all(files: dict[str, str], folder: Path | None) -> None:
    if folder is None:
        raise CliError("all writes several files: name a folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
    for filename, text in files.items():
        write_target(folder / filename, text)
    # Last, so that all others are there where it cannot be made.
    for filename, text in _openapi_files().items():
        write_target(folder / filename, text)

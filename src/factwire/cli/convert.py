"""`factwire convert`: the same facts in another shape, one JSON object to a line."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
import typer

from factwire.cli.documents import open_source, read_document
from factwire.cli.failures import DONE, ISSUES, report
from factwire.cli.progress import watched
from factwire.facts import (
    Fact,
    Issue,
    Reading,
    Shape,
    UnreadableInput,
    read_item,
    shape_issues,
    ui_events,
    write_fact,
)

if TYPE_CHECKING:
    from factwire.cli.outlet_streams import OutletStream

SHAPES: Final = ("auto", "facts", "runtime-event", "ui")
"""Shapes of facts that can be read; any other name is that of a source."""


class ToOption(StrEnum):
    """What it can be converted to."""

    facts = "facts"
    runtime_event = "runtime-event"
    ui = "ui"
    ag_ui = "ag-ui"
    ai_sdk = "ai-sdk"
    ai_sdk_5 = "ai-sdk-5"
    ai_sdk_6 = "ai-sdk-6"


def convert(
    file: Annotated[str, typer.Argument(help="A file of facts, or - for standard input.")],
    *,
    source_form: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SHAPE|SOURCE|FILE",
            help="What the input is: auto (looks at each fact), facts, runtime-event, ui; or the "
            "stream of an agent, such as claude-code or codex-exec (--from list names all); or a "
            "mapping file, such as agent.toml, that says what the lines of any program mean.",
        ),
    ] = "auto",
    target: Annotated[
        ToOption,
        typer.Option("--to", help="The shape to write, or the protocol of a client to write for."),
    ] = ToOption.facts,
    sse: Annotated[
        bool,
        typer.Option("--sse", help="For a client: write server-sent events, not lines."),
    ] = False,
    thread: Annotated[
        str | None,
        typer.Option(metavar="ID", help="For a stream: the thread of its facts; the file's name."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="For a stream that tells no times: when it was."),
    ] = None,
    blobs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For a stream: keep here what is too big for a fact."),
    ] = None,
) -> None:
    """Convert facts between shapes, or an agent's own stream to facts, one JSON object to a line.

    What cannot be converted is named on standard error, and the exit code is 1. Items of a stream
    that are not known become warnings in it, with a ref.
    """
    if source_form not in SHAPES:
        from factwire.cli.source_streams import convert_stream

        raise typer.Exit(
            convert_stream(
                file, source_form, target.value, sse=sse, thread=thread, at=at, blobs=blobs
            )
        )
    from factwire.cli.outlet_streams import outlet_stream

    outlet = outlet_stream(target.value, sse=sse)
    failed = 0
    with open_source(file) as source:
        for index, (line, item) in enumerate(
            watched(read_document(source).facts, source, "converting")
        ):
            try:
                reading = read_item(item, source_form)
            except UnreadableInput as error:
                raise UnreadableInput(error.reason, line=line) from error
            problems = _write(reading, target.value, outlet)
            _complain(problems, f"line {line}" if line else f"fact {index + 1}")
            failed += bool(problems)
    if outlet is not None:
        outlet.finish()
    raise typer.Exit(ISSUES if failed else DONE)


def written(fact: Fact, source: Shape, target: Shape) -> list[dict[str, Any]]:
    """The objects that a fact is in `target`: one, or the UI events that a runtime fact becomes."""
    if target == "ui" and source != "ui":
        return [write_fact(event, "ui") for event in ui_events(fact)]
    return [write_fact(fact, target)]


def _write(reading: Reading, target: str, outlet: "OutletStream | None") -> list[Issue]:
    if reading.fact is None:
        return reading.issues
    if outlet is not None:
        outlet.take(reading.fact)
        return []
    problems: list[Issue] = []
    shape = cast("Shape", target)
    for value in written(reading.fact, reading.shape, shape):
        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
        problems += shape_issues(value, shape)
    return problems


def _complain(issues: list[Issue], place: str) -> None:
    for issue in issues:
        report(f"{place}: {issue.code} at {issue.path}: {issue.message}")

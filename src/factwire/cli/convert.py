"""`factwire convert`: the same facts in another shape, one JSON object to a line."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from factwire.cli.documents import open_source, read_document
from factwire.cli.failures import DONE, ISSUES, report
from factwire.cli.progress import watched
from factwire.facts import (
    Fact,
    Issue,
    Shape,
    UnreadableInput,
    read_and_inspect,
    shape_issues,
    ui_events,
    write_fact,
)


class FromOption(StrEnum):
    """What can be converted."""

    auto = "auto"
    facts = "facts"
    runtime_event = "runtime-event"
    ui = "ui"


class ToOption(StrEnum):
    """What it can be converted to."""

    facts = "facts"
    runtime_event = "runtime-event"
    ui = "ui"


def convert(
    file: Annotated[str, typer.Argument(help="A file of facts, or - for standard input.")],
    *,
    source_form: Annotated[
        FromOption, typer.Option("--from", help="What the input is; auto looks at each fact.")
    ] = FromOption.auto,
    target: Annotated[ToOption, typer.Option("--to", help="The shape to write.")] = ToOption.facts,
) -> None:
    """Convert facts between shapes and write one JSON object to a line.

    What cannot be converted is named on standard error, and the exit code is 1.
    """
    failed = 0
    with open_source(file) as source:
        for index, (line, item) in enumerate(
            watched(read_document(source).facts, source, "converting")
        ):
            try:
                fact, issues = read_and_inspect(item, source_form.value)
            except UnreadableInput as error:
                raise UnreadableInput(error.reason, line=line) from error
            problems = issues if fact is None else _write(fact, target.value)
            _complain(problems, line or index + 1)
            failed += bool(problems)
    raise typer.Exit(ISSUES if failed else DONE)


def written(fact: Fact, shape: Shape) -> list[dict[str, Any]]:
    """The objects that a fact is in `shape`: one, or several UI events."""
    if shape == "ui":
        return [write_fact(event, "ui") for event in ui_events(fact)]
    return [write_fact(fact, shape)]


def _write(fact: Fact, shape: Shape) -> list[Issue]:
    problems: list[Issue] = []
    for value in written(fact, shape):
        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
        problems += shape_issues(value, shape)
    return problems


def _complain(issues: list[Issue], line: int) -> None:
    for issue in issues:
        report(f"fact {line}: {issue.code} at {issue.path}: {issue.message}")

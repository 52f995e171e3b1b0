"""`factwire validate`: is this a valid stream of facts, and if not, where and why."""

import sys
from collections import Counter
from enum import StrEnum
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from factwire.cli.fact_files import (
    FactDocument,
    FactSource,
    open_source,
    read_document,
    reread_items,
    watch_progress,
)
from factwire.cli.terminal import (
    DONE,
    ISSUES,
    UNUSABLE,
    count_of,
    print_remark,
    report,
    terminal_safe,
)
from factwire.facts import (
    FIELDS_FILLED_IN,
    INFORMATION,
    Issue,
    LenientReader,
    StreamInspector,
    UnreadableInput,
    inspect_fact,
    inspect_fixture,
    redact_text,
    schemas,
)
from factwire.facts.inspection import ReadFact
from factwire.facts.limits import ISSUES_KEPT

_ROWS_SHOWN: Final = 200


class ShapeOption(StrEnum):
    """The shapes a person can ask for."""

    auto = "auto"
    facts = "facts"
    runtime_event = "runtime-event"
    ui = "ui"


class ModeOption(StrEnum):
    """What the lifecycle verifier does with a violation."""

    fail_closed = "fail-closed"
    collect = "collect"
    off = "off"


class ValidationReport(msgspec.Struct):
    """The result of a validation. `issues` are bounded, `issues_omitted` counts the others."""

    facts: int = 0
    issues: list[Issue] = msgspec.field(default_factory=list[Issue])
    lines: list[int | None] = msgspec.field(default_factory=list[int | None])
    issues_omitted: int = 0
    invalid: bool = False
    error: UnreadableInput | None = None

    def add(self, found: list[Issue], line: int | None = None) -> None:
        """Keep issues, or count them once there are too many."""
        for issue in found:
            self.invalid = self.invalid or issue.code not in INFORMATION
            if len(self.issues) < ISSUES_KEPT:
                self.issues.append(_redact_issue(issue))
                self.lines.append(line)
            else:
                self.issues_omitted += 1

    @property
    def exit_code(self) -> int:
        """0 valid, 1 issues, 2 unreadable."""
        if self.error is not None:
            return UNUSABLE
        return ISSUES if self.invalid else DONE


def validate(
    file: Annotated[str, typer.Argument(help="A file of facts, or - for standard input.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    shape: Annotated[
        ShapeOption, typer.Option(help="The shape of the facts; auto detects it per fact.")
    ] = ShapeOption.auto,
    mode: Annotated[
        ModeOption,
        typer.Option(
            help="Lifecycle: collect reports every violation, fail-closed stops at the first, "
            "off skips the check."
        ),
    ] = ModeOption.collect,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Require every field of the shape, as a provider's gate does, also those that "
            "readers of files fill in.",
        ),
    ] = False,
) -> None:
    """Validate facts: a JSON fact, an array, one fact per line (NDJSON), or a fixture.

    Exit code 0: valid. 1: there are issues. 2: the input cannot be read.
    """
    with open_source(file) as source:
        result = inspect_source(source, shape, mode, strict=strict)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(_to_published(result)) + b"\n")
    else:
        _show_report(result, source.name)
    raise typer.Exit(result.exit_code)


def inspect_source(
    source: FactSource, shape: ShapeOption, mode: ModeOption, *, strict: bool
) -> ValidationReport:
    """Inspect everything in an input; an unreadable place ends the inspection there. Unless it is
    `strict`, fields that only a provider's gate requires are filled in and remarked.
    """
    result, reader = ValidationReport(), LenientReader(shape.value, reread_items(source))
    read = None if strict else reader.feed
    try:
        document = read_document(source)
        if document.fixture is not None:
            result.facts = len(document.fixture["events"])
            result.add(inspect_fixture(document.fixture, shape.value, mode.value, read=read))
        elif document.form == "object":
            _inspect_one(document, result, shape, read)
        else:
            inspector = StreamInspector(shape.value, mode.value, read=read)
            _inspect_all(document, result, source, inspector)
    except UnreadableInput as error:
        result.error = error
    print_remark(FIELDS_FILLED_IN, source.name, reader.remark)
    return result


def _inspect_one(
    document: FactDocument, result: ValidationReport, shape: ShapeOption, read: ReadFact | None
) -> None:
    for line, value in document.facts:
        result.facts += 1
        result.add(inspect_fact(value, shape.value, read=read), line)


def _inspect_all(
    document: FactDocument, result: ValidationReport, source: FactSource, inspector: StreamInspector
) -> None:
    gaps, gap_lines = 0, dict[str, int | None]()
    for line, item in watch_progress(document.facts, source, "validating"):
        try:
            found = inspector.feed(item)
        except UnreadableInput as error:
            raise UnreadableInput(error.reason, line=line) from error
        finally:
            result.facts = inspector.facts
        if found:
            result.add(found, line)
        if inspector.gap_count > gaps:
            gap_lines[f"$[{inspector.facts - 1}].sequence"] = line
        gaps = inspector.gap_count
        if inspector.stopped:
            break
    for gap in inspector.finish():
        result.add([gap], gap_lines.get(gap.path))


def _redact_issue(issue: Issue) -> Issue:
    """Paths and messages repeat keys and ids, which may hold a secret."""
    return Issue(issue.code, redact_text(issue.path)[0], redact_text(issue.message)[0])


def _to_published(result: ValidationReport) -> schemas.IssueReport:
    """The report in the form that `factwire schema json --name issue` describes."""
    error = result.error
    return schemas.IssueReport(
        valid=result.exit_code == DONE,
        issues=result.issues,
        facts=result.facts,
        issues_omitted=result.issues_omitted,
        error=error and schemas.ReportError(code=error.code, message=error.reason, line=error.line),
    )


def _show_report(result: ValidationReport, name: str) -> None:
    console = Console(highlight=False)
    if result.issues:
        console.print(_issue_table(result))
    if result.error is not None:
        report(f"{name}: {result.error}")
        return
    facts = count_of(result.facts, "fact")
    if not result.issues:
        console.print(f"[green]valid[/]: {facts}, no issues")
        return
    total = len(result.issues) + result.issues_omitted
    codes = Counter(issue.code for issue in result.issues)
    summary = ", ".join(f"{count} {code}" for code, count in codes.most_common())
    verdict = "[red]not valid[/]" if result.invalid else "[green]valid[/]"
    console.print(f"{verdict}: {facts}, {count_of(total, 'issue')} ({summary})", soft_wrap=True)


def _issue_table(result: ValidationReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    by_line = any(line is not None for line in result.lines)
    for title in (("line",) if by_line else ()) + ("code", "path", "message"):
        table.add_column(title, overflow="fold", no_wrap=title in ("line", "code"))
    rows = sorted(zip(result.issues, result.lines, strict=True), key=lambda row: row[1] or 0)
    for issue, line in rows[:_ROWS_SHOWN]:
        style = "dim" if issue.code in INFORMATION else None
        cells = [str(line or "")] if by_line else []
        found = (Text(terminal_safe(issue.path)), Text(terminal_safe(issue.message)))
        table.add_row(*cells, issue.code, *found, style=style)
    left = len(result.issues) + result.issues_omitted - _ROWS_SHOWN
    if left > 0:
        table.caption = f"and {left} more; use --json to see all"
    return table

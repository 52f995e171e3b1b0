"""`factwire evidence check`: a pack's assertions, each with the fact that shows it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.evidence.case_files import read_case_file
from factwire.cli.evidence.options import JsonOption, PackArgument
from factwire.cli.evidence.refusals import plainly
from factwire.cli.failures import DONE, ISSUES, CliError
from factwire.cli.sections.lines import DIM, LINE
from factwire.cli.terminal_text import counted, harmless

if TYPE_CHECKING:
    from factwire.evidence import AssertionResult, ReplayCase

_MARKS: Final = {True: ("✓ ", "green"), False: ("✗ ", "red")}


def check(
    pack: PackArgument,
    *,
    case: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Check these assertions as well; may be repeated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate the assertions of a pack against what its facts come to.

    Exit code 0: all hold. 1: some do not. 2: there are none, or they cannot be read.
    """
    with plainly():
        given = [read_case_file(path) for path in case or ()]
        results = _results(pack, given)
    if not results:
        raise CliError(_none(case or []))
    failed = sum(not result.passed for result in results)
    if as_json:
        report = {"ok": not failed, "results": results}
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    else:
        _show(results, failed)
    raise typer.Exit(ISSUES if failed else DONE)


def _results(path: Path, given: "list[ReplayCase]") -> "list[AssertionResult]":
    from factwire.evidence import cases_in, open_pack
    from factwire.evidence import check as evaluate

    with open_pack(path) as pack:
        kept = pack.manifest.source == "journal"
        return evaluate(pack.facts(), [*cases_in(pack), *given], kept=kept)


def _none(case: list[Path]) -> str:
    if not case:
        return "the pack carries no assertions; give some with --case FILE"
    names = ", ".join(harmless(str(path), LINE) for path in case)
    return f"there is nothing to check: {names} and the pack hold no assertions"


def _show(results: "list[AssertionResult]", failed: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    name: str | None = None
    for result in results:
        if result.case != name:
            name = result.case
            console.print(Text(harmless(name, LINE), style="bold"))
        words = harmless(msgspec.json.encode(result.assertion).decode(), LINE)
        line = Text.assemble("  ", _MARKS[result.passed], words)
        line.append(f"  {harmless(result.found, LINE)}", style=DIM)
        if result.fact_id is not None:
            line.append(f"  fact {harmless(result.fact_id, LINE)}", style=DIM)
        console.print(line)
    verdict = f"{failed} of {len(results)} failed" if failed else "all hold"
    console.print(f"{counted(len(results), 'assertion')}: {verdict}")

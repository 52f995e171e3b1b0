"""`factwire evidence verify`: is a pack what was written, by whom, and does the journal agree?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.evidence.journals import named_journal
from factwire.cli.evidence.options import JsonOption, PackArgument, data_folder
from factwire.cli.evidence.refusals import plainly
from factwire.cli.failures import DONE, ISSUES, CliError
from factwire.cli.journal.access import run
from factwire.cli.journal.progress import progress
from factwire.cli.terminal_text import counted, harmless

if TYPE_CHECKING:
    from factwire.evidence import JournalMatch, PackReport, TrustList

_ARCHIVE = {
    "as_written": "as it was written",
    "repacked": "packed anew by another tool; the contents are what counts",
    "changed": "changed outside the contents",
}
_TOUCHED = "not as it was written; see what was found in it above"
_JOURNAL = {
    "matches": "equal in facts and chain",
    "compacted": "equal; the journal has since removed facts on purpose, and vouches for them",
    "copy": "facts are equal; the journal is a copy, with a chain of its own",
    "differs": "not equal",
    "not_from_journal": "the pack was made from a file, so there is nothing to compare",
}


def verify(
    pack: PackArgument,
    *,
    journal: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Compare with the journal that the pack came from, too."),
    ] = None,
    trust: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Demand a signature of a key in this list.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="PUBLIC-KEY", help="Demand a signature of this key; repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check every byte of a pack, its signature, and that the summary follows from the facts.

    Exit code 0: all is right. 1: something is not, with the first range of bytes. 2: no pack, or it
    cannot be read. What is told of the archive around the contents never changes the exit code.
    """
    run(_verify(pack, journal, _trusted(trust, key), as_json=as_json))


def _trusted(file: Path | None, keys: list[str] | None) -> "TrustList | None":
    """The keys that are demanded; None where any will do."""
    from factwire.evidence import TrustList, load_trust, trusting
    from factwire.evidence.signatures import ensure_strong

    if file is None and not keys:
        return None
    with plainly():
        listed = load_trust(file) if file is not None else TrustList()
        given = trusting({f"the key given ({text[:8]}…)": text for text in keys or ()})
        for each in given.keys:
            ensure_strong(each.public_key)
        return TrustList(keys=(*listed.keys, *given.keys))


async def _verify(
    path: Path, journal: str | None, demanded: "TrustList | None", *, as_json: bool
) -> int:
    from factwire.evidence import PackError

    try:
        with plainly():
            report = _report(path, demanded)
            match = await _matched(path, journal) if journal is not None and report.ok else None
    except CliError as refused:
        error = refused.__cause__
        if not as_json or not isinstance(error, PackError):
            raise
        shown = {"ok": False, "error": {"code": error.code, "message": str(error)}}
        sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
        return refused.exit_code
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode({"pack": report, "journal": match}) + b"\n")
    else:
        _show(report, match)
    return DONE if report.ok and (match is None or match.ok) else ISSUES


def _report(path: Path, demanded: "TrustList | None") -> "PackReport":
    from factwire.evidence import known_trust, verify_pack

    trust = demanded or known_trust(data_folder())
    with progress("verifying") as advance:
        return verify_pack(path, trust=trust, demand_trust=demanded is not None, progress=advance)


async def _matched(path: Path, url: str) -> "JournalMatch":
    from factwire.evidence import match_journal, open_pack

    async with named_journal(url) as journal:
        with open_pack(path) as pack:
            return await match_journal(pack, journal)


def _show(report: "PackReport", match: "JournalMatch | None") -> None:
    console = Console(highlight=False, soft_wrap=True)
    facts = counted(report.facts, "fact")
    if report.ok:
        console.print(f"[green]intact[/]: {facts}, {_signer(report)}")
    elif report.contents_ok:
        console.print(Text.assemble(("not accepted", "red"), f": {facts}, {_signer(report)}"))
    else:
        console.print(Text.assemble(("changed", "red"), f": {_signer(report)}"))
    for finding in report.findings:
        console.print(Text.assemble(("  ✗ ", "red"), f"{finding.code}: {harmless(str(finding))}"))
    _line(console, "archive", _archive(report))
    if report.contents_ok:
        _line(console, "derived", _derived(report))
    if match is not None:
        _line(console, "journal", _journal(match))
        for difference in match.differences:
            words = f"{difference.code} at {difference.seq}: {harmless(difference.message)}"
            console.print(Text.assemble(("  ✗ ", "red"), words))
        if match.more:
            console.print(f"  and {match.more:,} more")
    console.print(Text(f"pack sha256:{report.digest}", style="dim"))


def _line(console: Console, name: str, words: str) -> None:
    console.print(Text.assemble((f"{name:<8} ", "bold"), words))


def _signer(report: "PackReport") -> str:
    signer = report.signer
    words = {
        "trusted": f"signed by {harmless(signer.name or '', 80)} ({signer.key_id})",
        "unknown": f"signed by a key that no trust list names ({signer.key_id})",
        "unsigned": "unsigned: hashes hold, and anybody could have made them",
        "invalid": f"the signature of {signer.key_id} is not of this pack",
    }
    return words[signer.state]


def _archive(report: "PackReport") -> str:
    if report.container == "changed" and not report.contents_ok:
        return _TOUCHED
    where = report.container_offset
    return _ARCHIVE[report.container] + ("" if where is None else f", first at byte {where}")


def _derived(report: "PackReport") -> str:
    if report.derived_again:
        return "follows from the facts"
    return f"not compared: Factwire {harmless(report.producer, 40)} made it, whose rules may differ"


def _journal(match: "JournalMatch") -> str:
    counts = f"{counted(match.facts, 'fact')}, {counted(match.anchors, 'anchor')} compared"
    gone = f", {match.removed:,} removed since" if match.removed else ""
    return f"{_JOURNAL[match.state]} ({counts}{gone})"

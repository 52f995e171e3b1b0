"""`factwire evidence`: a history in one file that anybody can check.

The summary of a pack names calls and decisions; what was asked, and with which command or path a
tool was called, stands in the facts. Each of them is verified before it is read, and of a long run
only the beginning is read, so that showing a pack takes no longer for years than for a day.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from factwire.cli.evidence_packs import (
    JsonOption,
    PackArgument,
    export,
    key_folder,
    open_named_journal,
    read_case_file,
    refuse_plainly,
)
from factwire.cli.targets import run_work, show_progress
from factwire.cli.terminal import (
    DIM,
    DONE,
    ISSUES,
    LINE,
    CliError,
    build_line,
    count_of,
    terminal_safe,
    to_text,
)
from factwire.facts import Fact, id_of, to_person
from factwire.facts.json_values import object_at

if TYPE_CHECKING:
    from factwire.evidence import (
        AssertionResult,
        EvidencePack,
        JournalMatch,
        Pack,
        PackReport,
        ReplayCase,
        TrustList,
    )


FACTS_READ: Final = 20_000
"""Facts that are read before a pack is shown: a fraction of a second."""

_DESCRIPTIVE_ARGS: Final = ("command", "argv", "path", "file_path", "url", "query", "pattern")
"""Arguments that say what a call is about, the most telling first."""


class CallSummaries:
    """Prompts by turn, and by call what it was about."""

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        self._calls: dict[str, str] = {}

    def about(self, call: str | None) -> str | None:
        """What a call was about, where its facts say so."""
        return None if call is None else self._calls.get(call)

    def note(self, fact: Fact) -> None:
        turn, call = id_of(fact, "turnId"), id_of(fact, "toolCallId")
        prompt = fact.payload.get("prompt")
        if turn is not None and isinstance(prompt, str) and prompt:
            self.prompts.setdefault(turn, prompt)
        about = _describe_args(fact.payload.get("args"))
        if call is not None and about is not None:
            self._calls[call] = about


def summarize_calls(facts: Iterable[Fact]) -> CallSummaries:
    """What the first facts of a pack say was asked and done."""
    found = CallSummaries()
    for fact in islice(facts, FACTS_READ):
        found.note(fact)
    return found


def _describe_args(args: object) -> str | None:
    known = object_at(args) or {}
    values = (known[name] for name in _DESCRIPTIVE_ARGS if known.get(name))
    first = next(values, None)
    return None if first is None else to_text(first)


Thing = TypeVar("Thing")
Line = Callable[[Any], Text]

_DECISION_FIELDS: Final = ("decision", "reasonCode", "mode", "actionType")
_HASH: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")

_SHOWN: Final = 10
"""Rows of each list that are shown to a person."""


def show(pack: PackArgument, *, as_json: JsonOption = False) -> None:
    """Show a pack: how the run ended, tools, decisions, results, reviews, and what is missing.

    Everything shown has been checked against the pack's hashes: the summary, and the first facts
    for prompts and commands. Use `verify` to check the rest. --json prints the whole summary.
    """
    from factwire.evidence import open_pack

    with refuse_plainly(), open_pack(pack) as opened:
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode(opened.summary) + b"\n")
            return
        _show_pack(opened)


def _show_pack(pack: "Pack") -> None:
    console = Console(highlight=False)
    summary = pack.summary
    summaries = summarize_calls(pack.facts())
    for name, words in _headline_rows(pack, summary):
        console.print(Text.assemble((f"{name:<8}", "bold"), words))
    for title, total, rows, line in _sections(summary, summaries):
        if rows:
            console.print()
            _print_section(console, title, total, [line(row) for row in rows[:_SHOWN]])


def _print_section(console: Console, title: str, total: int, lines: list[Text]) -> None:
    console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Padding.indent(line, 2))
    if total > len(lines):
        words = f"{total - len(lines):,} more; see the files in the pack"
        console.print(Padding.indent(Text(words, style=DIM), 2))


def _headline_rows(pack: "Pack", summary: "EvidencePack") -> list[tuple[str, str]]:
    run = summary.runtime
    turns = f"{count_of(run.turns, 'turn')}: {run.turns_completed} completed"
    turns += f", {run.turns_failed} failed, {run.turns_canceled} canceled"
    tools = f"{count_of(run.tool_calls, 'tool call')}, {run.tool_failures} failed"
    tokens = f"{run.input_tokens:,} in, {run.output_tokens:,} out"
    rows = [
        ("thread", _threads_text(summary)),
        ("status", terminal_safe(run.status, 40)),
        ("facts", f"{run.facts:,}  {_times_text(run.started_at, run.ended_at)}"),
        ("turns", turns),
        ("tools", tools if run.tool_calls else ""),
        ("models", terminal_safe(", ".join(run.models), 80)),
        ("tokens", tokens if run.input_tokens or run.output_tokens else ""),
        ("journal", _origin_text(summary)),
        ("signed", _signature_text(pack)),
        ("checked", "what is shown here; use factwire evidence verify to check all facts"),
    ]
    return [(name, words) for name, words in rows if words]


def _threads_text(summary: "EvidencePack") -> str:
    """The first thread, which the pack is about where there are others of subagents."""
    more = summary.totals.get("threads", 0) - 1
    names = [terminal_safe(model.thread_id, 80) for model in summary.threads[:1]]
    return " and ".join([*names, *([f"{more:,} more"] if more > 0 else [])])


def _origin_text(summary: "EvidencePack") -> str:
    origin = summary.journal
    if origin is None:
        return "none; the facts came from a file"
    return f"epoch {terminal_safe(origin.epoch, 40)}, {origin.first_seq:,}–{origin.last_seq:,}"


def _signature_text(pack: "Pack") -> str:
    from factwire.evidence import fingerprint

    if pack.signature is None:
        return "no"
    return (
        f"{_shorten_hash(fingerprint(pack.signature.public_key))} (use verify to see whose it is)"
    )


def _times_text(first: str | None, last: str | None) -> str:
    return terminal_safe(f"{first or 'unknown'} – {last or 'unknown'}", 80)


def _sections(
    pack: "EvidencePack", summaries: CallSummaries
) -> list[tuple[str, int, Sequence[Any], Line]]:
    total = pack.totals.get
    failed = pack.runtime.tool_failures
    tool, decision = partial(_tool_line, summaries), partial(_decision_line, summaries)
    prompts = list(summaries.prompts.values())
    return [
        ("Prompts", len(prompts), prompts, _prompt_line),
        ("Known gaps", total("gaps", 0), pack.known_gaps, _gap_line),
        ("Failed tools", failed, pack.tool_failures, tool),
        ("Tools", total("tools", 0), pack.tool_calls, tool),
        ("Decisions", total("decisions", 0), pack.decisions, decision),
        ("Verification", total("verifications", 0), pack.verifications, _verification_line),
        ("Reviews", total("reviews", 0), pack.reviews, _review_line),
        ("Artifacts", total("artifacts", 0), pack.artifacts, _artifact_line),
        ("Evidence", total("evidence", 0), pack.evidence, _evidence_line),
        ("Content", total("blobs", 0), pack.blobs, _blob_line),
    ]


def _prompt_line(prompt: str) -> Text:
    return Text(f"> {terminal_safe(prompt, LINE)}")


def _gap_line(gap: Any) -> Text:
    return build_line("warning", gap.code, gap.subject, gap.message)


def _tool_line(summaries: CallSummaries, call: Any) -> Text:
    name = call.title or call.tool_name or call.tool_call_id
    about = summaries.about(call.tool_call_id)
    return build_line(call.state, name, about, call.tool_call_id, call.failure_category)


def _decision_line(summaries: CallSummaries, note: Any) -> Text:
    """What was decided, by whom and about what: `action.resolved  approved  by ann  make test`."""
    field = note.payload.get
    decision = next((field(name) for name in _DECISION_FIELDS if field(name)), None)
    by = to_person(field("decidedBy"))
    about = summaries.about(note.tool_call_id) or note.action_id or note.tool_call_id
    return build_line(note.status, note.event_class, decision, by and f"by {by}", about)


def _verification_line(check: Any) -> Text:
    right = check.outcome in ("passed", "completed", "approved", "ok", "success")
    return build_line("completed" if right else "failed", check.title, check.outcome, check.summary)


def _review_line(review: Any) -> Text:
    status = "completed" if review.status == "completed" else "pending"
    return build_line(status, review.review_id, review.verdict, review.reviewer, review.summary)


def _artifact_line(artifact: Any) -> Text:
    name = artifact.title or artifact.artifact_id
    return build_line(artifact.status, name, artifact.kind, artifact.version_id)


def _evidence_line(ref: Any) -> Text:
    return build_line("completed", ref.title or ref.evidence_id, ref.kind, ref.status)


def _blob_line(note: Any) -> Text:
    good = note.state in ("included", "present")
    size = None if note.bytes is None else f"{note.bytes:,} bytes"
    return build_line("completed" if good else "warning", _shorten_hash(note.ref), note.state, size)


def _shorten_hash(ref: str) -> str:
    """A ref with the beginning of its hash, which no line has to break."""
    return _HASH.sub(r"\1…", ref)


_MARKS: Final = {True: ("✓ ", "green"), False: ("✗ ", "red")}


def check(
    pack: PackArgument,
    *,
    case: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Also check these assertions; can be repeated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate the assertions of a pack against the state its facts produce.

    Exit code 0: all hold. 1: some do not. 2: there are none, or they cannot be read.
    """
    with refuse_plainly():
        cases = [read_case_file(path) for path in case or ()]
        results = _evaluate(pack, cases)
    if not results:
        raise CliError(_nothing_to_check(case or []))
    failed = sum(not result.passed for result in results)
    if as_json:
        report = {"ok": not failed, "results": results}
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    else:
        _show_assertions(results, failed)
    raise typer.Exit(ISSUES if failed else DONE)


def _evaluate(path: Path, cases: "list[ReplayCase]") -> "list[AssertionResult]":
    from factwire.evidence import check_cases as evaluate
    from factwire.evidence import open_pack, read_cases

    with open_pack(path) as pack:
        kept = pack.manifest.source == "journal"
        return evaluate(pack.facts(), [*read_cases(pack), *cases], kept=kept)


def _nothing_to_check(case: list[Path]) -> str:
    if not case:
        return "the pack contains no assertions; provide some with --case FILE"
    names = ", ".join(terminal_safe(str(path), LINE) for path in case)
    return f"nothing to check: neither {names} nor the pack contains assertions"


def _show_assertions(results: "list[AssertionResult]", failed: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    name: str | None = None
    for result in results:
        if result.case != name:
            name = result.case
            console.print(Text(terminal_safe(name, LINE), style="bold"))
        words = terminal_safe(msgspec.json.encode(result.assertion).decode(), LINE)
        line = Text.assemble("  ", _MARKS[result.passed], words)
        line.append(f"  {terminal_safe(result.found, LINE)}", style=DIM)
        if result.fact_id is not None:
            line.append(f"  fact {terminal_safe(result.fact_id, LINE)}", style=DIM)
        console.print(line)
    verdict = f"{failed} of {len(results)} failed" if failed else "all hold"
    console.print(f"{count_of(len(results), 'assertion')}: {verdict}")


_ARCHIVE = {
    "as_written": "as written",
    "repacked": "repacked by another tool; the contents are unaffected",
    "changed": "changed, but not its contents",
}
_TOUCHED = "changed; see the findings above"
_JOURNAL = {
    "matches": "same facts and hash chain",
    "compacted": "same; the journal has since removed facts on purpose and accounts for them",
    "copy": "same facts; the journal is a copy with its own chain",
    "differs": "different",
    "not_from_journal": "the pack was made from a file, so there is nothing to compare",
}


def verify(
    pack: PackArgument,
    *,
    journal: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Also compare with the journal that the pack came from."),
    ] = None,
    trust: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Require a signature by a key in this list.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PUBLIC-KEY", help="Require a signature by this key; can be repeated."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check every byte of a pack, its signature, and that the summary matches the facts; of a file
    with several packs, such as that of a team run, all of them.

    Exit code 0: everything is correct. 1: something is not, with the first range of bytes. 2: not a
    pack, or it cannot be read. The state of the archive around the contents never changes the exit
    code.
    """
    run_work(_verify_pack(pack, journal, _demanded_keys(trust, key), as_json=as_json))


def _demanded_keys(file: Path | None, keys: list[str] | None) -> "TrustList | None":
    """The keys that are demanded; None where any will do."""
    from factwire.evidence import TrustList, build_trust_list, load_trust
    from factwire.evidence.signatures import ensure_strong

    if file is None and not keys:
        return None
    with refuse_plainly():
        listed = load_trust(file) if file is not None else TrustList()
        named = build_trust_list({f"the key given ({text[:8]}…)": text for text in keys or ()})
        for each in named.keys:
            ensure_strong(each.public_key)
        return TrustList(keys=(*listed.keys, *named.keys))


async def _verify_pack(
    path: Path, journal: str | None, demanded: "TrustList | None", *, as_json: bool
) -> int:
    from factwire.evidence import PackError

    try:
        with refuse_plainly():
            report = _build_report(path, demanded)
            match = (
                await _match_journal(path, journal) if journal is not None and report.ok else None
            )
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
        _show_report(report, match)
    return DONE if report.ok and (match is None or match.ok) else ISSUES


def _build_report(path: Path, demanded: "TrustList | None") -> "PackReport":
    from factwire.evidence import load_known_trust, verify_file

    trust = demanded or load_known_trust(key_folder())
    with show_progress("verifying") as advance:
        return verify_file(path, trust=trust, demand_trust=demanded is not None, progress=advance)


async def _match_journal(path: Path, url: str) -> "JournalMatch":
    from factwire.evidence import match_journal, open_pack

    async with open_named_journal(url) as journal:
        with open_pack(path) as pack:
            return await match_journal(pack, journal)


def _show_report(report: "PackReport", match: "JournalMatch | None") -> None:
    console = Console(highlight=False, soft_wrap=True)
    facts = count_of(report.facts, "fact")
    if report.ok:
        console.print(f"[green]intact[/]: {facts}, {_signer_text(report)}")
    elif report.contents_ok:
        console.print(Text.assemble(("not accepted", "red"), f": {facts}, {_signer_text(report)}"))
    else:
        console.print(Text.assemble(("changed", "red"), f": {_signer_text(report)}"))
    for finding in report.findings:
        console.print(
            Text.assemble(("  ✗ ", "red"), f"{finding.code}: {terminal_safe(str(finding))}")
        )
    _print_line(console, "archive", _archive_text(report))
    if report.contents_ok:
        _print_line(console, "derived", _derived_text(report))
    if match is not None:
        _print_line(console, "journal", _match_text(match))
        for difference in match.differences:
            words = f"{difference.code} at {difference.seq}: {terminal_safe(difference.message)}"
            console.print(Text.assemble(("  ✗ ", "red"), words))
        if match.more:
            console.print(f"  and {match.more:,} more")
    console.print(Text(f"pack sha256:{report.digest}", style="dim"))


def _print_line(console: Console, name: str, words: str) -> None:
    console.print(Text.assemble((f"{name:<8} ", "bold"), words))


def _signer_text(report: "PackReport") -> str:
    signer = report.signer
    words = {
        "trusted": f"signed by {terminal_safe(signer.name or '', 80)} ({signer.key_id})",
        "unknown": f"signed by a key that is not in a trust list ({signer.key_id})",
        "unsigned": "unsigned: hashes match, but the author cannot be verified",
        "invalid": f"the signature by {signer.key_id} does not match this pack",
    }
    return words[signer.state]


def _archive_text(report: "PackReport") -> str:
    if report.container == "changed" and not report.contents_ok:
        return _TOUCHED
    where = report.container_offset
    return _ARCHIVE[report.container] + ("" if where is None else f", first at byte {where}")


def _derived_text(report: "PackReport") -> str:
    if report.derived_again:
        return "matches the facts"
    producer = terminal_safe(report.producer, 40)
    return f"not compared: made by Factwire {producer}, whose rules may differ"


def _match_text(match: "JournalMatch") -> str:
    counts = f"{count_of(match.facts, 'fact')}, {count_of(match.anchors, 'anchor')} compared"
    gone = f", {match.removed:,} removed since" if match.removed else ""
    return f"{_JOURNAL[match.state]} ({counts}{gone})"


def key(
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The key file; in the data folder by default."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a signing key that only you can read, or show the existing one; print its public
    half.

    A key is never overwritten. Give the public key to the people who should trust your packs.
    """
    from factwire.evidence import create_key, encode_public_key, fingerprint, load_key
    from factwire.evidence.signatures import key_path

    path = file or key_path(key_folder())
    with refuse_plainly():
        made = not path.exists()
        public = encode_public_key(create_key(path) if made else load_key(path))
        key_id = fingerprint(public)
    if as_json:
        shown = {"file": str(path), "created": made, "publicKey": public, "keyId": key_id}
        sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{'made' if made else 'kept'} {terminal_safe(str(path))}", markup=False)
    console.print(f"public key   {public}", markup=False)
    console.print(f"fingerprint  {key_id}", markup=False)


def trust(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the key's owner.")],
    public_key: Annotated[str, typer.Argument(metavar="PUBLIC-KEY", help="The key as base64.")],
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="The trust list; in the data folder by default."
        ),
    ] = None,
) -> None:
    """Add a public key to a trust list, under a name.

    Compare the fingerprint with the owner through another channel than the one the key came
    through.
    """
    from factwire.evidence import fingerprint
    from factwire.evidence.signatures import add_trusted_key as add
    from factwire.evidence.signatures import trust_path

    path = file or trust_path(key_folder())
    with refuse_plainly():
        add(path, name, public_key)
        key_id = fingerprint(public_key)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{terminal_safe(name)} is {key_id}", markup=False)
    console.print(f"added to {terminal_safe(str(path))}", markup=False)


evidence = typer.Typer(
    name="evidence",
    help="Export a history as one signed file, and verify, show and test such files.",
    no_args_is_help=True,
)
for command in (export, verify, show, check, key, trust):
    evidence.command()(command)

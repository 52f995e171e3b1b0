"""`factwire evidence show`: what a pack says about a run, for a person."""

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from factwire.cli.evidence.deeds import Deeds, deeds_of
from factwire.cli.evidence.options import JsonOption, PackArgument
from factwire.cli.evidence.refusals import plainly
from factwire.cli.sections.lines import DIM, LINE, described
from factwire.cli.terminal_text import counted, harmless

if TYPE_CHECKING:
    from factwire.evidence import EvidencePack, Pack

Thing = TypeVar("Thing")
Line = Callable[[Any], Text]

_SAID: Final = ("decision", "reasonCode", "mode", "actionType")
_HASH: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")

_SHOWN: Final = 10
"""Rows of each list that are shown to a person."""


def show(pack: PackArgument, *, as_json: JsonOption = False) -> None:
    """Show a pack: how the run ended, tools, decisions, results, reviews, and what is missing.

    What is shown has been checked against the pack's hashes: the summary, and the first facts for
    prompts and commands. `verify` reads the rest, too. --json prints the whole summary.
    """
    from factwire.evidence import open_pack

    with plainly(), open_pack(pack) as opened:
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode(opened.summary) + b"\n")
            return
        _show(opened)


def _show(pack: "Pack") -> None:
    console = Console(highlight=False)
    summary = pack.summary
    deeds = deeds_of(pack.facts())
    for name, words in _headline(pack, summary):
        console.print(Text.assemble((f"{name:<8}", "bold"), words))
    for title, total, rows, line in _sections(summary, deeds):
        if rows:
            console.print()
            _print_section(console, title, total, [line(row) for row in rows[:_SHOWN]])


def _print_section(console: Console, title: str, total: int, lines: list[Text]) -> None:
    console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Padding.indent(line, 2))
    if total > len(lines):
        words = f"{total - len(lines):,} more; the pack's own files have them all"
        console.print(Padding.indent(Text(words, style=DIM), 2))


def _headline(pack: "Pack", summary: "EvidencePack") -> list[tuple[str, str]]:
    run = summary.runtime
    turns = f"{counted(run.turns, 'turn')}: {run.turns_completed} completed"
    turns += f", {run.turns_failed} failed, {run.turns_canceled} canceled"
    tools = f"{counted(run.tool_calls, 'tool call')}, {run.tool_failures} failed"
    tokens = f"{run.input_tokens:,} in, {run.output_tokens:,} out"
    rows = [
        ("thread", _threads(summary)),
        ("status", harmless(run.status, 40)),
        ("facts", f"{run.facts:,}  {_times(run.started_at, run.ended_at)}"),
        ("turns", turns),
        ("tools", tools if run.tool_calls else ""),
        ("models", harmless(", ".join(run.models), 80)),
        ("tokens", tokens if run.input_tokens or run.output_tokens else ""),
        ("journal", _journal(summary)),
        ("signed", _signed(pack)),
        ("checked", "what is shown here; factwire evidence verify reads all facts"),
    ]
    return [(name, words) for name, words in rows if words]


def _threads(summary: "EvidencePack") -> str:
    """The first thread, which the pack is about where there are others of subagents."""
    more = summary.totals.get("threads", 0) - 1
    names = [harmless(model.thread_id, 80) for model in summary.threads[:1]]
    return " and ".join([*names, *([f"{more:,} more"] if more > 0 else [])])


def _journal(summary: "EvidencePack") -> str:
    origin = summary.journal
    if origin is None:
        return "none; the facts came from a file"
    return f"epoch {harmless(origin.epoch, 40)}, {origin.first_seq:,}–{origin.last_seq:,}"


def _signed(pack: "Pack") -> str:
    from factwire.evidence import fingerprint

    if pack.signature is None:
        return "no"
    return f"{_short(fingerprint(pack.signature.public_key))} (verify says whose it is)"


def _times(first: str | None, last: str | None) -> str:
    return harmless(f"{first or 'unknown'} – {last or 'unknown'}", 80)


def _sections(pack: "EvidencePack", deeds: Deeds) -> list[tuple[str, int, Sequence[Any], Line]]:
    total = pack.totals.get
    failed = pack.runtime.tool_failures
    tool, decision = partial(_tool, deeds), partial(_decision, deeds)
    prompts = list(deeds.prompts.values())
    return [
        ("Prompts", len(prompts), prompts, _prompt),
        ("Known gaps", total("gaps", 0), pack.known_gaps, _gap),
        ("Failed tools", failed, pack.tool_failures, tool),
        ("Tools", total("tools", 0), pack.tool_calls, tool),
        ("Decisions", total("decisions", 0), pack.decisions, decision),
        ("Verification", total("verifications", 0), pack.verifications, _verification),
        ("Reviews", total("reviews", 0), pack.reviews, _review),
        ("Artifacts", total("artifacts", 0), pack.artifacts, _artifact),
        ("Evidence", total("evidence", 0), pack.evidence, _evidence),
        ("Content", total("blobs", 0), pack.blobs, _blob),
    ]


def _prompt(prompt: str) -> Text:
    return Text(f"> {harmless(prompt, LINE)}")


def _gap(gap: Any) -> Text:
    return described("warning", gap.code, gap.subject, gap.message)


def _tool(deeds: Deeds, call: Any) -> Text:
    name = call.title or call.tool_name or call.tool_call_id
    about = deeds.about(call.tool_call_id)
    return described(call.state, name, about, call.tool_call_id, call.failure_category)


def _decision(deeds: Deeds, note: Any) -> Text:
    """What was decided, by whom and about what: `action.resolved  approved  by ann  make test`."""
    told = note.payload.get
    said = next((told(name) for name in _SAID if told(name)), None)
    by = told("decidedBy")
    about = deeds.about(note.tool_call_id) or note.action_id or note.tool_call_id
    return described(note.status, note.event_class, said, by and f"by {by}", about)


def _verification(check: Any) -> Text:
    right = check.outcome in ("passed", "completed", "approved", "ok", "success")
    return described("completed" if right else "failed", check.title, check.outcome, check.summary)


def _review(review: Any) -> Text:
    status = "completed" if review.status == "completed" else "pending"
    return described(status, review.review_id, review.verdict, review.reviewer, review.summary)


def _artifact(artifact: Any) -> Text:
    name = artifact.title or artifact.artifact_id
    return described(artifact.status, name, artifact.kind, artifact.version_id)


def _evidence(ref: Any) -> Text:
    return described("completed", ref.title or ref.evidence_id, ref.kind, ref.status)


def _blob(note: Any) -> Text:
    good = note.state in ("included", "present")
    size = None if note.bytes is None else f"{note.bytes:,} bytes"
    return described("completed" if good else "warning", _short(note.ref), note.state, size)


def _short(ref: str) -> str:
    """A ref with the beginning of its hash, which no line has to break."""
    return _HASH.sub(r"\1…", ref)

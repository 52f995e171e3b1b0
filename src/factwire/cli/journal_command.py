"""`factwire journal`: look at, check, move and shrink a journal, whichever backend it is on."""

import re
import sys
from collections import deque
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from factwire.cli.journal_transfer import export, import_
from factwire.cli.targets import (
    EdgeOption,
    JournalUrl,
    edge_client,
    edge_url,
    open_for_reading,
    open_for_writing,
    run_work,
    show_progress,
)
from factwire.cli.terminal import DONE, ISSUES, CliError, count_of, terminal_safe
from factwire.facts import Fact
from factwire.journal import (
    CompactionPolicy,
    Cursor,
    CursorExpired,
    Damage,
    Filter,
    FollowerStats,
    Journal,
    JournalBusy,
    JournalCorrupt,
    RetentionPolicy,
    VerifyReport,
)
from factwire.journal.chunks import decode_line
from factwire.journal.filter import find_thread_id
from factwire.journal.retention import RemovalRehearsal, RemovalTotals


class Info(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures; `cursor` is the head as text, facts up to `floor` were removed."""

    epoch: str
    head: int
    cursor: str
    floor: int
    facts: int
    threads: int
    bytes: int
    followers: tuple[FollowerStats, ...]
    last_activity: str | None


def info(
    url: JournalUrl, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Show epoch, head, facts, threads, size, followers and last activity."""
    run_work(_info(url, as_json=as_json))


async def _info(url: str, *, as_json: bool) -> int:
    async with open_for_reading(url) as journal:
        found = await _figures(journal)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        _show_info(found)
    return DONE


async def _figures(journal: Journal) -> Info:
    stats = await journal.stats()
    return Info(
        epoch=stats.head.epoch,
        head=stats.head.seq,
        cursor=str(stats.head),
        floor=stats.floor.seq,
        facts=stats.facts,
        threads=stats.threads,
        bytes=stats.bytes,
        followers=stats.followers,
        last_activity=await _last_activity(journal, stats.head),
    )


async def _last_activity(journal: Journal, head: Cursor) -> str | None:
    """When the newest fact says that it was made; it is the one fact that is never removed."""
    if head.seq == 0:
        return None
    async for batch in journal.read(Cursor(head.epoch, head.seq - 1), limit=1):
        for _, fact in batch.facts():
            return fact.created_at
    return None


def _show_info(found: Info) -> None:
    rows = [
        ("epoch", found.epoch),
        ("head", f"{found.head:,}"),
        ("removed up to", f"{found.floor:,}" if found.floor else ""),
        ("facts", f"{found.facts:,}"),
        ("threads", f"{found.threads:,}"),
        ("size", decimal(found.bytes)),
        *(("follower", f"{each.name}, {each.lag:,} behind") for each in found.followers),
        ("last activity", found.last_activity or "never"),
    ]
    console = Console(highlight=False, soft_wrap=True)
    for name, value in rows:
        if value:
            console.print(Text.assemble((f"{name:<14} ", "bold"), terminal_safe(value, 80)))


ProjectOption = Annotated[str | None, typer.Option(help="Only facts of this project.")]
SessionOption = Annotated[str | None, typer.Option(help="Only facts of this session.")]
ThreadOption = Annotated[str | None, typer.Option(help="Only facts of this thread.")]
RunOption = Annotated[str | None, typer.Option("--run", help="Only facts of this run.")]
TurnOption = Annotated[str | None, typer.Option(help="Only facts of this turn.")]
TaskOption = Annotated[str | None, typer.Option(help="Only facts of this task.")]
ClassesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--class", metavar="PREFIX", help="Only this class and its subclasses; can be repeated."
    ),
]
AfterOption = Annotated[
    str | None, typer.Option(metavar="CURSOR", help="Start after this cursor or fact id.")
]


def build_filter(classes: list[str] | None, **ids: str | None) -> Filter | None:
    """The filter that the options ask for; None for all facts."""
    wanted = msgspec.structs.replace(Filter(classes=tuple(classes or ())), **ids)
    return None if wanted == Filter() else wanted


def cat(
    url: JournalUrl,
    *,
    after: AfterOption = None,
    project: ProjectOption = None,
    session: SessionOption = None,
    thread: ThreadOption = None,
    run_id: RunOption = None,
    turn: TurnOption = None,
    task: TaskOption = None,
    classes: ClassesOption = None,
    limit: Annotated[int | None, typer.Option(min=0, help="The maximum number of facts.")] = None,
) -> None:
    """Write facts to standard output as they are stored, one per line (NDJSON)."""
    wanted = build_filter(
        classes, project=project, session=session, thread=thread, run=run_id, turn=turn, task=task
    )
    run_work(_cat(url, after, wanted, limit))


async def _cat(url: str, after: str | None, wanted: Filter | None, limit: int | None) -> int:
    async with open_for_reading(url) as journal:
        async for batch in journal.read(after, filter=wanted, limit=limit):
            sys.stdout.buffer.write(batch.data)
    sys.stdout.buffer.flush()
    return DONE


Row = tuple[int, bytes]
"""A seq and the stored line."""

_FIRST_WINDOW: Final = 64
_WIDER: Final = 8
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
_EXCERPT_FIELDS: Final = (
    "text",
    "delta",
    "message",
    "prompt",
    "output",
    "summary",
    "error",
    "reason",
)
"""Payload fields that say most, best first; without one the payload is shown as JSON."""

_EXCERPT: Final = 120
_STYLES: Final = {
    "action": "yellow",
    "error": "red",
    "model": "green",
    "reasoning": "bright_black",
    "run": "blue",
    "text": "green",
    "tool": "cyan",
    "turn": "magenta",
}
"""Family of a class → its colour."""


def tail(
    url: JournalUrl,
    *,
    lines: Annotated[
        int, typer.Option(min=0, help="Start with this many of the newest facts.")
    ] = 10,
    after: AfterOption = None,
    project: ProjectOption = None,
    session: SessionOption = None,
    thread: ThreadOption = None,
    run_id: RunOption = None,
    turn: TurnOption = None,
    task: TaskOption = None,
    classes: ClassesOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts as they are stored (NDJSON).")
    ] = False,
) -> None:
    """Follow a journal live, one readable line per fact, until Ctrl-C."""
    wanted = build_filter(
        classes, project=project, session=session, thread=thread, run=run_id, turn=turn, task=task
    )
    show = _JsonRows() if as_json else _TextRows()
    run_work(_tail(url, after, lines, wanted, show))


async def _tail(
    url: str, after: str | None, lines: int, wanted: Filter | None, show: "_JsonRows | _TextRows"
) -> int:
    async with open_for_reading(url) as journal:
        start: Cursor | str | None = after
        if after is None:
            rows, start = await read_newest(journal, lines, wanted)
            show(rows)
        async for batch in journal.follow(start, filter=wanted):
            show(list(zip(batch.seqs, batch.lines(), strict=True)))
    return DONE


async def read_newest(
    journal: Journal, count: int, wanted: Filter | None
) -> tuple[list[Row], Cursor]:
    """The last `count` facts that pass, and the cursor after them.

    It looks at a window before the head, and at a wider one until enough have passed.
    """
    stats = await journal.stats()
    head, window = stats.head, _FIRST_WINDOW if count else 0
    while True:
        start = max(head.seq - window, stats.floor.seq)
        found: deque[Row] = deque(maxlen=count)
        with suppress(CursorExpired):
            await _read_window(found, journal, Cursor(head.epoch, start), head, wanted)
            if len(found) == count or start == stats.floor.seq:
                return list(found), head
        if start == stats.floor.seq:
            await _read_window(found, journal, None, head, wanted)
            return list(found), head
        window *= _WIDER


async def _read_window(
    found: deque[Row], journal: Journal, after: Cursor | None, head: Cursor, wanted: Filter | None
) -> None:
    async for batch in journal.read(after, filter=wanted):
        rows = zip(batch.seqs, batch.lines(), strict=True)
        found.extend((seq, line) for seq, line in rows if seq <= head.seq)
        if batch.last >= head.seq:
            return


class _JsonRows:
    """Writes the stored bytes."""

    def __call__(self, rows: list[Row]) -> None:
        sys.stdout.buffer.writelines(line + b"\n" for _, line in rows)
        sys.stdout.buffer.flush()


class _TextRows:
    """Writes one line a fact; on a terminal it is cut to the width."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def __call__(self, rows: list[Row]) -> None:
        for seq, line in rows:
            text = fact_line(seq, decode_line(line))
            if self._console.is_terminal:
                self._console.print(text, no_wrap=True, overflow="ellipsis")
            else:
                self._console.print(text, soft_wrap=True)
        sys.stdout.flush()


def fact_line(seq: int, fact: Fact) -> Text:
    """A fact in one line: seq, time, thread, class, title and an excerpt."""
    event_class = fact.event_class or "-"
    line = Text()
    line.append(f"{seq:>8}  {_time_text(fact.created_at)}  ", style="dim")
    line.append(f"{terminal_safe(find_thread_id(fact) or '-', 24):<12}  ", style="bold")
    line.append(
        f"{terminal_safe(event_class, 40):<20}  ", style=_class_style(event_class, fact.status)
    )
    line.append(terminal_safe(fact.title, 80))
    excerpt = terminal_safe(_excerpt(fact), _EXCERPT)
    if excerpt:
        line.append(f"  {excerpt}", style="bright_black")
    return line


def _class_style(event_class: str, status: str) -> str:
    if status == "failed" or event_class.endswith((".failed", ".error")):
        return "red"
    return _STYLES.get(event_class.partition(".")[0], "default")


def _time_text(created_at: str) -> str:
    match = _TIME.match(created_at)
    return f"{match[1]} {match[2]}" if match else f"{terminal_safe(created_at, 18):<19}"


def _excerpt(fact: Fact) -> str:
    payload: dict[str, Any] = fact.payload
    for name in _EXCERPT_FIELDS:
        if isinstance(payload.get(name), str) and payload[name]:
            return payload[name]
    if fact.detail or not payload:
        return fact.detail or ""
    return msgspec.json.encode(payload).decode()


def verify(
    url: JournalUrl, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Walk the hash chain from end to end.

    Exit code 0: intact. 1: damaged, with the first bad position. 2: it could not be read.
    """
    run_work(_verify(url, as_json=as_json))


async def _verify(url: str, *, as_json: bool) -> int:
    found = await _walk(url)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(_report_json(found)) + b"\n")
    else:
        _show_report(found)
    return DONE if isinstance(found, VerifyReport) and found.ok else ISSUES


async def _walk(url: str) -> VerifyReport | Damage:
    """The report, or the damage alone where it is such that the journal cannot be opened."""
    try:
        async with open_for_reading(url) as journal:
            with show_progress("verifying"):
                return await journal.verify()
    except JournalCorrupt as error:
        first = error.first or 1
        return Damage(first=first, last=error.last or first, reason=error.reason)


def _report_json(found: VerifyReport | Damage) -> dict[str, Any]:
    if isinstance(found, Damage):
        return {"ok": False, "facts": None, "intact": None, "chain": None, "damage": found}
    return {
        "ok": found.ok,
        "facts": found.facts,
        "intact": found.intact,
        "withheld": found.withheld,
        "chain": found.head.hex(),
        "damage": found.damage,
    }


def _show_report(found: VerifyReport | Damage) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if isinstance(found, Damage):
        _show_damage(console, found)
        console.print("it cannot be opened, so nothing more can be checked")
        return
    facts = count_of(found.facts, "fact")
    if found.damage is None:
        console.print(f"[green]intact[/]: {facts}, up to {found.intact:,}")
        if found.withheld:
            withheld = count_of(found.withheld, "fact")
            console.print(f"withheld from this mirror: {withheld} of private threads")
        console.print(f"[dim]chain {found.head.hex()}[/]")
    else:
        _show_damage(console, found.damage)
        console.print(f"intact before that: {facts}, up to {found.intact:,}")


def _show_damage(console: Console, damage: Damage) -> None:
    first, last = f"{damage.first:,}", f"{damage.last:,}"
    console.print(f"[red]damaged[/] at {first if first == last else f'{first}–{last}'}:", end=" ")
    console.print(terminal_safe(damage.reason), markup=False)


class RemovalPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the options ask for: retention first, then compaction of what is left."""

    retention: RetentionPolicy | None
    compaction: CompactionPolicy | None


def compact(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="sqlite:PATH or just a path, postgres://…, nats://…; not with --edge.",
            show_default=False,
        ),
    ] = None,
    *,
    edge: EdgeOption = None,
    keep_days: Annotated[
        float | None,
        typer.Option(min=0, help="Retention, with --edge: keep runs that ended so many days ago."),
    ] = None,
    keep_deltas: Annotated[
        bool, typer.Option("--keep-deltas", help="Keep deltas; apply retention only.")
    ] = False,
    spare: Annotated[
        int, typer.Option(min=0, help="Keep the deltas among this many of the newest facts.")
    ] = 0,
    keep_facts: Annotated[
        int | None, typer.Option(min=0, help="Retention: keep this many of the newest facts.")
    ] = None,
    keep_per_thread: Annotated[
        int | None,
        typer.Option(min=0, help="Retention: keep this many of the newest facts per thread."),
    ] = None,
    max_age: Annotated[
        int | None,
        typer.Option(min=0, help="Retention: keep facts at most this many seqs behind the head."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
) -> None:
    """Remove deltas whose final text is stored and, on request, old facts.

    Facts that an open action or an open follower still needs are kept. A running Edge does it
    itself with --edge, and removes whole runs; a journal that it writes cannot be opened here.
    """
    where = edge if url else edge_url(edge)
    if where is not None:
        others = (url, spare or None, keep_per_thread, max_age)
        if others != (None,) * len(others):
            raise CliError("with --edge, use --keep-days, --keep-facts, --keep-deltas, --dry-run")
        rules = {"keep_days": keep_days, "keep_facts": keep_facts, "compact": not keep_deltas}
        run_work(_compact_over_edge(where, rules, dry_run=dry_run))
    if url is None or keep_days is not None:
        raise CliError(
            "name a journal" if url is None else "--keep-days needs --edge; use --keep-facts"
        )
    bounds = RetentionPolicy(
        max_age=max_age, keep_facts=keep_facts, keep_per_thread=keep_per_thread
    )
    policy = RemovalPolicy(
        retention=None if bounds == RetentionPolicy() else bounds,
        compaction=None if keep_deltas else CompactionPolicy(spare=spare),
    )
    if policy == RemovalPolicy(retention=None, compaction=None):
        raise CliError(
            "--keep-deltas alone does nothing; say what to keep, for example --keep-facts N"
        )
    run_work(_rehearse_compaction(url, policy) if dry_run else _compact(url, policy))


async def _compact_over_edge(where: str, rules: dict[str, Any], *, dry_run: bool) -> int:
    async with edge_client(where) as client:
        with show_progress("compacting"):
            run = await client.run_retention(**rules, dry_run=dry_run)
    done = RemovalTotals(removed=run.facts + run.deltas, freed=run.freed_bytes, held_by=run.held_by)
    _show_totals("would remove" if dry_run else "removed", done)
    return DONE


async def _compact(url: str, policy: RemovalPolicy) -> int:
    done = RemovalTotals()
    try:
        async with open_for_writing(url, create=False) as journal:
            with show_progress("compacting"):
                if policy.retention:
                    removal = await journal.retain(policy.retention)
                    done.add(removal.removed, removal.freed, removal.held_by)
                if policy.compaction:
                    removal = await journal.compact(policy.compaction)
                    done.add(removal.removed, removal.freed, removal.held_by)
    except JournalBusy as error:
        holder = "another process" if error.pid is None else f"process {error.pid}"
        raise CliError(
            f"{error.code}: {holder} writes this journal; if it is an Edge, let it remove facts "
            "itself: `factwire journal compact --edge URL`"
        ) from error
    _show_totals("removed", done)
    return DONE


async def _rehearse_compaction(url: str, policy: RemovalPolicy) -> int:
    done = RemovalTotals()
    async with open_for_reading(url) as journal:
        with show_progress("looking"):
            rehearsal = RemovalRehearsal(journal)
            if policy.retention:
                planned = await rehearsal.retain(policy.retention)
                done.add(planned.removed, planned.freed, planned.held_by)
            if policy.compaction:
                planned = await rehearsal.compact(policy.compaction)
                done.add(planned.removed, planned.freed, planned.held_by)
    _show_totals("would remove", done)
    return DONE


def _show_totals(verb: str, done: RemovalTotals) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{verb} {count_of(done.removed, 'fact')}, {decimal(done.freed)}")
    for name in done.held_by:
        console.print(f"held back by {terminal_safe(name)}", markup=False)


journal = typer.Typer(
    name="journal",
    help=(
        "Inspect, verify, move and shrink a journal: sqlite:PATH or a path, postgres://…, nats://…."
    ),
    no_args_is_help=True,
)
for command in (info, tail, cat, verify, export, compact):
    journal.command()(command)
journal.command("import")(import_)

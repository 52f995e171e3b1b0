"""Evidence packs as files: written by `factwire evidence export`, and read as recordings.

A file appears only when it is whole and on disk. What evidence refuses is one line with its stable
code: what is no pack, or cannot be read as one, is told from a pack that was read and is not right.
A file that is no database is a slip of whoever named it as a journal: calling it a damaged journal
would speak against the pack. What is played from a pack was checked against its hashes.
"""

import re
import sys
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import msgspec
import typer

from factwire.cli.recordings import PlacedRow, ThreadFamily, ThreadKinship, place_facts
from factwire.cli.targets import (
    JournalOption,
    journal_url,
    open_for_reading,
    run_work,
    show_progress,
)
from factwire.cli.terminal import DONE, ISSUES, UNUSABLE, CliError, count_of, errors, terminal_safe
from factwire.facts import Fact
from factwire.journal import Journal, atomic_files
from factwire.projection import order_facts

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from factwire.evidence import EvidenceError, ExportOptions, Pack, ReplayCase, WrittenPack
    from factwire.journal import Cursor


PackArgument = Annotated[
    Path, typer.Argument(metavar="PACK", help="An evidence pack.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def key_folder() -> Path:
    """The configured data folder, in which keys and trust lists are kept."""
    from factwire.cli.command_context import load_context

    return Path(load_context().configuration.data)


_UNREAD: Final = frozenset(
    {
        *("pack_not_zip", "pack_truncated", "pack_unreadable", "pack_compression_unknown"),
        *("pack_too_big", "manifest_missing", "manifest_version", "blob_not_in_pack"),
    }
)
"""Codes of what is no pack, or none that this version can read to its end."""

_UNOPENED: Final[dict[type[OSError], str]] = {
    FileNotFoundError: "does not exist",
    IsADirectoryError: "is a folder; name a file",
    NotADirectoryError: "is not a valid path: a part of it is a file, not a folder",
    PermissionError: "cannot be opened: permission denied",
    FileExistsError: "already exists",
}
"""What the system refuses about a path, in words."""


@contextmanager
def refuse_plainly() -> Generator[None]:
    """Turns what evidence refuses inside the block into words."""
    from factwire.evidence import EvidenceError

    try:
        yield
    except EvidenceError as error:
        raise to_refusal(error) from error
    except tuple(_UNOPENED) as error:
        raise CliError(f"{terminal_safe(str(error.filename))} {_UNOPENED[type(error)]}") from error


def to_refusal(error: "EvidenceError") -> CliError:
    """A pack that was read and is not right is an issue; anything else could not be used."""
    from factwire.evidence import PackError

    wrong = isinstance(error, PackError) and error.code not in _UNREAD
    code = ISSUES if wrong or error.code == "journal_corrupt" else UNUSABLE
    return CliError(f"{error.code}: {terminal_safe(str(error))}", code)


def read_case_file(path: Path) -> "ReplayCase":
    """The case in a file; raises `CaseProblem`."""
    from factwire.evidence import CaseProblem, parse_case

    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise CaseProblem("case_unreadable", message) from error
    return parse_case(data, str(path))


_SQLITE: Final = b"SQLite format 3\x00"


def open_named_journal(url: str) -> Journal:
    """The journal, to be opened for reading; raises `CliError` for a file that is none."""
    journal = open_for_reading(url)
    scheme, _, rest = journal_url(url).partition(":")
    if scheme == "sqlite":
        _require_database(Path(rest.partition("?")[0]))
    return journal


def _require_database(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_SQLITE))
    except PermissionError as error:
        raise CliError(f"{terminal_safe(str(path))} cannot be opened: permission denied") from error
    if start != _SQLITE:
        raise CliError(f"{terminal_safe(str(path))} is not a journal: it is not an SQLite database")


@contextmanager
def open_target(file: str, *, force: bool) -> Generator[BinaryIO]:
    """The target to write to; `-` is standard output. With `force`, one that is there goes."""
    if file == "-":
        if sys.stdout.isatty():
            raise CliError("a pack is a binary file; name a file with --output")
        yield sys.stdout.buffer
        return
    path = Path(file)
    _require_free(path, force=force)
    with atomic_files.open_target(path) as target:
        yield target


def _require_free(path: Path, *, force: bool) -> None:
    name = terminal_safe(str(path))
    if not path.parent.is_dir():
        raise CliError(f"folder not found: {terminal_safe(str(path.parent))}")
    if path.is_dir():
        raise CliError(f"{name} is a folder; name a file in it with --output")
    if path.is_file() and not force:
        raise CliError(f"{name} already exists; overwrite it with --force, or use --output")


@contextmanager
def open_pack_recording(path: str) -> "Generator[PackRecording]":
    """Open a pack; raises `CliError` for what is none, or was changed."""
    from factwire.evidence import open_pack

    with refuse_plainly(), open_pack(Path(path)) as pack:
        yield PackRecording(path, pack)


class PackRecording:
    """The facts of one pack, at the seqs of their journal or, from a file, at their sequences."""

    def __init__(self, name: str, pack: "Pack") -> None:
        self.name = name
        self.kept = pack.manifest.source == "journal"
        self.unit = "seq" if self.kept else "sequence"
        self._pack = pack

    async def kinship(self, thread: str | None) -> ThreadKinship:
        del thread
        found = ThreadKinship()
        for fact in self._pack.facts():
            found.note(fact)
        return found

    async def family(self, kinship: ThreadKinship, thread: str | None) -> ThreadFamily:
        return kinship.family(thread)

    async def facts(self, family: ThreadFamily, at: int | None = None) -> AsyncIterator[PlacedRow]:
        for row in self._rows(family):
            if at is None or row.place is None or row.place <= at:
                yield row

    def _rows(self, family: ThreadFamily) -> Iterator[PlacedRow]:
        if self.kept:
            rows = (PlacedRow(seq, fact) for seq, fact in self._pack.placed_facts())
            return (row for row in rows if family.has(row.fact))
        facts = order_facts(filter(family.has, self._pack.facts()), family.thread_id)
        return place_facts(facts, family)


_UNNAMABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 80
_UNTIL: Final = "Only facts up to this cursor; `factwire journal info` shows the last one."


class ExportScope(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be exported."""

    thread: str | None
    project: str | None
    everything: bool
    until: str | None


class PackTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where the pack goes, and whether a file that is there already may go for it."""

    file: str
    force: bool


def export(
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="THREAD",
            help="The thread; threads of its subagents are included.",
            show_default=False,
        ),
    ] = None,
    *,
    journal: JournalOption = None,
    facts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Read the facts from a file instead; - for standard input."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="All threads of a project.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole journal.")] = False,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The file to write; THREAD.factpack.zip by default."),
    ] = None,
    with_blobs: Annotated[
        bool,
        typer.Option(
            "--with-blobs", help="Include the content that facts refer to, except secrets."
        ),
    ] = False,
    until: Annotated[str | None, typer.Option(metavar="CURSOR", help=_UNTIL)] = None,
    case: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Add a file of assertions; can be repeated."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sign with this key instead of your own.")
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Do not sign.")] = False,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Do not compress, for the same bytes on every machine."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a pack: facts, the state they produce, hashes of everything, and your signature.

    The same facts and options give the same bytes. A damaged journal is not exported, and an
    existing file is not overwritten.
    """
    from factwire.evidence import ExportOptions

    wanted = ExportScope(thread=thread, project=project, everything=everything, until=until)
    _require_one_scope(wanted, facts)
    with refuse_plainly():
        options = ExportOptions(
            key=None if unsigned else _load_signing_key(key),
            with_blobs=with_blobs,
            cases=tuple(read_case_file(path) for path in case or ()),
            stored=stored,
        )
    target = PackTarget(file=output or _default_name(wanted, facts), force=force)
    if facts is None:
        run_work(_export_journal(journal, wanted, target, options))
    run_work(_export_file(facts, wanted, target, options))


def _require_one_scope(wanted: ExportScope, facts: str | None) -> None:
    choices = [wanted.thread is not None, wanted.project is not None, wanted.everything]
    if facts is None and sum(choices) != 1:
        too_many = "these options cannot be combined; " if any(choices) else ""
        raise CliError(f"{too_many}choose what to export: a THREAD, --project ID or --all")
    if facts is not None and (any(choices[1:]) or wanted.until is not None):
        raise CliError(
            "--facts can be combined with a THREAD only, not with --project, --all or --until"
        )


def _load_signing_key(path: Path | None) -> "Ed25519PrivateKey":
    from factwire.evidence import KeyProblem, load_key
    from factwire.evidence.signatures import key_path

    place = path or key_path(key_folder())
    if path is None and not place.exists():
        message = "no key to sign with; create one with `factwire evidence key`"
        raise KeyProblem("key_missing", f"{message}, or export with --unsigned")
    return load_key(place)


def _default_name(wanted: ExportScope, facts: str | None) -> str:
    from factwire.evidence.pack_format import SUFFIX

    stem = Path(facts).stem if facts not in (None, "-") else "facts"
    name = wanted.thread or wanted.project or ("journal" if wanted.everything else stem)
    return _UNNAMABLE.sub("_", name)[:_LONGEST_NAME].lstrip(".") + SUFFIX


async def _export_journal(
    url: str | None, wanted: ExportScope, target: PackTarget, options: "ExportOptions"
) -> int:
    from factwire.cli.command_context import load_context
    from factwire.evidence import export_journal
    from factwire.runtime import open_blob_store

    where = load_context(journal=url)
    full = msgspec.structs.replace(options, blobs=open_blob_store(where.configuration))
    with refuse_plainly():
        async with open_named_journal(where.configuration.journal) as journal:
            threads = await _choose_threads(journal, wanted)
            total = await _count_facts(journal, threads)
            with (
                open_target(target.file, force=target.force) as stream,
                show_progress("exporting", total) as advance,
            ):
                written = await export_journal(
                    journal,
                    stream,
                    threads=threads,
                    until=_parse_cursor(wanted.until),
                    options=full,
                    progress=advance,
                )
    _show_written(written, target)
    return DONE


async def _export_file(
    file: str, wanted: ExportScope, target: PackTarget, options: "ExportOptions"
) -> int:
    from factwire.evidence import export_facts

    with (
        refuse_plainly(),
        open_target(target.file, force=target.force) as stream,
        show_progress("exporting") as advance,
    ):
        written = await export_facts(
            await _read_file(file, wanted.thread), stream, options=options, progress=advance
        )
    _show_written(written, target)
    return DONE


async def _read_file(file: str, thread: str | None) -> Iterator[Fact]:
    from factwire.cli.recordings import open_file
    from factwire.journal.filter import find_thread_id

    def read() -> Iterator[Fact]:
        with open_file(file) as recording:
            for fact in recording.ordered_facts():
                if thread is None or find_thread_id(fact) == thread:
                    yield fact

    return read()


async def _choose_threads(journal: "Journal", wanted: ExportScope) -> list[str] | None:
    from factwire.cli.recordings import JournalRecording, choose_family
    from factwire.evidence import threads_of_project

    if wanted.everything:
        return None
    if wanted.project is not None:
        return await threads_of_project(journal, wanted.project)
    family = await choose_family(JournalRecording(journal), wanted.thread)
    return sorted(family.members)


async def _count_facts(journal: "Journal", threads: Sequence[str] | None) -> int | None:
    if threads is None:
        return (await journal.stats()).facts
    rows = [await journal.thread(thread) for thread in threads]
    return sum(row.fact_count for row in rows if row is not None)


def _parse_cursor(text: str | None) -> "Cursor | None":
    from factwire.journal import Cursor, CursorError

    try:
        return None if text is None else Cursor.parse(text)
    except CursorError as error:
        where = "`factwire journal info` shows the last cursor of a journal"
        raise CliError(f"{error.code}: {terminal_safe(str(error))}; {where}") from error


def _show_written(written: "WrittenPack", target: PackTarget) -> None:
    from factwire.evidence import fingerprint

    if target.file == "-":
        return
    who = "unsigned" if written.signed_by is None else f"signed by {fingerprint(written.signed_by)}"
    facts = count_of(written.manifest.facts, "fact")
    errors.print(f"exported {facts} to {terminal_safe(target.file)}", markup=False, soft_wrap=True)
    errors.print(f"{who}; pack sha256:{written.digest}", markup=False, soft_wrap=True, style="dim")

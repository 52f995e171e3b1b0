"""`factwire evidence export`: a thread, a project or a whole journal as one pack."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from factwire.cli.evidence.case_files import read_case_file
from factwire.cli.evidence.journals import named_journal
from factwire.cli.evidence.options import data_folder
from factwire.cli.evidence.refusals import plainly
from factwire.cli.evidence.target import opened_target
from factwire.cli.failures import DONE, CliError, errors
from factwire.cli.journal.access import run
from factwire.cli.journal.progress import progress
from factwire.cli.run.options import JournalOption
from factwire.cli.terminal_text import counted, harmless
from factwire.facts import Fact

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from factwire.evidence import Options, Written
    from factwire.journal import Cursor, Journal

_UNNAMABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 80
_UNTIL: Final = "Only facts up to this cursor; `factwire journal info` shows the one at the end."


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be exported."""

    thread: str | None
    project: str | None
    everything: bool
    until: str | None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where the pack goes, and whether a file that is there already may go for it."""

    file: str
    force: bool


def export(
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="THREAD",
            help="The thread, which goes with those of its subagents.",
            show_default=False,
        ),
    ] = None,
    *,
    journal: JournalOption = None,
    facts: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take the facts from a file instead, - for stdin."),
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="All threads of a project.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole journal.")] = False,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The pack; THREAD.factpack.zip if not given."),
    ] = None,
    with_blobs: Annotated[
        bool, typer.Option("--with-blobs", help="Put in what facts refer to, secrets excepted.")
    ] = False,
    until: Annotated[str | None, typer.Option(metavar="CURSOR", help=_UNTIL)] = None,
    case: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Add a case of assertions; may be repeated."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sign with this key instead of your own.")
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Do not sign.")] = False,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Do not compress: the same bytes on every machine."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there already.")
    ] = False,
) -> None:
    """Write a pack: facts, what they come to, hashes of all of it, and your signature.

    The same facts and options give the same bytes. A damaged journal is not exported, and a file
    that is there already is left alone.
    """
    from factwire.evidence import Options

    wanted = Wanted(thread=thread, project=project, everything=everything, until=until)
    _ensure_clear(wanted, facts)
    with plainly():
        options = Options(
            key=None if unsigned else _key(key),
            with_blobs=with_blobs,
            cases=tuple(read_case_file(path) for path in case or ()),
            stored=stored,
        )
    target = Target(file=output or _name(wanted, facts), force=force)
    if facts is None:
        run(_from_journal(journal, wanted, target, options))
    run(_from_file(facts, wanted, target, options))


def _ensure_clear(wanted: Wanted, facts: str | None) -> None:
    asked = [wanted.thread is not None, wanted.project is not None, wanted.everything]
    if facts is None and sum(asked) != 1:
        too_many = "they do not go together; " if any(asked) else ""
        raise CliError(f"{too_many}say what to export: a THREAD, --project ID or --all")
    if facts is not None and (any(asked[1:]) or wanted.until is not None):
        raise CliError("--facts goes with a THREAD or nothing; --project, --all and --until do not")


def _key(path: Path | None) -> "Ed25519PrivateKey":
    from factwire.evidence import KeyProblem, load_key
    from factwire.evidence.keys import key_path

    place = path or key_path(data_folder())
    if path is None and not place.exists():
        message = "there is no key to sign with; make one with `factwire evidence key`"
        raise KeyProblem("key_missing", f"{message}, or export with --unsigned")
    return load_key(place)


def _name(wanted: Wanted, facts: str | None) -> str:
    from factwire.evidence.manifest import SUFFIX

    stem = Path(facts).stem if facts not in (None, "-") else "facts"
    name = wanted.thread or wanted.project or ("journal" if wanted.everything else stem)
    return _UNNAMABLE.sub("_", name)[:_LONGEST_NAME].lstrip(".") + SUFFIX


async def _from_journal(url: str | None, wanted: Wanted, target: Target, options: "Options") -> int:
    from factwire.cli.run.place import place
    from factwire.evidence import export_journal
    from factwire.runtime import blobs_of

    where = place(journal=url)
    full = msgspec.structs.replace(options, blobs=blobs_of(where.configuration))
    with plainly():
        async with named_journal(where.configuration.journal) as journal:
            threads = await _threads(journal, wanted)
            total = await _total(journal, threads)
            with (
                opened_target(target.file, force=target.force) as stream,
                progress("exporting", total) as advance,
            ):
                written = await export_journal(
                    journal,
                    stream,
                    threads=threads,
                    until=_cursor(wanted.until),
                    options=full,
                    progress=advance,
                )
    _tell(written, target)
    return DONE


async def _from_file(file: str, wanted: Wanted, target: Target, options: "Options") -> int:
    from factwire.evidence import export_facts

    with (
        plainly(),
        opened_target(target.file, force=target.force) as stream,
        progress("exporting") as advance,
    ):
        written = await export_facts(
            await _facts(file, wanted.thread), stream, options=options, progress=advance
        )
    _tell(written, target)
    return DONE


async def _facts(file: str, thread: str | None) -> Iterator[Fact]:
    from factwire.cli.documents import open_source
    from factwire.cli.file_recording import facts_in
    from factwire.journal.filter import thread_of

    def read() -> Iterator[Fact]:
        with open_source(file) as source:
            for fact in facts_in(source):
                if thread is None or thread_of(fact) == thread:
                    yield fact

    return read()


async def _threads(journal: "Journal", wanted: Wanted) -> list[str] | None:
    from factwire.cli.journal_recording import JournalRecording
    from factwire.cli.recording import chosen
    from factwire.evidence import threads_of_project

    if wanted.everything:
        return None
    if wanted.project is not None:
        return await threads_of_project(journal, wanted.project)
    family = await chosen(JournalRecording(journal), wanted.thread)
    return sorted(family.members)


async def _total(journal: "Journal", threads: Sequence[str] | None) -> int | None:
    if threads is None:
        return (await journal.stats()).facts
    rows = [await journal.thread(thread) for thread in threads]
    return sum(row.fact_count for row in rows if row is not None)


def _cursor(text: str | None) -> "Cursor | None":
    from factwire.journal import Cursor, CursorError

    try:
        return None if text is None else Cursor.parse(text)
    except CursorError as error:
        where = "`factwire journal info` shows the one at the end of a journal"
        raise CliError(f"{error.code}: {harmless(str(error))}; {where}") from error


def _tell(written: "Written", target: Target) -> None:
    from factwire.evidence import fingerprint

    if target.file == "-":
        return
    who = "unsigned" if written.signed_by is None else f"signed by {fingerprint(written.signed_by)}"
    facts = counted(written.manifest.facts, "fact")
    errors.print(f"exported {facts} to {harmless(target.file)}", markup=False, soft_wrap=True)
    errors.print(f"{who}; pack sha256:{written.digest}", markup=False, soft_wrap=True, style="dim")

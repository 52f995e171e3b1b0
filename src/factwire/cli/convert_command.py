"""`factwire convert`: the same facts in another shape, one JSON object to a line.

Also the recorded stream of an outside agent as facts, and facts as the stream of an outside
protocol. A file is complete, so its facts are put in order. What comes from a pipe, or is appended
to a file that is followed, is converted as it comes and written at once.
"""

import asyncio
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
import typer

from factwire.cli.fact_files import (
    FactSource,
    open_source,
    read_bounded_lines,
    read_document,
    reread_items,
    watch_progress,
)
from factwire.cli.terminal import DONE, ISSUES, UNUSABLE, CliError, print_note, print_remark, report
from factwire.facts import (
    FIELDS_FILLED_IN,
    SECRETS_REDACTED,
    AnyShape,
    Fact,
    FactReading,
    Issue,
    LenientReader,
    NameRedactor,
    RecordingRedactor,
    Shape,
    UnreadableInput,
    redact_text,
    redacted_remark,
    shape_issues,
    to_ui_events,
    write_fact,
)
from factwire.facts.shapes import RepeatNumbers
from factwire.journal.blobs import FileBlobs
from factwire.outlets import OUTLETS, Framing, find_outlet, frame_item
from factwire.projection.ordering import OrderCheck, order_facts
from factwire.sources import (
    SOURCE_NAMES,
    START,
    Source,
    UnknownSource,
    convert_recording,
    find_source,
    name_raw,
)


class OutletStream:
    """Writes what a client of an outlet would be told, to standard output."""

    def __init__(self, name: str, *, sse: bool) -> None:
        self._kind = find_outlet(name)
        self._outlet = self._kind.make()
        self._framing: Framing = "events" if sse else "lines"

    def take(self, fact: Fact) -> None:
        self._write(self._outlet.take(fact))

    def finish(self) -> None:
        self._write(self._outlet.finish())
        if self._framing == "events":
            sys.stdout.buffer.write(self._kind.last)

    def _write(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            sys.stdout.buffer.write(frame_item(item, self._framing))


def outlet_stream(target: str, *, sse: bool) -> OutletStream | None:
    """The stream that a target is, if it is an outlet; only those can be events."""
    if target in OUTLETS:
        return OutletStream(target, sse=sse)
    if sse:
        raise CliError(f"--sse works with the outlets {', '.join(OUTLETS)}, not with {target}")
    return None


SHAPES: Final = ("auto", "facts", "runtime-event", "ui")
"""Shapes of facts that can be read; any other name is that of a source."""


_TARGETS: Final = (*SHAPES[1:], *OUTLETS)
"""What can be written: a shape of facts, or the stream of an outlet."""

if TYPE_CHECKING:

    class ToOption(StrEnum):
        """One of `_TARGETS`; Typer takes a choice as an enumeration."""

        facts = "facts"

else:
    ToOption = StrEnum("ToOption", {name.replace("-", "_"): name for name in _TARGETS})


def convert(
    file: Annotated[str, typer.Argument(help="A file of facts, or - for standard input.")],
    *,
    source_form: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SHAPE|SOURCE|FILE",
            help="The input format: auto (detected per fact), facts, runtime-event, ui; or the "
            "stream of an agent, such as claude-code or codex-exec (--from list shows "
            "all); or a mapping file, such as agent.toml, that describes the lines of any "
            "program.",
        ),
    ] = "auto",
    target: Annotated[
        ToOption,
        typer.Option("--to", help="The shape, or the client protocol, to write."),
    ] = ToOption.facts,
    sse: Annotated[
        bool,
        typer.Option(
            "--sse", help="With a client protocol: write server-sent events instead of lines."
        ),
    ] = False,
    thread: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="With a stream: the thread id for its facts; the file name by default.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With a stream that has no timestamps: the time to use."),
    ] = None,
    blobs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With a stream: the folder for content that is too large for a fact.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on as the file grows, until interrupted (Ctrl-C)."),
    ] = False,
) -> None:
    """Convert facts between shapes, or an agent's own stream to facts, one JSON object per line.

    The facts of a file are put in order first. A pipe, and a file with --follow, is converted as
    it comes.

    Input that cannot be converted is reported on standard error, and the exit code is 1. Unknown
    items of a stream become warnings in the output, with a ref.
    """
    if source_form not in SHAPES:
        raise typer.Exit(
            convert_stream(
                file,
                source_form,
                target.value,
                sse=sse,
                thread=thread,
                at=at,
                blobs=blobs,
                follow=follow,
            )
        )

    outlet = outlet_stream(target.value, sse=sse)
    written = None if outlet is not None else cast("Shape", target.value)
    failed = 0
    with open_source(file, follow=follow) as source:
        live = not source.stream.seekable()
        for place, reading in _read_clean(source, source_form, written, live=live, endless=follow):
            problems = _write_facts(reading, target.value, outlet)
            if live:
                sys.stdout.buffer.flush()
            _report_issues(problems, place)
            failed += bool(problems)
    if outlet is not None:
        outlet.finish()
    raise typer.Exit(ISSUES if failed else DONE)


def _read_clean(
    source: FactSource, shape: AnyShape, target: Shape | None, *, live: bool, endless: bool
) -> Iterator[tuple[str, FactReading]]:
    """What was read of each item, in order or as it comes, without secrets, and where it stands.

    A text that may become a secret is waited for. Of an `endless` source it stays back at the end.
    """
    reader, names = LenientReader(shape, reread_items(source), target), NameRedactor()
    redactor = RecordingRedactor()
    waiting: deque[tuple[str, FactReading]] = deque()
    if live:
        readings = _read_items(source, reader, names)
    else:
        readings = _read_in_order(source, shape, reader, names)
    for place, reading in readings:
        waiting.append((place, reading))
        ready = () if reading.fact is None else redactor.feed(reading.fact)
        yield from _take_ready(waiting, ready)
    yield from _take_ready(waiting, redactor.finish(cut=endless))
    print_remark(FIELDS_FILLED_IN, source.name, reader.remark)
    print_remark(SECRETS_REDACTED, source.name, redacted_remark(names.count + redactor.count))


def _take_ready(
    waiting: deque[tuple[str, FactReading]], ready: Iterable[Fact]
) -> Iterator[tuple[str, FactReading]]:
    """The items up to those whose facts are ready; what is no fact comes out in its turn."""
    for fact in ready:
        while waiting[0][1].fact is None:
            yield waiting.popleft()
        place, reading = waiting.popleft()
        yield place, msgspec.structs.replace(reading, fact=fact)
    while waiting and waiting[0][1].fact is None:
        yield waiting.popleft()


def _read_in_order(
    source: FactSource, shape: AnyShape, reader: LenientReader, names: NameRedactor
) -> Iterator[tuple[str, FactReading]]:
    """What each item of a file reads as, and where it stands. Facts come in order, and before them,
    where they are not so in the file, what is no fact. A file that cannot be read to its end comes
    as it stands, up to there.
    """
    if _is_in_order(source, shape):
        yield from _read_items(source, reader, names)
        return
    places: dict[int, tuple[str, FactReading]] = {}
    readable: list[Fact] = []
    for place, reading in _read_items(source, reader, names):
        if reading.fact is None:
            yield place, reading
        else:
            places[id(reading.fact)] = place, reading
            readable.append(reading.fact)
    for fact in order_facts(readable):
        yield places[id(fact)]


def _is_in_order(source: FactSource, shape: AnyShape) -> bool:
    check, reader = OrderCheck(), LenientReader(shape, reread_items(source))
    try:
        facts = (reading.fact for _, reading in _read_items(source, reader, NameRedactor()))
        return all(fact is None or check.follows(fact) for fact in facts)
    except UnreadableInput:
        return True


def _read_items(
    source: FactSource, reader: LenientReader, names: NameRedactor
) -> Iterator[tuple[str, FactReading]]:
    live = not source.stream.seekable()
    if not live:
        source.stream.seek(0)
    items = watch_progress(read_document(source, live=live).facts, source, "converting")
    repeats = RepeatNumbers()
    for number, (line, item) in enumerate(items, 1):
        try:
            reading = reader.feed(item)
        except UnreadableInput as error:
            raise UnreadableInput(error.reason, line=line) from error
        if reading.is_repeat:
            continue
        if reading.fact is not None:
            fact = names.feed(repeats.number(reading.fact))
            reading = msgspec.structs.replace(reading, fact=fact)
        yield f"line {line}" if line else f"fact {number}", reading


def write_fact_line(fact: Fact, source: Shape, target: Shape) -> list[dict[str, Any]]:
    """The objects that a fact is in `target`: one, or the UI events that a runtime fact becomes."""
    if target == "ui" and source != "ui":
        return [write_fact(event, "ui") for event in to_ui_events(fact)]
    return [write_fact(fact, target)]


def _write_facts(reading: FactReading, target: str, outlet: "OutletStream | None") -> list[Issue]:
    if reading.fact is None or reading.is_repeat:
        return reading.issues
    if outlet is not None:
        outlet.take(reading.fact)
        return []
    problems: list[Issue] = []
    shape = cast("Shape", target)
    for value in write_fact_line(reading.fact, reading.shape, shape):
        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
        problems += shape_issues(value, shape)
    return problems


def _report_issues(issues: list[Issue], place: str) -> None:
    for issue in issues:
        report(redact_text(f"{place}: {issue.code} at {issue.path}: {issue.message}")[0])


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def convert_stream(
    file: str,
    name: str,
    target: str,
    *,
    sse: bool,
    thread: str | None,
    at: str | None,
    blobs: Path | None,
    follow: bool,
) -> int:
    """Write the facts of a recorded stream; the exit code."""
    if name == "list":
        return _print_threads()
    if at is not None and not _TIME.fullmatch(at):
        raise CliError(f"--at expects a time such as {START}, got {at!r}")
    source = _mapped_source(name) if _is_mapping(name) else _open_source_adapter(name)
    if source is None:
        return UNUSABLE
    outlet = outlet_stream(target, sse=sse)
    warnings = 0
    with open_source(file, follow=follow) as opened:
        live = not opened.stream.seekable()
        facts = convert_recording(
            source,
            read_bounded_lines(opened.stream),
            thread_id=thread or _thread_of(file),
            at=at or START,
            keep=_blob_store(blobs),
        )
        names = NameRedactor()
        for fact in map(names.feed, facts):
            warnings += fact.event_class == "runtime.warning"
            if outlet is not None:
                outlet.take(fact)
            else:
                for value in write_fact_line(fact, "facts", cast("Shape", target)):
                    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
            if live:
                sys.stdout.buffer.flush()
    if outlet is not None:
        outlet.finish()
    if warnings:
        print_note(f"{warnings} warnings are among the facts")
    return DONE


def _open_source_adapter(name: str) -> Source:
    try:
        return find_source(name)
    except UnknownSource as error:
        raise CliError(f"{error.code}: {error}") from error


def _is_mapping(name: str) -> bool:
    """Whether a name is that of a mapping file; the sources keep theirs."""
    return name not in SOURCE_NAMES and (name.endswith(".toml") or Path(name).is_file())


def _mapped_source(file: str) -> Source | None:
    """The source that a mapping file describes; every problem in it is told."""
    from factwire.sources.mapped import MappingError, read_mapped_source
    from factwire.sources.mapped.mapping_values import FILE_BYTES

    try:
        with Path(file).open("rb") as opened:
            return read_mapped_source(opened.read(FILE_BYTES + 1), file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CliError(f"cannot read the mapping {file}: {reason}") from error
    except MappingError as error:
        for problem in error.problems:
            report(f"{problem.code}: {problem}")
        return None


def _print_threads() -> int:
    for name in sorted(SOURCE_NAMES):
        source = find_source(name)
        sys.stdout.write(f"{name:18} {source.title}, tested with {source.versions}\n")
    return DONE


def _thread_of(file: str) -> str:
    return _NAME.sub("-", Path(file).stem) if file != "-" else "stdin"


def _blob_store(folder: Path | None) -> Callable[[bytes], str]:
    """Keeps content in a folder, where one was named."""
    if folder is None:
        return name_raw
    store = FileBlobs(folder)

    def keep(content: bytes) -> str:
        return asyncio.run(store.put(content, kind="raw")).ref

    return keep

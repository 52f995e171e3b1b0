"""Reading facts from a file or standard input, whichever way they were written down."""

import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeVar, cast

import msgspec
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from factwire.cli.terminal import CliError, errors
from factwire.facts import UnreadableInput, decode_json, is_fixture
from factwire.facts.limits import DOCUMENT_BYTES, LINE_BYTES

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BYTE: Final = re.compile(r"byte (\d+)")


class FactSource(msgspec.Struct, frozen=True):
    """An open input; `size` is None where nobody knows it before the end."""

    name: str
    stream: BinaryIO
    size: int | None


class FactDocument(msgspec.Struct, frozen=True):
    """What an input turned out to be. `facts` yields each one with the line it stands on, where
    that is known: as JSON text from lines, as an object from an array or a fixture.
    """

    form: Literal["lines", "array", "fixture", "object"]
    facts: Iterable[tuple[int | None, Any]]
    fixture: dict[str, Any] | None = None


@contextmanager
def open_source(path: str) -> Generator[FactSource]:
    """Open a file, or standard input for `-`; raises `CliError` for what cannot be opened."""
    if path == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise CliError("standard input is closed")
        yield FactSource("standard input", sys.stdin.buffer, None)
        return
    try:
        with Path(path).open("rb") as stream:
            size = Path(path).stat().st_size
            yield FactSource(path, stream, size or None)
    except IsADirectoryError as error:
        raise CliError(f"{path} is a folder; name a file, or - for standard input") from error
    except FileNotFoundError as error:
        raise CliError(f"{path} does not exist") from error
    except PermissionError as error:
        raise CliError(f"{path} cannot be read: permission denied") from error


def read_document(source: FactSource) -> FactDocument:
    """Find out how the facts are written down; raises `UnreadableInput` where they are not."""
    lines = _read_lines(source.stream)
    number, first = next(lines, (0, b""))
    if not number:
        return FactDocument("lines", ())
    try:
        value = decode_json(first)
    except UnreadableInput as error:
        return _read_whole_document(first, source.stream, number, error)
    following = next(lines, None)
    if following is None:
        return _to_document(value, number)
    return FactDocument("lines", _chain_rows((number, first), following, lines))


def reread_items(source: FactSource) -> Callable[[], Iterator[Any]] | None:
    """A second look at all items of an input, from the first on; None where there is none."""
    stream = source.stream
    if not stream.seekable():
        return None

    def reread() -> Iterator[Any]:
        place = stream.tell()
        stream.seek(0)
        try:
            for _, item in read_document(source).facts:
                yield item
        finally:
            stream.seek(place)

    return reread


def _chain_rows(
    first: tuple[int, bytes], second: tuple[int, bytes], rest: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    yield first
    yield second
    yield from rest


def _read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    number = 0
    while line := stream.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise UnreadableInput(f"longer than {LINE_BYTES} bytes", line=number)
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line.isspace() and line:
            yield number, line


def _read_whole_document(
    start: bytes, stream: BinaryIO, number: int, first_error: UnreadableInput
) -> FactDocument:
    """The input read as one document; a first line that is whole by itself was meant as a fact."""
    rest = stream.read(DOCUMENT_BYTES + 1)
    stripped = start.strip()
    if not rest.strip() or (stripped.startswith(b"{") and stripped.endswith(b"}")):
        raise UnreadableInput(first_error.reason, line=number)
    if len(rest) > DOCUMENT_BYTES:
        reason = f"the document is larger than {DOCUMENT_BYTES} bytes; write one fact per line"
        raise UnreadableInput(reason)
    try:
        return _to_document(decode_json(start + rest), None)
    except UnreadableInput as error:
        raise _locate_items(error, start + rest, number) from error


def _locate_items(error: UnreadableInput, data: bytes, first_line: int) -> UnreadableInput:
    """The same error with the line, from the byte that the decoder names, or the last line."""
    byte = _BYTE.search(error.reason)
    end = int(byte[1]) if byte else len(data.rstrip())
    return UnreadableInput(error.reason, line=first_line + data[:end].count(b"\n"))


def _to_document(value: object, line: int | None) -> FactDocument:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return FactDocument("array", ((None, _decode_value(item)) for item in items))
    if is_fixture(value):
        fixture = cast("dict[str, Any]", value)
        events = ((None, _decode_value(event)) for event in fixture["events"])
        return FactDocument("fixture", events, fixture)
    if isinstance(value, dict):
        return FactDocument("object", [(line, cast("dict[str, Any]", value))])
    raise UnreadableInput("expected a fact, an array of facts or a fixture", line=line)


def _decode_value(item: object) -> object:
    """An item of a list; text in it is a value, not JSON once more."""
    return '""' if isinstance(item, str) else item


Item = TypeVar("Item")

_WORTH_SHOWING: Final = 4 * 1024 * 1024
_STEP: Final = 1000


def watch_progress(items: Iterable[Item], source: FactSource, doing: str) -> Iterator[Item]:
    """The same items; while they pass, a bar shows how much of the input has been read."""
    if not sys.stderr.isatty() or (source.size is not None and source.size < _WORTH_SHOWING):
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        task = bar.add_task(doing, total=source.size)
        for index, item in enumerate(items):
            if index % _STEP == 0:
                bar.update(task, completed=_read_position(source))
            yield item


def _read_position(source: FactSource) -> int:
    return source.stream.tell() if source.stream.seekable() else 0

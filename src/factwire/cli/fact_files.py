"""Reading facts from a file or standard input, whichever way they were written down, at once or as
they come.
"""

import io
import re
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
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


_POLL_SECONDS: Final = 0.1
"""How often a file that is followed is looked at for more."""


class GrowingFile(io.RawIOBase):
    """A file that is read while it grows: at its end, a reader waits for the next whole line,
    until it is stopped.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._stopped = False

    def stop(self, *_: object) -> None:
        self._stopped = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readline(self, size: int | None = -1, /) -> bytes:
        most = -1 if size is None else size
        line = self._stream.readline(most)
        while not line.endswith(b"\n") and len(line) != most:
            if self._stopped:
                return b""
            time.sleep(_POLL_SECONDS)
            line += self._stream.readline(most if most < 0 else most - len(line))
        return line

    def read(self, size: int = -1, /) -> bytes:
        """What is there; only the rest of a document that is no lines is read in this way."""
        return self._stream.read(size)


@contextmanager
def open_source(path: str, *, follow: bool = False) -> Generator[FactSource]:
    """Open a file, or standard input for `-`; raises `CliError` for what cannot be opened. A file
    that is followed goes on as it grows, up to an interrupt.
    """
    if path == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise CliError("standard input is closed")
        yield FactSource("standard input", sys.stdin.buffer, None)
        return
    try:
        with Path(path).open("rb") as stream:
            size = Path(path).stat().st_size
            if follow:
                growing = GrowingFile(stream)
                before = signal.signal(signal.SIGINT, growing.stop)
                try:
                    yield FactSource(path, cast("BinaryIO", growing), None)
                finally:
                    signal.signal(signal.SIGINT, before)
            else:
                yield FactSource(path, stream, size or None)
    except IsADirectoryError as error:
        raise CliError(f"{path} is a folder; name a file, or - for standard input") from error
    except FileNotFoundError as error:
        raise CliError(f"{path} does not exist") from error
    except PermissionError as error:
        raise CliError(f"{path} cannot be read: permission denied") from error


def read_document(source: FactSource, *, live: bool = False) -> FactDocument:
    """Find out how the facts are written down; raises `UnreadableInput` where they are not. In one
    that is `live`, the first line is a fact before the second has come.
    """
    lines = _read_lines(source.stream)
    number, first = next(lines, (0, b""))
    if not number:
        return FactDocument("lines", ())
    try:
        value = decode_json(first)
    except UnreadableInput as error:
        return _read_whole_document(first, source.stream, number, error)
    if live and _is_fact_object(value):
        return FactDocument("lines", chain([(number, first)], lines))
    following = next(lines, None)
    if following is None:
        return _to_document(value, number)
    return FactDocument("lines", chain([(number, first), following], lines))


def _is_fact_object(value: object) -> bool:
    return not is_fixture(value) and isinstance(value, dict)


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


def _read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    for number, line in enumerate(read_bounded_lines(stream), 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)  # noqa: PLW2901
        if not line.isspace() and line:
            yield number, line


def read_bounded_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of an input; raises `UnreadableInput` for one that is too long to be held."""
    number = 0
    while line := stream.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise UnreadableInput(f"longer than {LINE_BYTES} bytes", line=number)
        yield line


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

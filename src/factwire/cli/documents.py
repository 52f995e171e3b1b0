"""Reading facts from a file or standard input, whichever way they were written down.

One JSON object to a line is read line by line, in constant memory. Anything else (an array, a
fixture, one object over several lines) is one document and is held in memory, up to a bound.
"""

import re
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast

import msgspec

from factwire.cli.failures import CliError
from factwire.facts import UnreadableInput, decode_json, is_fixture
from factwire.facts.limits import DOCUMENT_BYTES, LINE_BYTES

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BYTE: Final = re.compile(r"byte (\d+)")


class Source(msgspec.Struct, frozen=True):
    """An open input; `size` is None where nobody knows it before the end."""

    name: str
    stream: BinaryIO
    size: int | None


class Document(msgspec.Struct, frozen=True):
    """What an input turned out to be. `facts` yields each one with the line it stands on, where
    that is known: as JSON text from lines, as an object from an array or a fixture.
    """

    form: Literal["lines", "array", "fixture", "object"]
    facts: Iterable[tuple[int | None, Any]]
    fixture: dict[str, Any] | None = None


@contextmanager
def open_source(path: str) -> Generator[Source]:
    """Open a file, or standard input for `-`; raises `CliError` for what cannot be opened."""
    if path == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise CliError("standard input is closed")
        yield Source("standard input", sys.stdin.buffer, None)
        return
    try:
        with Path(path).open("rb") as stream:
            size = Path(path).stat().st_size
            yield Source(path, stream, size or None)
    except IsADirectoryError as error:
        raise CliError(f"{path} is a folder; name a file, or - for standard input") from error
    except FileNotFoundError as error:
        raise CliError(f"{path} does not exist") from error
    except PermissionError as error:
        raise CliError(f"{path} may not be read") from error


def read_document(source: Source) -> Document:
    """Find out how the facts are written down; raises `UnreadableInput` where they are not."""
    lines = _lines(source.stream)
    number, first = next(lines, (0, b""))
    if not number:
        return Document("lines", ())
    try:
        value = decode_json(first)
    except UnreadableInput as error:
        return _whole_document(first, source.stream, number, error)
    following = next(lines, None)
    if following is None:
        return _document(value, number)
    return Document("lines", _chained((number, first), following, lines))


def _chained(
    first: tuple[int, bytes], second: tuple[int, bytes], rest: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    yield first
    yield second
    yield from rest


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
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


def _whole_document(
    start: bytes, stream: BinaryIO, number: int, first_error: UnreadableInput
) -> Document:
    """The input read as one document; a first line that is whole by itself was meant as a fact."""
    rest = stream.read(DOCUMENT_BYTES + 1)
    stripped = start.strip()
    if not rest.strip() or (stripped.startswith(b"{") and stripped.endswith(b"}")):
        raise UnreadableInput(first_error.reason, line=number)
    if len(rest) > DOCUMENT_BYTES:
        reason = f"one document of more than {DOCUMENT_BYTES} bytes; write one fact to a line"
        raise UnreadableInput(reason)
    try:
        return _document(decode_json(start + rest), None)
    except UnreadableInput as error:
        raise _located(error, start + rest, number) from error


def _located(error: UnreadableInput, data: bytes, first_line: int) -> UnreadableInput:
    """The same error with the line, from the byte that the decoder names, or the last line."""
    byte = _BYTE.search(error.reason)
    end = int(byte[1]) if byte else len(data.rstrip())
    return UnreadableInput(error.reason, line=first_line + data[:end].count(b"\n"))


def _document(value: object, line: int | None) -> Document:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return Document("array", ((None, _value(item)) for item in items))
    if is_fixture(value):
        fixture = cast("dict[str, Any]", value)
        events = ((None, _value(event)) for event in fixture["events"])
        return Document("fixture", events, fixture)
    if isinstance(value, dict):
        return Document("object", [(line, cast("dict[str, Any]", value))])
    raise UnreadableInput("expected a fact, an array of facts or a fixture", line=line)


def _value(item: object) -> object:
    """An item of a list; text in it is a value, not JSON once more."""
    return '""' if isinstance(item, str) else item

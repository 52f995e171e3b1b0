"""What a terminal is shown: text made safe, lines and marks, errors for people.

Agents and their tools write what they like. Nothing of it may move the cursor, set colours, turn
the reading direction round, or hide: whatever has no glyph of its own is shown by its number, and
nothing that a fact holds reaches a line unless it went through `terminal_safe`.

Exit codes: 0 done or valid · 1 the input was read and something in it is wrong · 2 the command
could not do its work: unreadable input, wrong usage, a missing file · 3 a Hub has taken it, and it
takes effect later, when a device is back or more people agree · 130 stopped by the user.
A failure is one line that says what is wrong and what to do; never a traceback.

And what a terminal sends: bytes become the names of keys. While keys are read, the terminal hands
over each one at once and shows none; Ctrl-C still interrupts, Ctrl-Z does nothing.
"""

import codecs
import io
import json
import os
import re
import select
import sys
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar, cast

import msgspec
from rich.console import Console
from rich.text import Text

_SPACE: Final = re.compile(r"[ \t\r\n\f\v\x85\u2028\u2029]+")
_LINE: Final = re.compile(r"\r\n|[\r\n\f\v\x85\u2028\u2029]")
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters that count as printable and still show nothing."""

_COMBINING_MARKS: Final = frozenset({"Mn", "Me"})
_MARKS_IN_A_ROW: Final = 2


def terminal_safe(text: str, limit: int | None = None) -> str:
    """One line of visible characters, at most `limit` of them and an ellipsis."""
    # Text far past the limit is not looked at: an excerpt of a megabyte costs what a line costs.
    seen = text if limit is None else text[: 4 * limit]
    line = "".join(_visible_characters(_SPACE.sub(" ", seen).strip()))
    if limit is not None and (len(line) > limit or len(text) > len(seen)):
        return line[:limit] + "…"
    return line


def terminal_safe_lines(text: str, limit: int | None = None) -> list[str]:
    """The lines of a text, each of visible characters; spaces within a line stay as they are."""
    seen = text if limit is None else text[:limit]
    lines = [
        "".join(_visible_characters(line.expandtabs(4).rstrip()))
        for line in _LINE.split(seen.strip())
    ]
    if limit is not None and len(text) > limit:
        lines[-1] += "…"
    return lines


def terminal_safe_block(text: str) -> list[str]:
    """Every line of a text, blank ones and indents included, each of visible characters."""
    lines = _LINE.split(text)
    if lines and not lines[-1]:
        lines.pop()
    return ["".join(_visible_characters(line.expandtabs(4).rstrip())) for line in lines]


def count_of(number: int, noun: str) -> str:
    """`1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _visible_characters(text: str, escape: Callable[[str], str] | None = None) -> list[str]:
    show_hidden = escape or _escape
    shown: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _COMBINING_MARKS else 0
        hidden = not character.isprintable() or character in _INVISIBLE
        shown.append(show_hidden(character) if hidden or marks > _MARKS_IN_A_ROW else character)
    return shown


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004


def _escape_in_json(character: str) -> str:
    """The escape that JSON has for a character, so that it stays the same value."""
    return json.dumps(character)[1:-1] if not character.isascii() else f"\\u{ord(character):04x}"


class TerminalBytes(io.BufferedIOBase):
    """Standard output for bytes, on a terminal: JSON whose invisible characters are escaped, which
    changes none of its values. Into a pipe or a file, bytes go as they are.
    """

    def __init__(self, target: BinaryIO, encoding: str) -> None:
        self._target = target
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._target.fileno()

    def write(self, data: Any, /) -> int:
        text = self._decoder.decode(bytes(data))
        lines = ("".join(_visible_characters(line, _escape_in_json)) for line in text.split("\n"))
        self._target.write("\n".join(lines).encode(self._encoding, "backslashreplace"))
        return memoryview(data).nbytes

    def flush(self) -> None:
        self._target.flush()


class TerminalOutput(io.TextIOWrapper):
    """Standard output on a terminal; its text was made safe by whoever wrote it."""

    def __init__(self, target: BinaryIO, encoding: str) -> None:
        super().__init__(target, encoding, "backslashreplace", line_buffering=True)
        self._bytes = TerminalBytes(target, encoding)

    @property
    def buffer(self) -> Any:
        return self._bytes


DONE: Final = 0
ISSUES: Final = 1
UNUSABLE: Final = 2
LATER: Final = 3
INTERRUPTED: Final = 130

errors = Console(stderr=True, highlight=False)


class CliError(Exception):
    """A failure that ends a command; the message is shown as it is."""

    def __init__(self, message: str, exit_code: int = UNUSABLE) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def report(message: str) -> None:
    """Say on standard error what went wrong, in one harmless line."""
    errors.print("error:", style="bold red", end=" ")
    errors.print(terminal_safe(message), markup=False, soft_wrap=True)


DIM: Final = "bright_black"
LINE: Final = 200
NAME: Final = 40
"""Characters of one saying, and of one name or word."""

_MARKS: Final = {
    **dict.fromkeys(("completed", "output-available", "applied", "accepted"), ("✓", "green")),
    **dict.fromkeys(("running", "progress", "spawned", "connected"), ("▸", "cyan")),
    **dict.fromkeys(("input-streaming", "input-available"), ("▸", "cyan")),
    **dict.fromkeys(("pending", "info", "idle"), ("·", "default")),
    **dict.fromkeys(("blocked", "waiting"), ("■", "yellow")),
    **dict.fromkeys(("failed", "output-error", "rejected", "error"), ("✗", "red")),
    **dict.fromkeys(("canceled", "cancelled", "closed"), ("-", DIM)),
    "warning": ("!", "yellow"),
}
"""Status → its mark and colour; any other status is shown as its word."""

Thing = TypeVar("Thing")


class Section(NamedTuple):
    """Lines under a title; `left_out` counts other things that are not among them."""

    title: str
    lines: list[Text]
    left_out: int = 0


def status_mark(status: str) -> Text:
    """A status as a mark of one character, or as its word."""
    mark, style = _MARKS.get(status, ("", "default"))
    return Text(mark or terminal_safe(status, NAME), style=style, end="")


def build_line(status: str, name: str, *details: object) -> Text:
    """One line: a mark, what it is about, and whatever is known of it."""
    line = Text()
    line.append_text(status_mark(status))
    line.append(f" {terminal_safe(name, 2 * NAME)}")
    for detail in details:
        if detail:
            line.append(f"  {terminal_safe(str(detail), LINE)}", style=DIM)
    return line


def build_newest_section(
    title: str, things: dict[str, Thing], last: int, line: Callable[[str, Thing], Text]
) -> Section:
    """A line for each of the newest things, the oldest of them first."""
    keys = list(islice(reversed(things), last))[::-1]
    return Section(title, [line(key, things[key]) for key in keys], len(things) - len(keys))


def to_text(value: Any) -> str:
    """A value of a fact as text: a list of words as a command is typed, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(map(to_text, cast("Sequence[Any]", value)))
    return msgspec.json.encode(value).decode()


def print_note(message: str) -> None:
    """Tell a person on standard error what is no failure."""
    errors.print("note:", style="bold", end=" ")
    errors.print(terminal_safe(message), markup=False, soft_wrap=True)


_noted: Final[set[str]] = set()


def print_note_once(message: str) -> None:
    """Tell a person something that a command may come across more than once."""
    if message not in _noted:
        _noted.add(message)
        print_note(message)


def forget_notes() -> None:
    """Begin another command."""
    _noted.clear()


def print_remark(code: str, name: str, remark: str | None) -> None:
    """Tell a person what had to be done to a recording before it could be used, if anything."""
    if remark is not None:
        print_note(f"{code}: {name}: {remark}")


_NAMES: Final = {
    b" ": "space",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
}
_FINALS: Final = {
    b"A": "up",
    b"B": "down",
    b"C": "right",
    b"D": "left",
    b"H": "home",
    b"F": "end",
}
_NUMBERS: Final = {
    b"1": "home",
    b"4": "end",
    b"5": "pageup",
    b"6": "pagedown",
    b"7": "home",
    b"8": "end",
}
"""What terminals send between `ESC [` and `~`."""

_SEQUENCE: Final = re.compile(rb"\x1b(?:\[([0-9;]{0,16})([@-~])|O([@-~]))")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-9;]{0,16}|O)?")
_READ: Final = 1024


class KeyReader:
    """Takes bytes as they come, in pieces of any size, and gives the names of keys."""

    def __init__(self) -> None:
        self._waiting = b""

    @property
    def has_partial_key(self) -> bool:
        """Whether a key has begun that may go on."""
        return bool(self._waiting)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are whole now."""
        self._waiting += data
        keys: list[str] = []
        while self._waiting and not _UNFINISHED.fullmatch(self._waiting):
            keys += self._take()
        return keys

    def flush(self) -> list[str]:
        """Nothing more comes: what has begun was the escape key, or nothing known."""
        alone = self._waiting == b"\x1b"
        self._waiting = b""
        return ["escape"] if alone else []

    def _take(self) -> list[str]:
        found = _SEQUENCE.match(self._waiting)
        if found:
            self._waiting = self._waiting[found.end() :]
            numbers, end, single = found.groups()
            first = (numbers or b"").partition(b";")[0]
            name = _NUMBERS.get(first) if end == b"~" else _FINALS.get(end or single)
            return [name] if name else []
        byte, self._waiting = self._waiting[:1], self._waiting[1:]
        if byte == b"\x1b":
            return ["escape"]
        name = _NAMES.get(byte) or (byte.decode() if b"!" <= byte <= b"~" else None)
        return [name] if name else []


@contextmanager
def open_terminal() -> Generator[int | None]:
    """A terminal to read keys from: standard input, or the controlling terminal where that is not
    one; None where there is none at all.
    """
    try:
        if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            yield sys.stdin.fileno()
            return
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except (OSError, ValueError):
        yield None
        return
    try:
        yield terminal
    finally:
        os.close(terminal)


@contextmanager
def keys_at_once(terminal: int) -> Generator[None]:
    """Have each key handed over as it is pressed; afterwards all is as it was."""
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        mode = termios.tcgetattr(terminal)
        mode[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def read_keys(terminal: int, seconds: float) -> bytes | None:
    """What was pressed within a time, perhaps nothing; None once the terminal is gone."""
    try:
        ready, _, _ = select.select([terminal], [], [], seconds)
        return (os.read(terminal, _READ) or None) if ready else b""
    except OSError:
        return None

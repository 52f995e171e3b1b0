"""Text from facts, made harmless for a terminal.

Agents and their tools write what they like. Nothing of it may move the cursor, set colours, turn
the reading direction round, or hide: whatever has no glyph of its own is shown by its number.
"""

import re
import unicodedata
from typing import Final

_SPACE: Final = re.compile(r"[ \t\r\n\f\v\x85\u2028\u2029]+")
_LINE: Final = re.compile(r"\r\n|[\r\n\f\v\x85\u2028\u2029]")
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters that count as printable and still show nothing."""

_MARKS: Final = frozenset({"Mn", "Me"})
_MARKS_IN_A_ROW: Final = 2


def harmless(text: str, limit: int | None = None) -> str:
    """One line of visible characters, at most `limit` of them and an ellipsis."""
    # Text far past the limit is not looked at: an excerpt of a megabyte costs what a line costs.
    seen = text if limit is None else text[: 4 * limit]
    line = "".join(_shown(_SPACE.sub(" ", seen).strip()))
    if limit is not None and (len(line) > limit or len(text) > len(seen)):
        return line[:limit] + "…"
    return line


def harmless_lines(text: str, limit: int | None = None) -> list[str]:
    """The lines of a text, each of visible characters; spaces within a line stay as they are."""
    seen = text if limit is None else text[:limit]
    lines = ["".join(_shown(line.expandtabs(4).rstrip())) for line in _LINE.split(seen.strip())]
    if limit is not None and len(text) > limit:
        lines[-1] += "…"
    return lines


def harmless_block(text: str) -> list[str]:
    """Every line of a text, blank ones and indents included, each of visible characters."""
    lines = _LINE.split(text)
    if lines and not lines[-1]:
        lines.pop()
    return ["".join(_shown(line.expandtabs(4).rstrip())) for line in lines]


def counted(number: int, noun: str) -> str:
    """`1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _shown(text: str) -> list[str]:
    shown: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        hidden = not character.isprintable() or character in _INVISIBLE
        shown.append(_number(character) if hidden or marks > _MARKS_IN_A_ROW else character)
    return shown


def _number(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004

"""Text that hides nothing: whatever has no honest glyph is shown by its number.

The attack: a command that reads as one thing and runs as another. Direction controls reorder it,
escapes repaint it, zero-width characters and strange spaces split it, letters of another alphabet
stand in for plain ones, and a thousand blanks push the rest off the screen. Each such character
becomes `⟦U+202E⟧`, a long run `⟦U+0020 ×64⟧`, a tab `⇥`. The marks themselves are marked when they
occur in the text, so that what is shown can be turned back and never stands for two things.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

LONGEST_RUN: Final = 40
"""Blanks or line breaks in a row that are shown as they are."""

_OPEN, _CLOSE, _TAB = "⟦", "⟧", "⇥"

_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters that count as printable and still show nothing."""

_LETTERS: Final = frozenset(
    "асеорхуіјѕһԁԛԝьвгкмнтзбАВСЕНІЈКМОРЅТХУҮЗԌԚԜ"
    "αγεικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ"
    "օսոհցոզկյղքԱՍՏՕԼ"
    "ɑɡɩıĸſɪʏƖǀǃʟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱ"
    "ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷΝᏢᎡᏚᎢᏙᎳᏃ"  # noqa: RUF001
)
"""Letters that pass for plain ones."""

_MARKS_OF_PUNCTUATION: Final = frozenset(
    "‐‑‒–—―−⁃˗∕⁄⧸∖⧵∣ǀ❘ǃ‘’‛′ʹʻʼʽˈ“”‟″„‚ˋ´՚׳꞉∶ː⁏‹›˂˃≺≻⁎∗٭⁓∼˜٪ꓸ·․"  # noqa: RUF001
)
"""Signs that pass for those which a shell or a path gives a meaning to."""

_COMBINING: Final = frozenset({"Mn", "Me", "Mc"})
_COMBINING_IN_A_ROW: Final = 2
_WORD: Final = re.compile(r"\w+")
_RUN: Final = re.compile(rf"[ \t\n]{{{LONGEST_RUN + 1},}}")
_SAME: Final = re.compile(r" +|\t+|\n+")


def is_hidden(char: str) -> bool:
    """Whether a character shows nothing, or something other than itself."""
    return not char.isprintable() or char in _INVISIBLE


def visible(text: str, *, strict: bool = True, lines: bool = False) -> str:
    """The text with nothing hidden in it. `strict` also marks what passes for another character;
    `lines` leaves line feeds in place.
    """
    alike = _alike(text) if strict and not text.isascii() else frozenset[int]()
    pieces: list[str] = []
    at = 0
    for run in _RUN.finditer(text):
        pieces += _characters(text, range(at, run.start()), alike, lines=lines)
        pieces += (_mark(same[0][0], len(same[0])) for same in _SAME.finditer(run[0]))
        at = run.end()
    pieces += _characters(text, range(at, len(text)), alike, lines=lines)
    return "".join(pieces)


def _characters(text: str, places: range, alike: frozenset[int], *, lines: bool) -> Iterator[str]:
    combining = 0
    for place in places:
        char = text[place]
        combining = combining + 1 if unicodedata.category(char) in _COMBINING else 0
        if char == "\t":
            yield _TAB
        elif char == "\n" and lines:
            yield char
        elif place in alike or combining > _COMBINING_IN_A_ROW or _must_be_marked(char):
            yield _mark(char)
        else:
            yield char


def _must_be_marked(char: str) -> bool:
    return is_hidden(char) or char in (_OPEN, _CLOSE, _TAB)


def _mark(char: str, times: int = 1) -> str:
    many = f" ×{times}" if times > 1 else ""
    return f"{_OPEN}U+{ord(char):04X}{many}{_CLOSE}"


def _alike(text: str) -> frozenset[int]:
    """The places of characters that pass for others."""
    signs = (place for place, char in enumerate(text) if not char.isascii() and _is_sign(char))
    words = (place for word in _WORD.finditer(text) for place in _letters(word))
    return frozenset((*signs, *words))


def _is_sign(char: str) -> bool:
    return char in _MARKS_OF_PUNCTUATION or unicodedata.normalize("NFKC", char).isascii()


def _letters(word: re.Match[str]) -> list[int]:
    """Letters that pass for plain ones, unless the word is clearly of their own alphabet."""
    foreign = [char for char in word[0] if not char.isascii() and char not in _LETTERS]
    if any(not unicodedata.name(char, "").startswith("LATIN") for char in foreign):
        return []
    return [word.start() + place for place, char in enumerate(word[0]) if char in _LETTERS]

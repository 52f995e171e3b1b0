"""Patterns over a row of words: the segments of a path, the words of a command.

A step is one word with `*` in it, or `ANY`, which stands for any number of words. A word
may be unknown (None), as `$X` is before the shell runs. A match is certain, or only possible: what
allows must match for certain, what forbids need only be possible.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

ANY: Final = None

Step = re.Pattern[str] | None
Steps = tuple[Step, ...]
Words = Sequence[str | None]


def step(pieces: Iterable[str | None], *, folded: bool = False) -> re.Pattern[str]:
    """One word from pieces: text is literal, None is any characters."""
    parts = (".*" if piece is None else re.escape(_as(piece, folded=folded)) for piece in pieces)
    return re.compile("".join(parts), re.DOTALL)


def fold(word: str) -> str:
    """A word without case and compatibility forms, as some file systems compare names."""
    return word if word.isascii() and word.islower() else _folded(word)


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())


def _as(piece: str, *, folded: bool) -> str:
    return fold(piece) if folded else piece


def matches(steps: Steps, words: Words) -> bool:
    """Whether the words match, whatever the unknown ones turn out to be."""
    return len(steps) in _walk(steps, words, possible=False)


def may_match(steps: Steps, words: Words) -> bool:
    """Whether the words could match; an unknown one may become several, or none."""
    return len(steps) in _walk(steps, words, possible=True)


def covers_below(steps: Steps, words: Words) -> bool:
    """Whether everything below a folder matches: the pattern ends there in any number of words."""
    last = len(steps) - 1
    return last >= 0 and steps[last] is ANY and last in _walk(steps, words, possible=False)


def may_match_below(steps: Steps, words: Words) -> bool:
    """Whether something at or below a folder could match."""
    return bool(_walk(steps, words, possible=True))


def _walk(steps: Steps, words: Words, *, possible: bool) -> set[int]:
    """The places in the pattern that can be reached by taking all words."""
    places = _closed(steps, {0})
    for word in words:
        if word is None and possible:
            places = set(range(min(places), len(steps) + 1)) if places else places
        else:
            places = _closed(steps, _taken(steps, places, word))
    return places


def _taken(steps: Steps, places: set[int], word: str | None) -> set[int]:
    after = set[int]()
    for place in places:
        if place == len(steps):
            continue
        wanted = steps[place]
        if wanted is None:
            after.add(place)
        elif word is not None and wanted.fullmatch(word):
            after.add(place + 1)
    return after


def _closed(steps: Steps, places: set[int]) -> set[int]:
    """`ANY` may stand for no word at all."""
    closed = set(places)
    for place in sorted(places):
        end = place
        while end < len(steps) and steps[end] is ANY:
            end += 1
            closed.add(end)
    return closed

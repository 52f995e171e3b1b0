"""Alignment: which things of two lists belong together, when some were put in or left out.

Things at either end that are the same belong together, and so do those that stand once in each
list. Where nothing is the same in all, a name that stands once in each will do. Between such
anchors a short stretch is weighed pair by pair; a long one is paired in order, so that the work is
bounded by `ALIGNED_CELLS` for each stretch and grows with the lists, not with their product. Which
list is given first changes nothing: ties are broken by the keys themselves.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from factwire.evidence.comparison.limits import ALIGNED_CELLS, ALIGNED_LEVELS

Score = Callable[[int, int], int]
"""How well two things fit, by their places; nothing that does not fit at all scores above 0."""

Match = tuple[int, int]
Step = tuple[int | None, int | None]


def steps(length_a: int, length_b: int, found: Sequence[Match]) -> Iterator[Step]:
    """Both lists in one order: what belongs together as a pair, what stands alone with None."""
    a = b = 0
    for at_a, at_b in (*found, (length_a, length_b)):
        yield from ((place, None) for place in range(a, at_a))
        yield from ((None, place) for place in range(b, at_b))
        if at_a < length_a:
            yield at_a, at_b
        a, b = at_a + 1, at_b + 1


class Keys(NamedTuple):
    """The things of a list: those with equal keys are the same, those with equal names alike."""

    same: Sequence[str]
    names: Sequence[str]


def aligned(a: Keys, b: Keys, score: Score) -> list[Match]:
    """The places that belong together, rising on both sides."""
    if list(b.same) < list(a.same):
        turned = _Alignment(b, a, lambda at_b, at_a: score(at_a, at_b))
        return sorted((at_a, at_b) for at_b, at_a in turned.matches())
    return _Alignment(a, b, score).matches()


class _Alignment:
    """One alignment; a stretch is given by where it begins and ends in either list."""

    def __init__(self, a: Keys, b: Keys, score: Score) -> None:
        self._a = a
        self._b = b
        self._score = score
        self._found: list[Match] = []

    def matches(self) -> list[Match]:
        self._stretch(0, len(self._a.same), 0, len(self._b.same), ALIGNED_LEVELS)
        return sorted(self._found)

    def _stretch(self, a: int, end_a: int, b: int, end_b: int, levels: int) -> None:
        one, other = self._a.same, self._b.same
        while a < end_a and b < end_b and one[a] == other[b]:
            self._found.append((a, b))
            a, b = a + 1, b + 1
        while a < end_a and b < end_b and one[end_a - 1] == other[end_b - 1]:
            end_a, end_b = end_a - 1, end_b - 1
            self._found.append((end_a, end_b))
        if a == end_a or b == end_b:
            return
        if (end_a - a) * (end_b - b) <= ALIGNED_CELLS:
            self._weigh(a, end_a, b, end_b)
        else:
            self._divide(a, end_a, b, end_b, levels)

    def _divide(self, a: int, end_a: int, b: int, end_b: int, levels: int) -> None:
        anchors = self._anchors(a, end_a, b, end_b) if levels else []
        if not anchors:
            self._in_order(a, end_a, b, end_b)
            return
        self._found += anchors
        for at_a, at_b in (*anchors, (end_a, end_b)):
            self._stretch(a, at_a, b, at_b, levels - 1)
            a, b = at_a + 1, at_b + 1

    def _anchors(self, a: int, end_a: int, b: int, end_b: int) -> list[Match]:
        """Things that stand once in either stretch, as many as keep their order."""
        for one, other in zip(self._a, self._b, strict=True):
            once_a, once_b = _once(one, a, end_a), _once(other, b, end_b)
            common = [(place, once_b[key]) for key, place in once_a.items() if key in once_b]
            if common:
                return _rising(common)
        return []

    def _in_order(self, a: int, end_a: int, b: int, end_b: int) -> None:
        pairs = zip(range(a, end_a), range(b, end_b), strict=False)
        self._found += [pair for pair in pairs if self._score(*pair) > 0]

    def _weigh(self, a: int, end_a: int, b: int, end_b: int) -> None:
        """The pairing with the greatest sum of scores, by dynamic programming from the end."""
        scores = [[self._score(i, j) for j in range(b, end_b)] for i in range(a, end_a)]
        best = _best(scores)
        i = j = 0
        while i < len(scores) and j < len(scores[0]):
            score = scores[i][j]
            if score > 0 and best[i][j] == best[i + 1][j + 1] + score:
                self._found.append((a + i, b + j))
                i, j = i + 1, j + 1
            elif best[i][j] == best[i + 1][j]:
                i += 1
            else:
                j += 1


def _best(scores: list[list[int]]) -> list[list[int]]:
    """The greatest sum that is left from each pair of places on."""
    width = len(scores[0])
    rows = [[0] * (width + 1)]
    for row in reversed(scores):
        below, sums = rows[-1], [0] * (width + 1)
        for j in range(width - 1, -1, -1):
            sums[j] = max(below[j], sums[j + 1], below[j + 1] + row[j] if row[j] > 0 else 0)
        rows.append(sums)
    return rows[::-1]


def _once(keys: Sequence[str], start: int, end: int) -> dict[str, int]:
    """Keys that stand once in a stretch, with their places."""
    counts = Counter(keys[start:end])
    return {keys[place]: place for place in range(start, end) if counts[keys[place]] == 1}


def _rising(pairs: list[Match]) -> list[Match]:
    """The longest list of pairs that rises on the second side, too; the first rises already."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, at_b) in enumerate(pairs):
        place = bisect_left(tails, at_b)
        before.append(ends[place - 1] if place else -1)
        tails[place:] = [at_b]
        ends[place:] = [index]
    return _traced(pairs, before, ends[-1] if ends else -1)


def _traced(pairs: list[Match], before: list[int], last: int) -> list[Match]:
    found: list[Match] = []
    while last >= 0:
        found.append(pairs[last])
        last = before[last]
    return found[::-1]

"""Comparing two runs: the same facts always give the same `Comparison`, without I/O or a clock.

Turns, items and lines of text are paired by one alignment: things that are the same at either
end, then those that stand once in each list, then names. Between such anchors a short range is
paired by score and a long one in order, so that the cost has a bound.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factwire.evidence.limits import (
    ALIGNED_CELLS,
    ALIGNED_LEVELS,
    CONTEXT_LINES,
    DIFF_LINES,
    INLINE_CHARACTERS,
    SIMILAR,
    VALUE_CHARACTERS,
)
from factwire.evidence.run_account import (
    AccountTurn,
    ComparedItem,
    Items,
    RunAccount,
    build_account,
    split_words,
    word_similarity,
)
from factwire.evidence.run_comparison import (
    ASPECTS,
    COMPARISON_VERSION,
    Aspect,
    Change,
    Comparison,
    Difference,
    TextChange,
    TextLine,
    TurnComparison,
)
from factwire.facts import Fact

Score = Callable[[int, int], int]
"""How well two things fit, by their places; nothing that does not fit at all scores above 0."""

IndexPair = tuple[int, int]
AlignedStep = tuple[int | None, int | None]


def walk_steps(length_a: int, length_b: int, found: Sequence[IndexPair]) -> Iterator[AlignedStep]:
    """Both lists in one order: what belongs together as a pair, what stands alone with None."""
    a = b = 0
    for at_a, at_b in (*found, (length_a, length_b)):
        yield from ((place, None) for place in range(a, at_a))
        yield from ((None, place) for place in range(b, at_b))
        if at_a < length_a:
            yield at_a, at_b
        a, b = at_a + 1, at_b + 1


class AlignmentKeys(NamedTuple):
    """The things of a list: those with equal keys are the same, those with equal names alike."""

    same: Sequence[str]
    names: Sequence[str]


def align(a: AlignmentKeys, b: AlignmentKeys, score: Score) -> list[IndexPair]:
    """The places that belong together, rising on both sides."""
    if list(b.same) < list(a.same):
        turned = _Aligner(b, a, lambda at_b, at_a: score(at_a, at_b))
        return sorted((at_a, at_b) for at_b, at_a in turned.align())
    return _Aligner(a, b, score).align()


class _Aligner:
    """One alignment; a stretch is given by where it begins and ends in either list."""

    def __init__(self, a: AlignmentKeys, b: AlignmentKeys, score: Score) -> None:
        self._a = a
        self._b = b
        self._score = score
        self._found: list[IndexPair] = []

    def align(self) -> list[IndexPair]:
        self._align_range(0, len(self._a.same), 0, len(self._b.same), ALIGNED_LEVELS)
        return sorted(self._found)

    def _align_range(self, a: int, end_a: int, b: int, end_b: int, levels: int) -> None:
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
            self._pair_by_score(a, end_a, b, end_b)
        else:
            self._align_between_anchors(a, end_a, b, end_b, levels)

    def _align_between_anchors(self, a: int, end_a: int, b: int, end_b: int, levels: int) -> None:
        anchors = self._find_anchors(a, end_a, b, end_b) if levels else []
        if not anchors:
            self._pair_in_order(a, end_a, b, end_b)
            return
        self._found += anchors
        for at_a, at_b in (*anchors, (end_a, end_b)):
            self._align_range(a, at_a, b, at_b, levels - 1)
            a, b = at_a + 1, at_b + 1

    def _find_anchors(self, a: int, end_a: int, b: int, end_b: int) -> list[IndexPair]:
        """Things that stand once in either stretch, as many as keep their order."""
        for one, other in zip(self._a, self._b, strict=True):
            once_a, once_b = _find_unique_keys(one, a, end_a), _find_unique_keys(other, b, end_b)
            common = [(place, once_b[key]) for key, place in once_a.items() if key in once_b]
            if common:
                return _longest_rising(common)
        return []

    def _pair_in_order(self, a: int, end_a: int, b: int, end_b: int) -> None:
        pairs = zip(range(a, end_a), range(b, end_b), strict=False)
        self._found += [pair for pair in pairs if self._score(*pair) > 0]

    def _pair_by_score(self, a: int, end_a: int, b: int, end_b: int) -> None:
        """The pairing with the greatest sum of scores, by dynamic programming from the end."""
        scores = [[self._score(i, j) for j in range(b, end_b)] for i in range(a, end_a)]
        best = _sum_best_scores(scores)
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


def _sum_best_scores(scores: list[list[int]]) -> list[list[int]]:
    """The greatest sum that is left from each pair of places on."""
    width = len(scores[0])
    rows = [[0] * (width + 1)]
    for row in reversed(scores):
        below, sums = rows[-1], [0] * (width + 1)
        for j in range(width - 1, -1, -1):
            sums[j] = max(below[j], sums[j + 1], below[j + 1] + row[j] if row[j] > 0 else 0)
        rows.append(sums)
    return rows[::-1]


def _find_unique_keys(keys: Sequence[str], start: int, end: int) -> dict[str, int]:
    """Keys that stand once in a stretch, with their places."""
    counts = Counter(keys[start:end])
    return {keys[place]: place for place in range(start, end) if counts[keys[place]] == 1}


def _longest_rising(pairs: list[IndexPair]) -> list[IndexPair]:
    """The longest list of pairs that rises on the second side, too; the first rises already."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, at_b) in enumerate(pairs):
        place = bisect_left(tails, at_b)
        before.append(ends[place - 1] if place else -1)
        tails[place:] = [at_b]
        ends[place:] = [index]
    return _trace_back(pairs, before, ends[-1] if ends else -1)


def _trace_back(pairs: list[IndexPair], before: list[int], last: int) -> list[IndexPair]:
    found: list[IndexPair] = []
    while last >= 0:
        found.append(pairs[last])
        last = before[last]
    return found[::-1]


Side = Literal["both", "a", "b"]


class ComparedText(msgspec.Struct, frozen=True):
    """A text as it is, and without what is new in every run."""

    text: str
    hidden: str


def diff_texts(a: ComparedText, b: ComparedText) -> TextChange:
    """What differs between two texts."""
    keys_a, keys_b = a.hidden.split("\n"), b.hidden.split("\n")
    lines_a, lines_b = AlignmentKeys(keys_a, keys_a), AlignmentKeys(keys_b, keys_b)
    found = align(lines_a, lines_b, lambda i, j: int(keys_a[i] == keys_b[j]))
    walk = list(walk_steps(len(keys_a), len(keys_b), found))
    lines = list(_list_lines(walk, a.text.split("\n"), b.text.split("\n")))
    return TextChange(
        removed_lines=sum(at_b is None for _, at_b in walk),
        added_lines=sum(at_a is None for at_a, _ in walk),
        lines=lines[:DIFF_LINES],
        left_out=max(0, len(lines) - DIFF_LINES),
    )


def _list_lines(walk: list[AlignedStep], a: Sequence[str], b: Sequence[str]) -> Iterator[TextLine]:
    near, skipped = _mark_context(walk), 0
    for index, (at_a, at_b) in enumerate(walk):
        if not near[index]:
            skipped += 1
            continue
        text = b[at_b] if at_a is None and at_b is not None else a[at_a or 0]
        yield TextLine(side=_line_side(at_a, at_b), text=text[:VALUE_CHARACTERS], left_out=skipped)
        skipped = 0


def _mark_context(walk: list[AlignedStep]) -> list[bool]:
    """Which steps are a difference, or so near to one that they are shown with it."""
    near = [False] * len(walk)
    for index, (at_a, at_b) in enumerate(walk):
        if at_a is None or at_b is None:
            first, last = max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1
            near[first:last] = [True] * len(near[first:last])
    return near


def _line_side(at_a: int | None, at_b: int | None) -> Side:
    if at_a is None:
        return "b"
    return "a" if at_b is None else "both"


_SAME: Final = 1_000
_ALIKE: Final = 500
_SUBJECT: Final = 10
"""What a pair scores: the same in all, of one subject and alike, or of one subject at least."""


def find_differences(
    aspect: Aspect, a: Sequence[ComparedItem], b: Sequence[ComparedItem]
) -> list[Difference]:
    """What B has and A has not, or otherwise, in the order of the turn."""
    if [each.key for each in a] == [each.key for each in b]:
        return []

    def score(at_a: int, at_b: int) -> int:
        return _score_items(a[at_a], b[at_b])

    found = align(_item_keys(a), _item_keys(b), score)
    return list(_list_differences(aspect, a, b, found))


def _item_keys(items: Sequence[ComparedItem]) -> AlignmentKeys:
    return AlignmentKeys([each.key for each in items], [each.name for each in items])


def _score_items(a: ComparedItem, b: ComparedItem) -> int:
    if a.about != b.about:
        return 0
    return _SAME if a.key == b.key else _SUBJECT + int(_ALIKE * word_similarity(a.words, b.words))


def _list_differences(
    aspect: Aspect, a: Sequence[ComparedItem], b: Sequence[ComparedItem], found: list[IndexPair]
) -> Iterator[Difference]:
    moved = _find_moves(a, b, found)
    came = set(moved.values())
    for at_a, at_b in walk_steps(len(a), len(b), found):
        if at_a is not None and at_b is not None:
            if a[at_a].key != b[at_b].key:
                yield _describe_change(aspect, a[at_a], b[at_b], at_a, at_b)
        elif at_a is not None:
            yield _removed_or_moved(aspect, a[at_a], at_a, moved.get(at_a))
        elif at_b is not None and at_b not in came:
            new = b[at_b]
            values = [
                Change(field=name, b=_shorten_value(value)) for name, value in new.fields.items()
            ]
            yield Difference(
                aspect=aspect, kind="added", subject=new.subject, at_b=at_b + 1, changes=values
            )


def _removed_or_moved(aspect: Aspect, item: ComparedItem, at_a: int, to: int | None) -> Difference:
    """What A has at a place and B has not there: gone, or elsewhere."""
    if to is not None:
        return Difference(
            aspect=aspect, kind="moved", subject=item.subject, at_a=at_a + 1, at_b=to + 1
        )
    values = [Change(field=name, a=_shorten_value(value)) for name, value in item.fields.items()]
    return Difference(
        aspect=aspect, kind="removed", subject=item.subject, at_a=at_a + 1, changes=values
    )


def _find_moves(
    a: Sequence[ComparedItem], b: Sequence[ComparedItem], found: list[IndexPair]
) -> dict[int, int]:
    """What has no counterpart at its place, and has the same one elsewhere: from where to where."""
    taken = {at_b for _, at_b in found}
    left: dict[str, list[int]] = defaultdict(list)
    for at_b in reversed(range(len(b))):
        if at_b not in taken:
            left[b[at_b].key].append(at_b)
    stayed = {at_a for at_a, _ in found}
    return {
        at_a: left[each.key].pop()
        for at_a, each in enumerate(a)
        if at_a not in stayed and left.get(each.key)
    }


def _describe_change(
    aspect: Aspect, a: ComparedItem, b: ComparedItem, at_a: int, at_b: int
) -> Difference:
    names = [
        name for name in _field_names(a, b) if _is_different(a.hidden.get(name), b.hidden.get(name))
    ]
    return Difference(
        aspect=aspect,
        kind="changed",
        subject=a.subject,
        at_a=at_a + 1,
        at_b=at_b + 1,
        changes=[_compare_field(a, b, name) for name in names],
    )


def _field_names(a: ComparedItem, b: ComparedItem) -> list[str]:
    """Fields of either side, in an order that does not depend on which side is which."""
    return sorted(a.fields.keys() | b.fields.keys())


def _is_different(a: Any, b: Any) -> bool:
    """Whether two values differ; true is not 1, and an absent field is not null."""
    return msgspec.json.encode(a, order="sorted") != msgspec.json.encode(b, order="sorted")


def _compare_field(a: ComparedItem, b: ComparedItem, name: str) -> Change:
    one, other = a.fields.get(name), b.fields.get(name)
    if isinstance(one, str) and isinstance(other, str) and _is_long_text(one, other):
        wording_a, wording_b = (
            ComparedText(one, a.hidden[name]),
            ComparedText(other, b.hidden[name]),
        )
        return Change(field=name, text=diff_texts(wording_a, wording_b))
    return Change(field=name, a=_shorten_value(one), b=_shorten_value(other))


def _is_long_text(a: str, b: str) -> bool:
    return "\n" in a or "\n" in b or max(len(a), len(b)) > INLINE_CHARACTERS


def _shorten_value(value: Any) -> Any:
    """A value that is short enough to travel; a text or a table that is not is cut."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return value if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "…"


_SAME_PROMPT = 1_000
_SAME_TURN = 100
_REWORDED = 500
"""What a pair of turns scores: asked the same, with the same in it besides, or much alike."""


def compare(a: Iterable[Fact] | RunAccount, b: Iterable[Fact] | RunAccount) -> Comparison:
    """How B differs from A. Turns are paired by prompt and order, so that one that was put in or
    left out does not shift the others.
    """
    one = a if isinstance(a, RunAccount) else build_account(a)
    other = b if isinstance(b, RunAccount) else build_account(b)
    turns = [_compare_turn(*pair) for pair in _pair_turns(one.turns, other.turns)]
    outside = _find_all_differences(one.outside, other.outside)
    return Comparison(
        schema_version=COMPARISON_VERSION,
        same=not outside and all(each.status == "same" for each in turns),
        a=one.side,
        b=other.side,
        aspects=list(ASPECTS),
        turns=turns,
        outside=outside,
    )


def _pair_turns(
    a: list[AccountTurn], b: list[AccountTurn]
) -> Iterator[tuple[AccountTurn | None, AccountTurn | None]]:
    words_a = [split_words(turn.side.prompt) for turn in a]
    words_b = [split_words(turn.side.prompt) for turn in b]

    def score(at_a: int, at_b: int) -> int:
        if a[at_a].prompt_key == b[at_b].prompt_key:
            return _SAME_PROMPT + _SAME_TURN * (a[at_a].key == b[at_b].key)
        alike = word_similarity(words_a[at_a], words_b[at_b])
        return int(_REWORDED * alike) if alike >= SIMILAR else 0

    found = align(_turn_keys(a), _turn_keys(b), score)
    found += _pair_unmatched(list(walk_steps(len(a), len(b), found)))
    for at_a, at_b in walk_steps(len(a), len(b), sorted(found)):
        yield (None if at_a is None else a[at_a], None if at_b is None else b[at_b])


def _turn_keys(turns: list[AccountTurn]) -> AlignmentKeys:
    return AlignmentKeys([turn.key for turn in turns], [turn.prompt_key for turn in turns])


def _pair_unmatched(walk: list[AlignedStep]) -> list[IndexPair]:
    """Turns that have no counterpart, as many on one side as on the other: asked otherwise."""
    found: list[IndexPair] = []
    alone_a: list[int] = []
    alone_b: list[int] = []
    for at_a, at_b in (*walk, (0, 0)):
        if at_a is not None and at_b is not None:
            if len(alone_a) == len(alone_b):
                found += zip(alone_a, alone_b, strict=True)
            alone_a, alone_b = [], []
        elif at_a is not None:
            alone_a.append(at_a)
        elif at_b is not None:
            alone_b.append(at_b)
    return found


def _compare_turn(a: AccountTurn | None, b: AccountTurn | None) -> TurnComparison:
    if a is None or b is None:
        side_a, side_b = a and a.side, b and b.side
        return TurnComparison(status="only_b" if a is None else "only_a", a=side_a, b=side_b)
    found = _find_all_differences(a.items, b.items)
    status = "differs" if found else "same"
    return TurnComparison(status=status, a=a.side, b=b.side, differences=found)


def _find_all_differences(a: Items, b: Items) -> list[Difference]:
    return [each for aspect in ASPECTS for each in find_differences(aspect, a[aspect], b[aspect])]

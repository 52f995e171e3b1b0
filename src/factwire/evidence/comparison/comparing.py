"""Comparing: two runs in, one `Comparison` out; the same facts always give the same one."""

from collections.abc import Iterable, Iterator

from factwire.evidence.comparison.accounts import Account, Items, Turn, account_of
from factwire.evidence.comparison.alignment import Keys, Match, Step, aligned, steps
from factwire.evidence.comparison.comparison import (
    ASPECTS,
    COMPARISON_VERSION,
    Comparison,
    Difference,
    TurnComparison,
)
from factwire.evidence.comparison.differing import differences
from factwire.evidence.comparison.items import likeness, words_of
from factwire.evidence.comparison.limits import SIMILAR
from factwire.facts import Fact

_SAME_PROMPT = 1_000
_SAME_TURN = 100
_REWORDED = 500
"""What a pair of turns scores: asked the same, with the same in it besides, or much alike."""


def compare(a: Iterable[Fact] | Account, b: Iterable[Fact] | Account) -> Comparison:
    """How B differs from A. Turns are paired by prompt and order, so that one that was put in or
    left out does not shift the others.
    """
    one = a if isinstance(a, Account) else account_of(a)
    other = b if isinstance(b, Account) else account_of(b)
    turns = [_turn(*pair) for pair in _paired(one.turns, other.turns)]
    outside = _all_differences(one.outside, other.outside)
    return Comparison(
        schema_version=COMPARISON_VERSION,
        same=not outside and all(each.status == "same" for each in turns),
        a=one.side,
        b=other.side,
        aspects=list(ASPECTS),
        turns=turns,
        outside=outside,
    )


def _paired(a: list[Turn], b: list[Turn]) -> Iterator[tuple[Turn | None, Turn | None]]:
    words_a = [words_of(turn.side.prompt) for turn in a]
    words_b = [words_of(turn.side.prompt) for turn in b]

    def score(at_a: int, at_b: int) -> int:
        if a[at_a].prompt_key == b[at_b].prompt_key:
            return _SAME_PROMPT + _SAME_TURN * (a[at_a].key == b[at_b].key)
        alike = likeness(words_a[at_a], words_b[at_b])
        return int(_REWORDED * alike) if alike >= SIMILAR else 0

    found = aligned(_keys(a), _keys(b), score)
    found += _between(list(steps(len(a), len(b), found)))
    for at_a, at_b in steps(len(a), len(b), sorted(found)):
        yield (None if at_a is None else a[at_a], None if at_b is None else b[at_b])


def _keys(turns: list[Turn]) -> Keys:
    return Keys([turn.key for turn in turns], [turn.prompt_key for turn in turns])


def _between(walk: list[Step]) -> list[Match]:
    """Turns that have no counterpart, as many on one side as on the other: asked otherwise."""
    found: list[Match] = []
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


def _turn(a: Turn | None, b: Turn | None) -> TurnComparison:
    if a is None or b is None:
        side_a, side_b = a and a.side, b and b.side
        return TurnComparison(status="only_b" if a is None else "only_a", a=side_a, b=side_b)
    found = _all_differences(a.items, b.items)
    status = "differs" if found else "same"
    return TurnComparison(status=status, a=a.side, b=b.side, differences=found)


def _all_differences(a: Items, b: Items) -> list[Difference]:
    return [each for aspect in ASPECTS for each in differences(aspect, a[aspect], b[aspect])]

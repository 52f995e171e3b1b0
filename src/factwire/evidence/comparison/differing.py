"""Differing: what is not the same among the items of one aspect."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from factwire.evidence.comparison.alignment import Keys, Match, aligned, steps
from factwire.evidence.comparison.comparison import Aspect, Change, Difference
from factwire.evidence.comparison.items import Item, likeness
from factwire.evidence.comparison.limits import INLINE_CHARACTERS, VALUE_CHARACTERS
from factwire.evidence.comparison.texts import Wording, text_change

_SAME: Final = 1_000
_ALIKE: Final = 500
_SUBJECT: Final = 10
"""What a pair scores: the same in all, of one subject and alike, or of one subject at least."""


def differences(aspect: Aspect, a: Sequence[Item], b: Sequence[Item]) -> list[Difference]:
    """What B has and A has not, or otherwise, in the order of the turn."""
    if [each.key for each in a] == [each.key for each in b]:
        return []

    def score(at_a: int, at_b: int) -> int:
        return _score(a[at_a], b[at_b])

    found = aligned(_keys(a), _keys(b), score)
    return list(_told(aspect, a, b, found))


def _keys(items: Sequence[Item]) -> Keys:
    return Keys([each.key for each in items], [each.name for each in items])


def _score(a: Item, b: Item) -> int:
    if a.about != b.about:
        return 0
    return _SAME if a.key == b.key else _SUBJECT + int(_ALIKE * likeness(a.words, b.words))


def _told(
    aspect: Aspect, a: Sequence[Item], b: Sequence[Item], found: list[Match]
) -> Iterator[Difference]:
    moved = _moved(a, b, found)
    came = set(moved.values())
    for at_a, at_b in steps(len(a), len(b), found):
        if at_a is not None and at_b is not None:
            if a[at_a].key != b[at_b].key:
                yield _changed(aspect, a[at_a], b[at_b], at_a, at_b)
        elif at_a is not None:
            yield _left(aspect, a[at_a], at_a, moved.get(at_a))
        elif at_b is not None and at_b not in came:
            new = b[at_b]
            values = [Change(field=name, b=_cut(value)) for name, value in new.fields.items()]
            yield Difference(
                aspect=aspect, kind="added", subject=new.subject, at_b=at_b + 1, changes=values
            )


def _left(aspect: Aspect, item: Item, at_a: int, to: int | None) -> Difference:
    """What A has at a place and B has not there: gone, or elsewhere."""
    if to is not None:
        return Difference(
            aspect=aspect, kind="moved", subject=item.subject, at_a=at_a + 1, at_b=to + 1
        )
    values = [Change(field=name, a=_cut(value)) for name, value in item.fields.items()]
    return Difference(
        aspect=aspect, kind="removed", subject=item.subject, at_a=at_a + 1, changes=values
    )


def _moved(a: Sequence[Item], b: Sequence[Item], found: list[Match]) -> dict[int, int]:
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


def _changed(aspect: Aspect, a: Item, b: Item, at_a: int, at_b: int) -> Difference:
    names = [name for name in _names(a, b) if _other(a.hidden.get(name), b.hidden.get(name))]
    return Difference(
        aspect=aspect,
        kind="changed",
        subject=a.subject,
        at_a=at_a + 1,
        at_b=at_b + 1,
        changes=[_change(a, b, name) for name in names],
    )


def _names(a: Item, b: Item) -> list[str]:
    """Fields of either side, in an order that does not depend on which side is which."""
    return sorted(a.fields.keys() | b.fields.keys())


def _other(a: Any, b: Any) -> bool:
    """Whether two values differ; true is not 1, and an absent field is not null."""
    return msgspec.json.encode(a, order="sorted") != msgspec.json.encode(b, order="sorted")


def _change(a: Item, b: Item, name: str) -> Change:
    one, other = a.fields.get(name), b.fields.get(name)
    if isinstance(one, str) and isinstance(other, str) and _is_long(one, other):
        wording_a, wording_b = Wording(one, a.hidden[name]), Wording(other, b.hidden[name])
        return Change(field=name, text=text_change(wording_a, wording_b))
    return Change(field=name, a=_cut(one), b=_cut(other))


def _is_long(a: str, b: str) -> bool:
    return "\n" in a or "\n" in b or max(len(a), len(b)) > INLINE_CHARACTERS


def _cut(value: Any) -> Any:
    """A value that is short enough to travel; a text or a table that is not is cut."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return value if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "…"

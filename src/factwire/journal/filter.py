"""Filters, and the keys under which a fact can be found.

A fact is indexed under one key for each id a filter can name and one for its class, such as
`t:thread-1` or `c:tool.result`. Backends index keys; they never look into facts to answer a filter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from factwire.facts.fact import PAYLOAD_NAMES, Fact, id_in_payload
from factwire.facts.json_values import text_at

Keys = tuple[str, ...]
"""The keys of one fact."""

Groups = Mapping[Keys, Sequence[int]]
"""Keys → positions of the facts that have exactly these; facts of one turn share most of theirs."""

KEY_MARKS: Final[Mapping[str, str]] = {
    "project": "p:",
    "session": "s:",
    "thread": "t:",
    "run": "r:",
    "turn": "u:",
    "task": "k:",
}
"""Field of `Filter` → mark of its keys."""

CLASS_MARK: Final = "c:"

_MARKS: Final = (*KEY_MARKS.values(), CLASS_MARK)
_THREAD: Final = _MARKS.index(KEY_MARKS["thread"])
key_ids: Final = attrgetter(*(f"{name}_id" for name in KEY_MARKS), "event_class")
KeysAndThread = tuple[Keys, str | None]
"""The keys of a fact, and its thread."""

_REMEMBERED: Final = 8_192
_REMEMBERED_SIZE: Final = 1_024
KEYS_OF_IDS: Final[dict[tuple[str | None, ...], KeysAndThread]] = {}
"""What `build_keys` answered: the facts of a turn share their ids, so most have been asked for
before. Bounded in number and, because ids may be of any length, in size."""

BESIDE_THREAD: Final = "besideThreadId"
"""The payload field of a fact beside a thread: it is read with the thread, and has no place in its
sequence."""

_PAYLOAD_IDS: Final = tuple((mark, f"{name}Id") for name, mark in KEY_MARKS.items())
PAYLOAD_KEYS: Final = frozenset(
    {BESIDE_THREAD, *(key for _, name in _PAYLOAD_IDS for key in PAYLOAD_NAMES[name])}
)


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts that carry every id named here and are of any of the classes.

    A class stands for itself and for all below it: `tool` and `tool.` both mean `tool` and
    `tool.started`, never `toolbox.opened`.
    """

    project: str | None = None
    session: str | None = None
    thread: str | None = None
    run: str | None = None
    turn: str | None = None
    task: str | None = None
    classes: tuple[str, ...] = ()

    def keys(self) -> tuple[str, ...]:
        """The keys that a fact must have, all of them."""
        named = ((mark, getattr(self, field)) for field, mark in KEY_MARKS.items())
        return tuple(mark + value for mark, value in named if value is not None)

    def class_keys(self, keys: Iterable[str]) -> list[str]:
        """Those among `keys` that name a class this filter lets through."""
        exact = {CLASS_MARK + name.removesuffix(".") for name in self.classes}
        below = tuple(f"{key}." if key != CLASS_MARK else key for key in exact)
        return [key for key in keys if key in exact or key.startswith(below)]

    def lets_through(self, keys: Collection[str]) -> bool:
        """Whether a fact with these keys passes."""
        if not all(key in keys for key in self.keys()):
            return False
        return not self.classes or bool(self.class_keys(keys))

    def select(self, groups: Groups) -> list[int]:
        """Positions that pass, in order."""
        needed = frozenset(self.keys())
        chosen = [
            places
            for keys, places in groups.items()
            if needed.issubset(keys) and (not self.classes or self.class_keys(keys))
        ]
        return sorted({place for places in chosen for place in places})


def list_keys(fact: Fact) -> Keys:
    """The keys of a fact; its ids count wherever the fact carries them."""
    return list_keys_and_thread(fact)[0]


def list_keys_and_thread(fact: Fact) -> KeysAndThread:
    """The keys of a fact, and the thread whose sequence it belongs to."""
    ids = key_ids(fact)
    named = KEYS_OF_IDS.get(ids) or build_keys(ids)
    if fact.payload and not PAYLOAD_KEYS.isdisjoint(fact.payload):
        return _add_payload_keys(fact, named[0]), find_thread_id(fact)
    return named


def build_keys(ids: tuple[str | None, ...]) -> KeysAndThread:
    """The keys of a fact that has these ids and none in its payload."""
    keys = tuple(mark + value for mark, value in zip(_MARKS, ids, strict=True) if value)
    named = keys, ids[_THREAD] or None
    if sum(map(len, keys)) <= _REMEMBERED_SIZE:
        if len(KEYS_OF_IDS) >= _REMEMBERED:
            KEYS_OF_IDS.clear()
        KEYS_OF_IDS[ids] = named
    return named


def find_thread_id(fact: Fact) -> str | None:
    """The thread whose sequence a fact belongs to."""
    return fact.thread_id or (id_in_payload(fact.payload, "threadId") if fact.payload else None)


def _add_payload_keys(fact: Fact, keys: Keys) -> Keys:
    own = keys[:-1] if fact.event_class else keys
    marks = {key[:2] for key in own}
    found = [
        (mark, id_in_payload(fact.payload, name))
        for mark, name in _PAYLOAD_IDS
        if mark not in marks
    ]
    if find_thread_id(fact) is None:
        found.append((KEY_MARKS["thread"], text_at(fact.payload, BESIDE_THREAD)))
    return (*own, *(mark + value for mark, value in found if value), *keys[len(own) :])

"""Filters, and the keys under which a fact can be found.

A fact is indexed under one key for each id a filter can name and one for its class, such as
`t:thread-1` or `c:tool.result`. Backends index keys; they never look into facts to answer a filter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import PAYLOAD_NAMES, id_in_payload

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

_PAYLOAD_IDS: Final = tuple((mark, f"{name}Id") for name, mark in KEY_MARKS.items())
_PAYLOAD_KEYS: Final = frozenset(key for _, name in _PAYLOAD_IDS for key in PAYLOAD_NAMES[name])


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


def keys_of(fact: Fact) -> Keys:
    """The keys of a fact; its ids count wherever the fact carries them."""
    keys: list[str] = []
    if fact.project_id:
        keys.append("p:" + fact.project_id)
    if fact.session_id:
        keys.append("s:" + fact.session_id)
    if fact.thread_id:
        keys.append("t:" + fact.thread_id)
    if fact.run_id:
        keys.append("r:" + fact.run_id)
    if fact.turn_id:
        keys.append("u:" + fact.turn_id)
    if fact.task_id:
        keys.append("k:" + fact.task_id)
    if fact.payload and not _PAYLOAD_KEYS.isdisjoint(fact.payload):
        keys += _payload_keys(fact, keys)
    if fact.event_class:
        keys.append(CLASS_MARK + fact.event_class)
    return tuple(keys)


def thread_of(fact: Fact) -> str | None:
    """The thread whose sequence a fact belongs to."""
    return fact.thread_id or (id_in_payload(fact.payload, "threadId") if fact.payload else None)


def _payload_keys(fact: Fact, known: list[str]) -> list[str]:
    marks = {key[:2] for key in known}
    found = (
        (mark, id_in_payload(fact.payload, name))
        for mark, name in _PAYLOAD_IDS
        if mark not in marks
    )
    return [mark + value for mark, value in found if value is not None]

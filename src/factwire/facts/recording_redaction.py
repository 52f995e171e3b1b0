"""Redaction of what was recorded elsewhere, on its way in.

A file that Factwire did not write may hold secrets anywhere: in texts, in pieces of texts, in keys
and in ids. All of them are replaced before anything is shown, converted, compared or packed. A
recording is complete, so no text is lost at its end: what is held back because it might become a
secret goes to the last piece of its text once the turn or the recording is over.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from factwire.facts.classes.class_tables import TEXT_PIECES, TURN_TERMINALS
from factwire.facts.delta_fast_path import TextKey, text_key
from factwire.facts.fact import Fact, id_of
from factwire.facts.redaction import RedactedFact, Redactor, redact_text
from factwire.facts.secret_key_names import REDACTED
from factwire.facts.secret_shapes import may_hold_secret

SECRETS_REDACTED: Final = "secrets_redacted"
"""The code of the remark on a recording in which secrets were replaced."""

_TEXTS: Final = frozenset({"title", "detail"})
_NAMES: Final = tuple(
    field.name
    for field in msgspec.structs.fields(Fact)
    if field.type in (str, str | None) and field.name not in _TEXTS
)
"""Fields of a fact that are ids, names or times."""

_REMEMBERED: Final = 8_192
"""Names without secrets that are remembered, so that each is searched once as a rule."""


class NameRedactor:
    """Replaces secrets in ids and other names, each by a name of its own, so that ids that differ
    still do. Feed it the facts of one recording, in the order of the recording.
    """

    def __init__(self) -> None:
        self.count = 0
        self._clean: set[str] = set()
        self._names: dict[str, str] = {}

    def feed(self, fact: Fact) -> Fact:
        """The fact without secrets in its names; the very same one if there are none."""
        clean = self._clean
        changes: dict[str, str] = {}
        for field in _NAMES:
            name = getattr(fact, field)
            if name is not None and name not in clean and (safe := self._redact(name)) != name:
                changes[field] = safe
        if not changes:
            return fact
        self.count += len(changes)
        return msgspec.structs.replace(fact, **changes)

    def _redact(self, name: str) -> str:
        if name in self._names:
            return self._names[name]
        safe = redact_text(name)[0] if may_hold_secret(name) else name
        if safe == name:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            self._clean.add(name)
            return name
        number = len(self._names) + 1
        self._names[name] = safe if number == 1 else f"{safe} {number}"
        return self._names[name]


class RecordingRedactor:
    """Redacts the facts of one complete recording; `count` is how many secrets it replaced."""

    def __init__(self) -> None:
        self.count = 0
        self._redactor = Redactor()
        self._waiting: deque[Fact] = deque()
        self._pieces: dict[TextKey, int] = {}
        self._passed = 0

    def redact(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        """The facts of a whole recording as they may be shown: as many, in the same order."""
        for fact in facts:
            yield from self.feed(fact)
        yield from self.finish()

    def feed(self, fact: Fact) -> Iterator[Fact]:
        """The facts that no later one can change, up to this one."""
        if fact.event_class in TURN_TERMINALS:
            turn = id_of(fact, "turnId")
            self._release([key for key in self._redactor.held_texts if key[0] == turn])
        redacted = self._redactor.feed(fact)
        self._count(redacted)
        self._waiting.append(redacted.fact)
        if not self._redactor.held_texts:
            yield from self._drain()
            return
        pieces = TEXT_PIECES.get(fact.event_class or "")
        if pieces is not None and isinstance(fact.payload.get(pieces.key), str):
            place = self._passed + len(self._waiting) - 1
            self._pieces[text_key(fact, pieces)] = place

    def finish(self, *, cut: bool = False) -> Iterator[Fact]:
        """The facts that are left. A recording that was `cut` goes on behind its last fact: what
        is held back may be half a secret, and stays back.
        """
        if not cut:
            self._release(list(self._redactor.held_texts))
        yield from self._drain()

    def _drain(self) -> Iterator[Fact]:
        self._passed += len(self._waiting)
        ready, self._waiting = self._waiting, deque()
        self._pieces.clear()
        yield from ready

    def _release(self, keys: list[TextKey]) -> None:
        for key in keys:
            rest, rules = self._redactor.release(key)
            self.count += len(rules)
            place = self._pieces.get(key)
            if place is None or not rest:
                continue
            fact = self._waiting[place - self._passed]
            name = TEXT_PIECES[fact.event_class or ""].key
            payload: dict[str, Any] = {**fact.payload, name: fact.payload[name] + rest}
            self._waiting[place - self._passed] = msgspec.structs.replace(fact, payload=payload)

    def _count(self, redacted: RedactedFact) -> None:
        self.count += len(redacted.findings)


def redacted_remark(count: int) -> str | None:
    """How many secrets were replaced, in a sentence; None for none."""
    if not count:
        return None
    return f"{count} secret{'s were' if count > 1 else ' was'} replaced by {REDACTED}"

"""Files of others: what their facts may leave out, and what must not get through.

A provider's gate is strict; a reader is not. Fields that only the gate requires are filled in
from the rest of the file, and remarked. Secrets are redacted where a file enters, in ids and in
texts, and also where a text is split over several facts.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from factwire.facts.classes.class_tables import TEXT_ENDS, TURN_TERMINALS
from factwire.facts.delta_fast_path import (
    KEY_NAME,
    KEY_TURN,
    TextKey,
    ends_text,
    piece_names,
    pieces_of,
    text_key,
)
from factwire.facts.fact import Fact, id_in_payload, id_of, snake_case
from factwire.facts.fact_rules import NAME_FIELDS
from factwire.facts.inspection import FactReading, Item, read_item
from factwire.facts.issues import UnreadableInput
from factwire.facts.json_values import decode_json
from factwire.facts.redaction import RedactedFact, Redactor, redact_text
from factwire.facts.secret_key_names import REDACTED
from factwire.facts.secret_shapes import may_hold_secret
from factwire.facts.shapes import wire_name
from factwire.facts.vocabulary import UNKNOWN, AnyShape, Shape

FIELDS_FILLED_IN: Final = "fields_filled_in"
"""The code of the remark on a file whose facts leave out fields that a gate requires."""

_FILLED: Final[dict[Shape, tuple[str, ...]]] = {
    "facts": ("schemaVersion", "runtimeId", "sequence"),
    "runtime-event": (
        *("schemaVersion", "runtimeId", "sessionId", "createdAt", "sequence", "payload"),
    ),
    "ui": (),
}
"""Fields, by their names in shape A, that a reader does not require."""

_WRITTEN: Final[dict[Shape, tuple[str, ...]]] = {
    "facts": ("sequence",),
    "runtime-event": ("sequence", "sessionId"),
    "ui": (),
}
"""Fields that a shape requires and that facts which were read may lack."""

_NEIGHBOURS: Final = ("schemaVersion", "runtimeId")
"""Fields that are the same for all facts of a file, as a rule."""

_PLACEHOLDERS: Final[dict[str, Any]] = {
    "schemaVersion": UNKNOWN,
    "runtimeId": UNKNOWN,
    "sessionId": UNKNOWN,
    "createdAt": UNKNOWN,
    "sequence": 0,
    "payload": {},
}
"""Values with which a fact is read; a session and a sequence that nobody stated go again."""


class _ThreadNumbers:
    """The sequences that the facts of one thread state, and the number of the last fact."""

    def __init__(self) -> None:
        self.stated: set[int] = set()
        self.first: int | None = None
        self.leading = 0
        self.last: int | None = None

    def survey(self, sequence: int | None) -> None:
        if sequence is None:
            self.leading += self.first is None
            return
        self.stated.add(sequence)
        self.first = sequence if self.first is None else self.first

    def next_free(self) -> int | None:
        """The number for a fact without one: behind the fact before it, if nobody has it."""
        number = self._first_number() if self.last is None else self.last + 1
        if number in self.stated:
            return None
        self.stated.add(number)
        self.last = number
        return number if number >= 0 else None

    def _first_number(self) -> int:
        return 1 if self.first is None else self.first - self.leading


class LenientReader:
    """Feed it the facts of one file, in the order of the file.

    `reread` gives the items of the file once more. It is called when a fact needs what stands
    further on, at most once; without it, only the facts before are looked at. What the `target`
    requires that the facts are written in, and they do not have, is filled in, too.
    """

    def __init__(
        self,
        shape: AnyShape = "auto",
        reread: Callable[[], Iterable[Any]] | None = None,
        target: Shape | None = None,
    ) -> None:
        self.filled: Counter[str] = Counter()
        self.incomplete = 0
        self._shape: AnyShape = shape
        self._required = _WRITTEN[target] if target is not None else ()
        self._reread = reread
        self._fed = 0
        self._neighbours: dict[str, str] = {}
        self._threads: dict[str, _ThreadNumbers] = {}
        self._thread = ""

    @property
    def remark(self) -> str | None:
        """What was filled in, in a sentence; None if every fact had all its fields."""
        if not self.incomplete:
            return None
        fields = ", ".join(f"{name} ({count})" for name, count in self.filled.most_common())
        facts = "1 fact lacks" if self.incomplete == 1 else f"{self.incomplete} facts lack"
        return f"{facts} fields; filled in from the rest of the file or left unknown: {fields}"

    def feed(self, item: Item) -> FactReading:
        """The fact of the next item. JSON text that is not JSON raises `UnreadableInput`."""
        reading = read_item(item, self._shape)
        self._fed += 1
        if reading.fact is None:
            reading = self._fill(item, reading)
        elif self._reread is None:
            self._note(reading.fact)
        if reading.fact is None or not self._required:
            return reading
        return self._fill_for_target(reading, reading.fact)

    def _fill_for_target(self, reading: FactReading, fact: Fact) -> FactReading:
        missing = [name for name in self._required if getattr(fact, snake_case(name)) is None]
        if not missing:
            return reading
        self._survey()
        self.incomplete += not reading.filled
        self.filled.update(name for name in missing if name not in reading.filled)
        if "sequence" in missing and "sequence" not in reading.filled:
            fact = self._complete(fact, ["sequence"])
        if "sessionId" in missing:
            fact = msgspec.structs.replace(fact, session_id=UNKNOWN)
        return msgspec.structs.replace(reading, fact=fact)

    def _note(self, fact: Fact) -> None:
        self._neighbours.setdefault("schemaVersion", fact.schema_version)
        self._neighbours.setdefault("runtimeId", fact.runtime_id)
        numbers = self._numbers(fact.thread_id or id_in_payload(fact.payload, "threadId"))
        numbers.last = numbers.last if fact.sequence is None else fact.sequence

    def _fill(self, item: Item, reading: FactReading) -> FactReading:
        fields, shape = _read_fields(item), reading.shape
        missing = [name for name in _FILLED[shape] if fields.get(wire_name(shape, name)) is None]
        if not fields or not missing:
            return reading
        filler = {wire_name(shape, name): _PLACEHOLDERS[name] for name in missing}
        reading = read_item({**fields, **filler}, shape)
        if reading.fact is None:
            return reading
        self._survey()
        self.incomplete += 1
        self.filled.update(filler.keys())
        fact = self._complete(reading.fact, missing)
        return msgspec.structs.replace(reading, fact=fact, filled=tuple(filler))

    def _complete(self, fact: Fact, missing: list[str]) -> Fact:
        numbers = self._numbers(fact.thread_id or id_in_payload(fact.payload, "threadId"))
        values: dict[str, Any] = {
            snake_case(name): self._neighbours[name]
            for name in missing
            if name in _NEIGHBOURS and name in self._neighbours
        }
        if "sessionId" in missing:
            values["session_id"] = None
        if "sequence" in missing:
            values["sequence"] = numbers.next_free()
        else:
            numbers.last = fact.sequence
        return msgspec.structs.replace(fact, **values)

    def _numbers(self, thread: str | None) -> _ThreadNumbers:
        """A fact that names no thread is of the thread before it, as in validation."""
        self._thread = thread or self._thread
        return self._threads.setdefault(self._thread, _ThreadNumbers())

    def _survey(self) -> None:
        """Look through the whole file, up to the fact at hand for the number of the last fact."""
        if self._reread is None:
            return
        items, self._reread = self._reread(), None
        thread, current = "", ""
        for place, item in enumerate(items, 1):
            fields = _read_fields(item)
            thread = _thread_in(fields) or thread
            sequence: object = fields.get("sequence")
            numbers = self._threads.setdefault(thread, _ThreadNumbers())
            numbers.survey(sequence if type(sequence) is int else None)
            for name in _NEIGHBOURS:
                if isinstance(fields.get(name), str) and fields[name]:
                    self._neighbours.setdefault(name, fields[name])
            if place < self._fed:
                current = thread
                numbers.last = sequence if type(sequence) is int else numbers.last
        self._thread = current


def _read_fields(item: object) -> Mapping[str, Any]:
    try:
        value = decode_json(item) if isinstance(item, (bytes, str)) else item
    except UnreadableInput:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _thread_in(fields: Mapping[str, Any]) -> str | None:
    thread, payload = fields.get("threadId"), fields.get("payload")
    if isinstance(thread, str) and thread:
        return thread
    if not isinstance(payload, Mapping):
        return None
    return id_in_payload(cast("Mapping[str, object]", payload), "threadId")


SECRETS_REDACTED: Final = "secrets_redacted"
"""The code of the remark on a recording in which secrets were replaced."""

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
        for field in NAME_FIELDS:
            name = getattr(fact, field)
            if name is not None and name not in clean and (safe := self.redact_name(name)) != name:
                changes[field] = safe
        if not changes:
            return fact
        self.count += len(changes)
        return msgspec.structs.replace(fact, **changes)

    def redact_name(self, name: str) -> str:
        """The name itself, or the one that stands for it."""
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


WAITING_FACTS: Final = 4_096
"""Facts that wait behind a text which may end in half a secret; past that, it counts as one."""


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
        if self._redactor.held_texts:
            self._release([key for key in self._redactor.held_texts if _is_over(fact, key)])
        redacted = self._redactor.feed(fact)
        self._count(redacted)
        self._waiting.append(redacted.fact)
        if not self._redactor.held_texts:
            yield from self._drain()
            return
        pieces = pieces_of(fact)
        if pieces is not None:
            place = self._passed + len(self._waiting) - 1
            for name in piece_names(fact, pieces):
                self._pieces[text_key(fact, pieces, name)] = place
        if len(self._waiting) > WAITING_FACTS:
            for key in list(self._redactor.held_texts):
                self.count += 1
                self._append_text(key, self._redactor.abandon(key))
            yield from self._drain()

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
            self._append_text(key, rest)

    def _append_text(self, key: TextKey, rest: str) -> None:
        """Add to the last piece of a text that waits."""
        place = self._pieces.get(key)
        if place is None or not rest:
            return
        fact = self._waiting[place - self._passed]
        name = key[KEY_NAME]
        payload: dict[str, Any] = {**fact.payload, name: fact.payload[name] + rest}
        self._waiting[place - self._passed] = msgspec.structs.replace(fact, payload=payload)

    def _count(self, redacted: RedactedFact) -> None:
        self.count += len(redacted.findings)


def _is_over(fact: Fact, key: TextKey) -> bool:
    """Whether a text cannot go on behind this fact, which brings no piece of it either."""
    if fact.event_class in TURN_TERMINALS:
        return key[KEY_TURN] == id_of(fact, "turnId")
    end = TEXT_ENDS.get(fact.event_class or "")
    if end is None or isinstance(fact.payload.get(key[KEY_NAME]), str):
        return False
    return ends_text(fact, end, key)


def redacted_remark(count: int) -> str | None:
    """How many secrets were replaced, in a sentence; None for none."""
    if not count:
        return None
    return f"{count} secret{'s were' if count > 1 else ' was'} replaced by {REDACTED}"

"""Reading facts that leave out what only a provider's gate requires.

Seed 000 makes `schemaVersion`, `runtimeId` and `sequence` optional, and seed 001's own example has
no `timestamp`. A reader of files fills in what the file itself shows: the version and the runtime
that other facts name, and the sequence by the place of the fact. What the file does not show
reads `unknown`; nothing that a fact states is changed. The gate (`Intake`, `inspect_*`) is strict.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from factwire.facts.fact import Fact, id_in_payload, snake_case
from factwire.facts.inspection import FactReading, Item, read_item
from factwire.facts.issues import UnreadableInput
from factwire.facts.json_values import decode_json
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
    further on, at most once; without it, only the facts before are looked at.
    """

    def __init__(
        self, shape: AnyShape = "auto", reread: Callable[[], Iterable[Any]] | None = None
    ) -> None:
        self.filled: Counter[str] = Counter()
        self.incomplete = 0
        self._shape: AnyShape = shape
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
            return self._fill(item, reading)
        if self._reread is None:
            self._note(reading.fact)
        return reading

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
        return msgspec.structs.replace(reading, fact=self._complete(reading.fact, missing))

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

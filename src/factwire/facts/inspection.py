"""Validation: `inspect_*` collects issues and never raises, `validate_*` raises with all of them.

A stream is inspected one fact at a time in bounded memory. Information, such as a class that nobody
knows, is among the issues of an inspection but does not make facts invalid.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.issues import InvalidFacts, Issue, UnreadableInput, is_valid
from factwire.facts.json_text import decode_json, unwritable
from factwire.facts.known import Known
from factwire.facts.lifecycle import LifecycleError, LifecycleVerifier, VerifierMode
from factwire.facts.rules import rebased, rule_issues
from factwire.facts.sequences import SequenceTracker
from factwire.facts.shapes import (
    AnyShape,
    Shape,
    decode_plain,
    read_checked_fact,
    shape_issues,
    shape_of,
)

Item = Fact | Mapping[str, Any] | bytes | str
"""A fact in any form: typed, as a JSON object, or as JSON text."""


class Reading(msgspec.Struct, frozen=True, gc=False):
    """A fact as it was read: its shape, how long its JSON was if known, and what kept it from
    becoming a fact at all.
    """

    fact: Fact | None
    shape: Shape
    wire_bytes: int | None
    issues: list[Issue]


_NONE: Final[list[Issue]] = []


class StreamInspector:
    """Inspects a stream fact by fact: each fact's rules, the lifecycle, and, at the end, gaps.

    With a `read_model` the stream goes on behind it: what that lists as open may be closed, and
    what it covers is sent again. In mode
    `fail-closed` the lifecycle ends with its first violation: `stopped` becomes true, and
    the facts from there on are not taken.
    """

    def __init__(
        self,
        shape: AnyShape = "auto",
        mode: VerifierMode = "collect",
        *,
        path: str = "$",
        gaps_declared: bool = False,
        read_model: Mapping[str, Any] | None = None,
    ) -> None:
        self.facts = 0
        self.stopped = False
        self._shape: AnyShape = shape
        self._path = path
        self._gaps_declared = gaps_declared
        self._sequences = SequenceTracker()
        self._verifier = LifecycleVerifier(mode)
        self._known = None if read_model is None else Known(read_model)
        for turn, family, subject in self._known.open() if self._known else ():
            self._verifier.know_open(turn, family, subject)

    def feed(self, item: Item) -> list[Issue]:
        """The issues of the next fact. JSON text that is not JSON raises `UnreadableInput`."""
        if self.stopped:
            return []
        fact, issues = read_and_inspect(item, self._shape)
        index, self.facts = self.facts, self.facts + 1
        path = f"{self._path}[{index}]"
        if fact is None:
            value = decode_json(item) if isinstance(item, (bytes, str)) else item
            self._sequences.feed_refused(value, path)
            return rebased(issues, path)
        self._sequences.feed(fact, path)
        issues = rebased(issues, path) if issues else issues
        if self._known is not None and self._known.covers(fact):
            return issues
        try:
            violations = self._verifier.feed(fact)
        except LifecycleError as error:
            self.stopped = True
            violations = [error.violation]
        for violation in violations:
            message = f"{violation.code}: {violation.message}"
            issues.append(Issue("sequence_violation", path, message))
        return issues

    @property
    def gap_count(self) -> int:
        """How many gaps `finish` would name if the stream ended here."""
        return 0 if self._gaps_declared else self._sequences.gap_count

    def finish(self) -> list[Issue]:
        """The issues that show only at the end: gaps that nothing settled or declared."""
        return [] if self._gaps_declared else self._sequences.gaps()


def read_item(item: Item, shape: AnyShape = "auto") -> Reading:
    """Read a fact in any form; where its fields do not allow one to be made, the issues say why."""
    if isinstance(item, (bytes, str)):
        if shape in ("auto", "facts"):
            fact = decode_plain(item)
            if fact is not None:
                return Reading(fact, "facts", len(item), _NONE)
        return _read_object(decode_json(item), shape)
    if isinstance(item, Fact):
        return Reading(item, "facts", None, _NONE)
    reason = unwritable(item)
    if reason:
        issues = [Issue("schema_mismatch", "$", reason)]
        return Reading(None, _known_shape(item, shape), None, issues)
    return _read_object(item, shape)


def read_and_inspect(item: Item, shape: AnyShape = "auto") -> tuple[Fact | None, list[Issue]]:
    """The fact, where its fields allow one to be made, and its issues with paths from `$`."""
    reading = read_item(item, shape)
    if reading.fact is None:
        return None, reading.issues
    return reading.fact, rule_issues(reading.fact, reading.shape, wire_bytes=reading.wire_bytes)


def inspect_fact(item: Item, shape: AnyShape = "auto") -> list[Issue]:
    """Every issue of one fact; text that is not JSON is one, too."""
    try:
        return read_and_inspect(item, shape)[1]
    except UnreadableInput as error:
        return [Issue("schema_mismatch", "$", error.reason)]


def inspect_stream(
    items: Iterable[Item],
    shape: AnyShape = "auto",
    mode: VerifierMode = "collect",
    *,
    read_model: Mapping[str, Any] | None = None,
) -> list[Issue]:
    """Every issue of a finished stream, facts first, gaps last; `read_model` is what it goes on
    from, if that is not the beginning.
    """
    inspector = StreamInspector(shape, mode, read_model=read_model)
    issues: list[Issue] = []
    for item in items:
        try:
            issues += inspector.feed(item)
        except UnreadableInput as error:
            issues.append(Issue("schema_mismatch", f"$[{inspector.facts}]", error.reason))
            inspector.facts += 1
    return issues + inspector.finish()


def validate_fact(item: Item, shape: AnyShape = "auto") -> Fact:
    """The fact, if it is valid; otherwise `InvalidFacts` with every issue."""
    fact, issues = read_and_inspect(item, shape)
    if fact is None or not is_valid(issues):
        raise InvalidFacts(issues)
    return fact


def validate_stream(items: Iterable[Item], shape: AnyShape = "auto") -> None:
    """Raise `InvalidFacts` with every issue of a stream that is not valid."""
    issues = inspect_stream(items, shape)
    if not is_valid(issues):
        raise InvalidFacts(issues)


def _read_object(value: object, shape: AnyShape) -> Reading:
    known = _known_shape(value, shape)
    issues = shape_issues(value, known)
    if issues or not isinstance(value, Mapping):
        return Reading(None, known, None, issues)
    fact = read_checked_fact(value, known)  # pyright: ignore[reportUnknownArgumentType]
    return Reading(fact, known, None, [])


def _known_shape(value: object, shape: AnyShape) -> Shape:
    if shape != "auto":
        return shape
    return shape_of(value) if isinstance(value, Mapping) else "facts"  # pyright: ignore[reportUnknownArgumentType]

"""Validation: `inspect_*` collects issues and never raises, `validate_*` raises with all of them.

A stream is inspected one fact at a time in bounded memory: the rules of each fact, the lifecycle,
and gaps in the sequence of each thread, unless a repair covers them. A stream may go on behind a
read model, and a fixture is a stream with what a projection must make of it. Information, such as
a class that nobody knows, is among the issues but does not make facts invalid.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, cast

import msgspec

from factwire.facts.classes.class_tables import (
    GAP_REPAIRS,
    TEXT_ENDS,
    TEXT_PIECES,
    TURN_TERMINALS,
)
from factwire.facts.classes.specification import TextEnd, TextPieces
from factwire.facts.delta_fast_path import (
    KEY_NAME,
    KEY_TURN,
    DeltaPattern,
    TextKey,
    delta_pattern_of,
    ends_text,
    piece_names,
    pieces_of,
    text_key,
)
from factwire.facts.delta_redaction import DeltaRedactor
from factwire.facts.fact import Fact, id_of
from factwire.facts.fact_rules import is_timestamp, name_issues, rebase_issues, rule_issues
from factwire.facts.issues import InvalidFacts, Issue, UnreadableInput, is_valid, type_mismatches
from factwire.facts.json_values import decode_json, number_at, unwritable_reason
from factwire.facts.lifecycle import LifecycleError, LifecycleVerifier, VerifierMode
from factwire.facts.limits import (
    IDENTITY_WINDOW,
    ISSUES_KEPT,
    PREVIEW_CHARACTERS,
    SEQUENCE_MAX,
)
from factwire.facts.shapes import (
    decode_plain,
    origin_of,
    read_checked_fact,
    repeats_fact,
    shape_issues,
    shape_of,
)
from factwire.facts.vocabulary import AnyShape, Shape

_ENDED: Final = frozenset({"output-available", "output-error", "cancelled"})
"""States of calls that need no further fact."""


class ReadModelView:
    """A read model as a validator needs it."""

    def __init__(self, read_model: Mapping[str, Any]) -> None:
        self._model = read_model
        self._thread = _text(read_model.get("threadId"))
        cursor: object = read_model.get("eventCursor")
        self._cursor = cursor if type(cursor) is int else None

    def covers(self, fact: Fact) -> bool:
        """Whether a fact is one that the read model was made from."""
        if self._cursor is None or fact.sequence is None or fact.sequence > self._cursor:
            return False
        return fact.thread_id in (None, self._thread)

    def open_subjects(self) -> Iterator[tuple[str | None, str, str]]:
        """Turn, family and id of every call and request that is under way."""
        active = _text(self._model.get("activeTurnId"))
        for row in _rows(self._model.get("toolCalls")):
            call, over = _text(row.get("toolCallId")), _text(row.get("completedAt"))
            if call is not None and over is None and row.get("state") not in _ENDED:
                yield _text(row.get("turnId")) or active, "tool", call
        for row in _rows(self._model.get("pendingActions")):
            action = _text(row.get("actionId"))
            if action is not None:
                yield _text(row.get("turnId")) or active, "action", action


def _rows(value: object) -> list[Mapping[str, Any]]:
    rows = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def repaired_range(repair: Fact) -> tuple[int, int] | None:
    """The sequences that a repair says it covers, both ends included; it cannot know of facts that
    come after it. One that states no last sequence covers none.
    """
    last = number_at(repair.payload, "toSequence", "to_sequence", "lastSequence")
    if last is None:
        return None
    first = number_at(repair.payload, "fromSequence", "from_sequence", "firstSequence")
    end = SEQUENCE_MAX if repair.sequence is None else repair.sequence - 1
    start = -SEQUENCE_MAX - 1 if first is None else max(-SEQUENCE_MAX - 1, first)
    return int(start), int(max(-SEQUENCE_MAX, min(last, end)))


def carries_messages(fact: Fact) -> bool:
    """Whether a snapshot or a repair brings the messages, and does not only speak of them."""
    return isinstance(fact.payload.get("messages"), list)


def _holds_all(found: set[int], first: int, last: int) -> bool:
    return last - first < len(found) and all(place in found for place in range(first, last + 1))


class SequenceTracker:
    """Feed it facts in order; at the end, `gaps()` are those that nothing settled."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, int] = OrderedDict()
        self._gaps: dict[str, list[tuple[int, int, Issue]]] = {}
        self._since_gap: dict[str, set[int]] = {}
        self._current = ""
        self._kept = 0

    def feed(self, fact: Fact, path: str) -> None:
        """Take the next fact of the stream, which stands at `path`."""
        self._follow(fact.thread_id or id_of(fact, "threadId"), fact.sequence, path)
        if fact.event_class in GAP_REPAIRS and self._current in self._gaps:
            self._settle(fact)

    def _settle(self, repair: Fact) -> None:
        """A repair settles the gaps that lie within the range that it states, if it carries the
        messages of that range or the missing facts have come since.
        """
        stated = repaired_range(repair)
        if stated is None:
            return
        gaps, arrived = self._gaps.pop(self._current), self._since_gap.get(self._current, set())
        left = [
            gap
            for gap in gaps
            if not stated[0] <= gap[0] <= gap[1] <= stated[1]
            or not (carries_messages(repair) or _holds_all(arrived, gap[0], gap[1]))
        ]
        self._kept -= len(gaps) - len(left)
        if left:
            self._gaps[self._current] = left

    def feed_refused(self, value: object, path: str) -> None:
        """Take an object that is no fact; the thread and the place that it states still count."""
        if not isinstance(value, Mapping):
            return
        fields = cast("Mapping[str, object]", value)
        thread, sequence = fields.get("threadId"), fields.get("sequence")
        self._follow(
            thread if isinstance(thread, str) else None,
            sequence if type(sequence) is int else None,
            path,
        )

    def _follow(self, thread: str | None, sequence: int | None, path: str) -> None:
        if thread and thread != self._current:
            self._switch(thread)
        if sequence is None:
            return
        last = self._last.get(self._current)
        self._last[self._current] = sequence
        if last is not None and sequence != last + 1:
            self._gap(self._current, path, last + 1, sequence)
        if self._current in self._gaps:
            arrived = self._since_gap.setdefault(self._current, set())
            if len(arrived) < IDENTITY_WINDOW:
                arrived.add(sequence)

    @property
    def gap_count(self) -> int:
        """How many gaps nothing has settled yet."""
        return self._kept

    def gaps(self) -> list[Issue]:
        """The gaps that nothing has settled, thread by thread."""
        return [issue for gaps in self._gaps.values() for _, _, issue in gaps]

    def _switch(self, thread: str) -> None:
        if not self._current and self._current in self._last:
            # Facts before the first one that names a thread were of that thread.
            self._last[thread] = self._last.pop("")
            self._gaps[thread] = self._gaps.pop("", [])
            self._since_gap[thread] = self._since_gap.pop("", set())
        self._current = thread
        if thread in self._last:
            self._last.move_to_end(thread)
        elif len(self._last) >= IDENTITY_WINDOW:
            self._last.popitem(last=False)

    def _gap(self, thread: str, path: str, expected: int, got: int) -> None:
        if self._kept < ISSUES_KEPT:
            self._kept += 1
            message = f"expected sequence {expected}, got {got}"
            issue = Issue("sequence_gap", f"{path}.sequence", message)
            missing = min(expected, got), max(expected, got) - 1
            self._gaps.setdefault(thread, []).append((*missing, issue))


Item = Fact | Mapping[str, Any] | bytes | str
"""A fact in any form: typed, as a JSON object, or as JSON text."""


class FactReading(msgspec.Struct, frozen=True, gc=False):
    """A fact as it was read: its shape, how long its JSON was if known, and what kept it from
    becoming a fact at all. A UI event that carries its fact has the shape of that; `is_repeat`
    says that another event before it carries the same fact. `filled` are the fields that a lenient
    reader filled in.
    """

    fact: Fact | None
    shape: Shape
    wire_bytes: int | None
    issues: list[Issue]
    is_repeat: bool = False
    filled: tuple[str, ...] = ()


ReadFact = Callable[[Item], FactReading]
"""How a fact is read: strictly, as at a provider's gate, or leniently."""

_NONE: Final[list[Issue]] = []


class _SplitSecrets:
    """Finds the secrets that no piece of a text holds by itself. Feed it facts in order."""

    def __init__(self) -> None:
        self._deltas = DeltaRedactor()
        self.pass_through = self._deltas.pass_through
        self._alone: dict[TextKey, int] = {}
        self._open: dict[TextKey, str] = {}

    def feed(self, fact: Fact, path: str, issues: list[Issue]) -> list[Issue]:
        """The secrets that this fact completes or ends; `issues` are those of the fact alone."""
        pieces = pieces_of(fact)
        if pieces is not None:
            return self._take_pieces(fact, pieces, path, issues)
        event_class = fact.event_class or ""
        end = TEXT_ENDS.get(event_class)
        if end is not None:
            return self._take_end(fact, end, path, issues)
        if not self._open:
            return _NONE
        if event_class in TURN_TERMINALS:
            turn = id_of(fact, "turnId")
            return self._close([key for key in self._open if key[KEY_TURN] == turn])
        return _NONE

    def finish(self) -> list[Issue]:
        """The secrets in texts that nothing ended."""
        return self._close(list(self._open))

    def _take_pieces(
        self, fact: Fact, pieces: TextPieces, path: str, issues: list[Issue]
    ) -> list[Issue]:
        found: list[Issue] = []
        for name in piece_names(fact, pieces):
            key = text_key(fact, pieces, name)
            found += self._take_piece(key, fact.payload[name], path, issues)
        return found

    def _take_end(self, fact: Fact, end: TextEnd, path: str, issues: list[Issue]) -> list[Issue]:
        """A fact that ends a text; it may bring the last piece, unless it brings the whole."""
        pieces, found = TEXT_PIECES[end.pieces], list[Issue]()
        for name in piece_names(fact, pieces) if fact.payload.get(end.key) is None else ():
            if name not in end.whole_keys:
                key = text_key(fact, pieces, name, end.pieces)
                found += self._take_piece(key, fact.payload[name], path, issues)
        return found + self._close([key for key in self._open if ends_text(fact, end, key)])

    def _take_piece(self, key: TextKey, text: str, path: str, issues: list[Issue]) -> list[Issue]:
        safe, rules = self._deltas.feed(key, text)
        if safe is text and key not in self._open:
            return _NONE
        place = f"$.payload.{key[KEY_NAME]}"
        alone = sum(each.path == place and each.code == "secret_leak_risk" for each in issues)
        self._alone[key] = self._alone.get(key, 0) + alone
        found = self._settle(key, f"{path}{place[1:]}", rules)
        if self._deltas.pending_text(key):
            self._open[key] = f"{path}{place[1:]}"
        else:
            self._open.pop(key, None)
            self._alone.pop(key, None)
        return found

    def _close(self, keys: list[TextKey]) -> list[Issue]:
        found: list[Issue] = []
        for key in keys:
            found += self._settle(key, self._open.pop(key), self._deltas.flush(key)[1])
            self._alone.pop(key, None)
        return found

    def _settle(self, key: TextKey, path: str, rules: list[str]) -> list[Issue]:
        """Issues for the secrets that no piece was reported for."""
        alone = self._alone.get(key, 0)
        self._alone[key] = max(0, alone - len(rules))
        return [
            Issue("secret_leak_risk", path, f"looks like a secret split over pieces (value:{rule})")
            for rule in rules[alone:]
        ]


class StreamInspector:
    """Inspects a stream fact by fact: each fact's rules, the lifecycle, and, at the end, gaps.

    With a `read_model` the stream goes on behind it: what that lists as open may be closed, and
    what it covers is sent again. In mode
    `fail-closed` the lifecycle ends with its first violation: `stopped` becomes true, and
    the facts from there on are not taken. Facts are read strictly, unless `read` does it.
    """

    def __init__(
        self,
        shape: AnyShape = "auto",
        mode: VerifierMode = "collect",
        *,
        path: str = "$",
        gaps_declared: bool = False,
        read_model: Mapping[str, Any] | None = None,
        read: ReadFact | None = None,
    ) -> None:
        self.facts = 0
        self.stopped = False
        self._read: ReadFact = read or partial(read_item, shape=shape)
        self._path = path
        self._gaps_declared = gaps_declared
        self._sequences = SequenceTracker()
        self._split_secrets = _SplitSecrets()
        self._pattern: DeltaPattern | None = None
        self._verifier = LifecycleVerifier(mode)
        self._read_model = None if read_model is None else ReadModelView(read_model)
        for turn, family, subject in self._read_model.open_subjects() if self._read_model else ():
            self._verifier.add_open(turn, family, subject)

    def feed(self, item: Item) -> list[Issue]:
        """The issues of the next fact. JSON text that is not JSON raises `UnreadableInput`."""
        if self.stopped:
            return []
        reading = self._read(item)
        fact, issues = reading.fact, reading.issues
        index, self.facts = self.facts, self.facts + 1
        path = f"{self._path}[{index}]"
        if fact is None:
            value = decode_json(item) if isinstance(item, (bytes, str)) else item
            self._sequences.feed_refused(value, path)
            return rebase_issues(issues, path)
        if reading.is_repeat:
            return []
        self._sequences.feed(fact, path)
        issues = [] if self._is_plain_piece(fact, reading) else self._inspect(fact, reading, path)
        if self._read_model is not None and self._read_model.covers(fact):
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

    def _inspect(self, fact: Fact, reading: FactReading, path: str) -> list[Issue]:
        issues = _issues_of(reading)
        split = self._split_secrets.feed(fact, path, issues)
        self._pattern = None
        if issues or split:
            return [*rebase_issues(issues, path), *split]
        if reading.shape == "facts":
            self._pattern = delta_pattern_of(fact)
        return issues

    def _is_plain_piece(self, fact: Fact, reading: FactReading) -> bool:
        """Whether a fact only goes on with a text that was in order, by a piece that is."""
        pattern, size = self._pattern, reading.wire_bytes
        if pattern is None or size is None or size > PREVIEW_CHARACTERS:
            return False
        text = pattern.next_piece(fact)
        return (
            text is not None
            and is_timestamp(fact.created_at)
            and not name_issues(fact)
            and self._split_secrets.pass_through(pattern.key, text)
        )

    @property
    def gap_count(self) -> int:
        """How many gaps `finish` would name if the stream ended here."""
        return 0 if self._gaps_declared else self._sequences.gap_count

    def finish(self) -> list[Issue]:
        """The issues that show only at the end: secrets in texts that nothing ended, and gaps that
        nothing settled or declared.
        """
        split = self._split_secrets.finish()
        return split if self._gaps_declared else split + self._sequences.gaps()


def read_item(item: Item, shape: AnyShape = "auto") -> FactReading:
    """Read a fact in any form; where its fields do not allow one to be made, the issues say why."""
    if isinstance(item, (bytes, str)):
        if shape in ("auto", "facts"):
            fact = decode_plain(item)
            if fact is not None:
                return FactReading(fact, "facts", len(item), _NONE)
        return _read_object(decode_json(item), shape)
    if isinstance(item, Fact):
        return FactReading(item, "facts", None, _NONE)
    reason = unwritable_reason(item)
    if reason:
        issues = [Issue("schema_mismatch", "$", reason)]
        return FactReading(None, _resolve_shape(item, shape), None, issues)
    return _read_object(item, shape)


def read_and_inspect(item: Item, shape: AnyShape = "auto") -> tuple[Fact | None, list[Issue]]:
    """The fact, where its fields allow one to be made, and its issues with paths from `$`."""
    reading = read_item(item, shape)
    return reading.fact, _issues_of(reading)


def _issues_of(reading: FactReading) -> list[Issue]:
    if reading.fact is None:
        return reading.issues
    issues = rule_issues(reading.fact, reading.shape, wire_bytes=reading.wire_bytes)
    if not reading.filled:
        return issues
    return [issue for issue in issues if issue.path.removeprefix("$.") not in reading.filled]


def inspect_fact(
    item: Item, shape: AnyShape = "auto", *, read: ReadFact | None = None
) -> list[Issue]:
    """Every issue of one fact; text that is not JSON is one, too."""
    try:
        return _issues_of(read_item(item, shape) if read is None else read(item))
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


def _read_object(value: object, shape: AnyShape) -> FactReading:
    resolved = _resolve_shape(value, shape)
    issues = shape_issues(value, resolved)
    if issues or not isinstance(value, Mapping):
        return FactReading(None, resolved, None, issues)
    fields = cast("Mapping[str, Any]", value)
    fact = read_checked_fact(fields, resolved)
    if resolved == "ui" and origin_of(fields) is not None:
        return FactReading(fact, "facts", None, [], repeats_fact(fields))
    return FactReading(fact, resolved, None, [])


def _resolve_shape(value: object, shape: AnyShape) -> Shape:
    if shape != "auto":
        return shape
    return shape_of(value) if isinstance(value, Mapping) else "facts"  # pyright: ignore[reportUnknownArgumentType]


FIXTURE_VERSION: Final = "agent-ui-fixture/v0.1"

_GAP_WORDS: Final = ("gap", "repair")


class Expected(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What a projection of the fixture must show; counts are exact."""

    status: str
    message_part_count: int | None = None
    timeline_entry_count: int | None = None
    graph_node_count: int | None = None
    pending_action_count: int | None = None
    artifact_count: int | None = None
    evidence_count: int | None = None
    coding: dict[str, Any] | None = None
    subagents: dict[str, Any] | None = None
    diagnostics: list[str] | None = None


class Fixture(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A recorded stream and its expectations; `events` stay as they are on the wire."""

    id: str
    schema_version: str
    title: str
    events: list[dict[str, Any]]
    expected: Expected
    initial_read_model: dict[str, Any] | None = None
    final_read_model: dict[str, Any] | None = None


def is_fixture(value: object) -> bool:
    """Whether a JSON document is meant as a fixture: an object that holds a list of events."""
    return isinstance(value, Mapping) and isinstance(value.get("events"), list)  # pyright: ignore[reportUnknownMemberType]


def inspect_fixture(
    value: Mapping[str, Any],
    shape: AnyShape = "auto",
    mode: VerifierMode = "collect",
    *,
    read: ReadFact | None = None,
) -> list[Issue]:
    """Every issue of a fixture: its own fields first, then its events in order."""
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [Issue("schema_mismatch", "$", "expected a fixture, which is an object")]
    issues = _field_issues(value)
    before: object = value.get("initialReadModel")
    inspector = StreamInspector(
        shape,
        mode,
        path="$.events",
        gaps_declared=_declares_gaps(value),
        read_model=cast("Mapping[str, Any]", before) if isinstance(before, Mapping) else None,
        read=read,
    )
    events: object = value.get("events")
    for event in cast("list[object]", events) if isinstance(events, list) else ():
        issues += inspector.feed(_as_item(event))
    return issues + inspector.finish()


def validate_fixture(value: Mapping[str, Any], shape: AnyShape = "auto") -> Fixture:
    """The typed fixture, if it and all its events are valid; otherwise `InvalidFacts`."""
    issues = inspect_fixture(value, shape)
    if not is_valid(issues):
        raise InvalidFacts(issues)
    return msgspec.convert(value, Fixture)


def _as_item(event: object) -> Item:
    """Events that are no objects are inspected all the same, and found to be none. Text is not
    taken for JSON once more.
    """
    return '""' if isinstance(event, str) else event  # pyright: ignore[reportReturnType]


def _field_issues(value: Mapping[str, Any]) -> list[Issue]:
    issues: list[Issue] = []
    for field in msgspec.structs.fields(Fixture):
        name = field.encode_name
        if value.get(name) is None:
            if field.required:
                issues.append(Issue("schema_mismatch", f"$.{name}", f"a fixture needs {name}"))
        elif name != "events":
            issues += type_mismatches(value[name], field.type, f"$.{name}")
    if not isinstance(value.get("events"), list | None):
        issues.append(Issue("schema_mismatch", "$.events", "expected an array of events"))
    return issues


def _declares_gaps(value: Mapping[str, Any]) -> bool:
    """Whether the fixture says that its stream has holes, by a diagnostic that it expects."""
    expected: object = value.get("expected")
    codes: object = expected.get("diagnostics") if isinstance(expected, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(codes, list):
        return False
    words = cast("list[object]", codes)
    return any(isinstance(code, str) and any(w in code for w in _GAP_WORDS) for code in words)

"""One fact, three wire shapes.

Shape A (`facts`) is the form Factwire keeps. Shape B (`runtime-event`) is what providers emit, and
shape C (`ui`) what UI clients exchange; both are A with other names for a few fields, and with
defaults that follow from the class. Reading fills those defaults, writing leaves them out again, so
that every shape survives a round trip, unknown top-level fields included.

The UI vocabulary is smaller than the runtime's, and one fact may be several UI events. The first
of them has the fact's id and its sequence; the others have ids of their own and no sequence, so
that no number is used twice. Each event carries, in the field `runtimeFact`, the fields in which
the fact differs from it, with null for a field that the fact does not have. A UI client may ignore
that field; a reader gets the fact back from it, exactly, and recognises the events that only repeat
a fact. An event without the field is a fact as it stands.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, cast

import msgspec

from factwire.facts.classes.class_tables import CLASS_ALIASES, kind_of, status_of
from factwire.facts.fact import Fact
from factwire.facts.issues import InvalidFacts, Issue, type_mismatches
from factwire.facts.json_values import decode_json, is_nested_too_deep, json_type, unwritable_reason
from factwire.facts.limits import SEQUENCE_MAX
from factwire.facts.vocabulary import UNKNOWN, AnyShape, Shape

ORIGIN: Final = "runtimeFact"
"""The field of a UI event that says how to get its fact back."""

_ATTRIBUTES: Final = {
    field.encode_name: field.name
    for field in msgspec.structs.fields(Fact)
    if field.encode_name != ""
}
_HIDDEN_NAMES: Final = frozenset({ORIGIN, "type"})
"""Unknown fields of a fact whose names mean something else in a UI event."""


def carry_origin(fact: Fact, event: Fact, *, names_id: bool = False) -> Fact:
    """The event with all that a reader needs to make `fact` of it again. `names_id`: the id will
    not be written, since it is derived from what the event says.
    """
    origin = {
        name: msgspec.to_builtins(value)
        for name, attribute in _ATTRIBUTES.items()
        if (value := getattr(fact, attribute)) != getattr(event, attribute)
    }
    origin |= {name: value for name, value in fact.extra.items() if name in _HIDDEN_NAMES}
    if not origin:
        return event
    if names_id:
        origin["id"] = fact.id
    return msgspec.structs.replace(event, extra={**event.extra, ORIGIN: origin})


def origin_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a UI event carries of its fact; None for an event of another maker."""
    origin = value.get(ORIGIN)
    return cast("Mapping[str, Any]", origin) if isinstance(origin, dict) else None


def repeats_fact(value: Mapping[str, Any]) -> bool:
    """Whether a UI event is one of several of a fact, and not the first of them."""
    origin = origin_of(value)
    return origin is not None and value.get("id") not in (None, origin.get("id", value.get("id")))


def restore_fields(
    fields: dict[str, Any], unknown: dict[str, Any], origin: Mapping[str, Any]
) -> None:
    """Put back, in place, the known and the unknown fields of the fact that an event was made
    from.
    """
    del unknown[ORIGIN]
    for name, value in origin.items():
        if name not in _ATTRIBUTES:
            unknown[name] = value
        elif value is None:
            fields.pop(name, None)
        else:
            fields[name] = value


_NAMES: Final[dict[Shape, dict[str, str]]] = {
    "facts": {},
    "runtime-event": {"id": "eventId", "createdAt": "timestamp", "eventClass": "type"},
    "ui": {"eventClass": "type"},
}

REQUIRED_FIELDS: Final[dict[Shape, tuple[str, ...]]] = {
    "facts": (
        "id",
        "kind",
        "status",
        "title",
        "createdAt",
        "schemaVersion",
        "runtimeId",
        "sequence",
    ),
    "runtime-event": (
        "schemaVersion",
        "runtimeId",
        "sessionId",
        "eventId",
        "timestamp",
        "sequence",
        "type",
        "payload",
    ),
    "ui": ("type",),
}

SEQUENCE_FLOORS: Final[dict[Shape, int]] = {
    "facts": -SEQUENCE_MAX,
    "runtime-event": 0,
    "ui": -SEQUENCE_MAX,
}

NEVER_EMPTY: Final = ("id", "eventId", "type")
_DERIVED_ID: Final = "ui-sha256-"
_DERIVED_ID_LENGTH: Final = len(_DERIVED_ID) + 64
_FIELDS: Final = {
    field.encode_name: field for field in msgspec.structs.fields(Fact) if field.encode_name
}
_UI_UNKNOWN: Final = ("createdAt", "schemaVersion", "runtimeId")
_MESSAGES: Final = "messages.snapshot"
"""For a UI all messages as they are, or a window of history; only the phase tells which."""

_decoder = msgspec.json.Decoder(Fact)
_encoder = msgspec.json.Encoder()

_SEQUENCE_MIN: Final = SEQUENCE_FLOORS["facts"]


def wire_name(shape: Shape, field: str) -> str:
    """What shape A's `field` is called in `shape`."""
    return _NAMES[shape].get(field, field)


def is_derived_id(fact_id: str) -> bool:
    """Whether an id was made from what an event says, since the event named none."""
    number = fact_id[_DERIVED_ID_LENGTH:]
    is_numbered = not number or (number[0] == ":" and number[1:].isdecimal())
    return fact_id.startswith(_DERIVED_ID) and len(fact_id) >= _DERIVED_ID_LENGTH and is_numbered


def shape_of(value: Mapping[str, object]) -> Shape:
    """The shape that an object most likely is of, by the fields that only one shape has."""
    if "eventClass" in value and ("id" in value or "eventId" not in value):
        return "facts"
    if "type" in value and origin_of(value) is not None:
        return "ui"
    stamped = "schemaVersion" in value and "createdAt" not in value
    if "eventId" in value or (stamped and "timestamp" in value):
        return "runtime-event"
    if "type" in value:
        return "runtime-event" if stamped and "id" not in value else "ui"
    return "facts"


_BESIDE_THREADS: Final = ("runner.", "project.", "preview.", "retention.")
"""Families of an Edge's own facts; a sequence counts within a thread, and these stand in none."""


def _is_beside_threads(fields: Mapping[str, object]) -> bool:
    event_class = fields.get("eventClass")
    is_own = isinstance(event_class, str) and event_class.startswith(_BESIDE_THREADS)
    return is_own and fields.get("threadId") is None


def shape_issues(value: object, shape: Shape, path: str = "$") -> list[Issue]:
    """Every required field that is missing and every field of a wrong type."""
    if not isinstance(value, Mapping):
        value_found = f"expected an object, got {json_type(value)}"
        return [Issue("schema_mismatch", path, value_found)]
    fields = cast("Mapping[str, object]", value)
    issues = [
        Issue("schema_mismatch", f"{path}.{name}", f"{shape} needs {name}")
        for name in REQUIRED_FIELDS[shape]
        if fields.get(name) is None or (fields[name] == "" and name in NEVER_EMPTY)
        if name != "sequence" or not _is_beside_threads(fields)
    ]
    for field, info in _FIELDS.items():
        name = wire_name(shape, field)
        value_found = fields.get(name)
        if value_found is not None:
            issues += type_mismatches(value_found, info.type, f"{path}.{name}")
    if shape == "ui" and (origin := origin_of(fields)) is not None:
        issues += _origin_issues(origin, f"{path}.{ORIGIN}")
    sequence = fields.get("sequence")
    if type(sequence) is int and not SEQUENCE_FLOORS[shape] <= sequence <= SEQUENCE_MAX:
        issues.append(_sequence_issue(sequence, shape, path))
    return issues


def read_fact(value: Mapping[str, Any], shape: AnyShape = "auto", path: str = "$") -> Fact:
    """The fact that an object of any shape states; raises `InvalidFacts` with every mismatch."""
    reason = unwritable_reason(value)
    if reason:
        raise InvalidFacts([Issue("schema_mismatch", path, reason)])
    return _read_decoded(value, shape, path)


def _read_decoded(value: Mapping[str, Any], shape: AnyShape, path: str = "$") -> Fact:
    resolved = shape_of(value) if shape == "auto" else shape
    issues = shape_issues(value, resolved, path)
    if issues:
        raise InvalidFacts(issues)
    return read_checked_fact(value, resolved)


def read_checked_fact(value: Mapping[str, Any], shape: Shape) -> Fact:
    """The fact of an object in which `shape_issues` found nothing."""
    names = _NAMES[shape]
    fields: dict[str, Any] = {}
    rest = {key: item for key, item in value.items() if key}
    for field in _FIELDS:
        item = rest.pop(names.get(field, field), None)
        if item is not None:
            fields[field] = item
    if "" in value:
        rest[""] = value[""]
    _fill_defaults(fields, shape)
    if shape == "ui" and (origin := origin_of(value)) is not None:
        restore_fields(fields, rest, origin)
    fact = _resolve_alias(msgspec.convert({**fields, "": rest} if rest else fields, Fact))
    return _derive_id(fact) if fact.id == _DERIVED_ID else fact


def decode_fact(data: bytes | str, shape: AnyShape = "auto") -> Fact:
    """Decode one fact from JSON text of any shape."""
    if shape in ("auto", "facts"):
        fact = decode_plain(data)
        if fact is not None:
            return fact
    return _read_decoded(decode_object(data), shape)


def decode_plain(data: bytes | str) -> Fact | None:
    """Decode a shape A fact of known, well-typed fields only; None sends it the long way."""
    try:
        fact = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    sequence = fact.sequence
    if sequence is None or sequence > SEQUENCE_MAX or sequence < _SEQUENCE_MIN:
        return None
    if fact.extra or not fact.id or is_nested_too_deep(fact.payload, data):
        return None
    if fact.event_class in CLASS_ALIASES:
        return _resolve_alias(fact)
    return fact


def decode_object(data: bytes | str) -> dict[str, Any]:
    """Decode one JSON object, with every way in which bytes can be unreadable named."""
    value = decode_json(data)
    if not isinstance(value, dict):
        mismatch = f"expected an object, got {json_type(value)}"
        raise InvalidFacts([Issue("schema_mismatch", "$", mismatch)])
    return value  # pyright: ignore[reportUnknownVariableType]


def encode_fact(fact: Fact) -> bytes:
    """The fact in shape A, the form in which it is stored and sent."""
    if fact.extra:
        return _encoder.encode(write_fact(fact))
    return _encoder.encode(fact)


def write_fact(fact: Fact, shape: Shape = "facts") -> dict[str, Any]:
    """The fact as an object of `shape`, without what a reader of that shape fills in by itself."""
    fields: dict[str, Any] = msgspec.to_builtins(fact)
    extra = fields.pop("", {})
    if shape != "facts":
        _drop_derived(fields, shape)
    if shape == "ui" and fact.event_class == _MESSAGES and fact.phase is None:
        hidden = {ORIGIN: extra[ORIGIN]} if ORIGIN in extra else {}
        extra[ORIGIN] = {"phase": None, **(origin_of(extra) or hidden)}
    names = _NAMES[shape]
    result = {names.get(field, field): item for field, item in fields.items()}
    return result | {key: item for key, item in extra.items() if key not in result}


def _fill_defaults(fields: dict[str, Any], shape: Shape) -> None:
    if shape == "facts":
        return
    event_class: str = fields["eventClass"]
    event_class = CLASS_ALIASES.get(event_class, event_class)
    fields.setdefault("kind", kind_of(event_class))
    fields.setdefault("status", status_of(event_class))
    fields.setdefault("title", event_class)
    if shape == "ui":
        for field in _UI_UNKNOWN:
            fields.setdefault(field, UNKNOWN)
        fields["id"] = fields.get("id") or _DERIVED_ID
        if event_class == _MESSAGES:
            fields.setdefault("phase", UNKNOWN)
    if event_class == UNKNOWN:
        del fields["eventClass"]


def _derive_id(fact: Fact) -> Fact:
    """An event that names no id is known by what it says, however it was spelt."""
    content = msgspec.json.encode(write_fact(fact, "ui"), order="deterministic")
    return msgspec.structs.replace(fact, id=_DERIVED_ID + sha256(content).hexdigest())


class RepeatNumbers:
    """Tells apart the events of one stream that name no id and say the same: two of them are two
    events. They are numbered as they come, the first one, too, so that the same stream gives the
    same ids again: an id that is derived is an identity only with its number.

    A stream without an end has a `window`: after as many different events the count begins anew,
    and ids say in which round they were counted.
    """

    def __init__(self, ids: Iterable[str] = (), *, window: int | None = None) -> None:
        """Go on after these ids of the stream."""
        self._window = window
        self._round = 1
        self._counts: dict[str, int] = {}
        for fact_id in ids:
            base, rest = fact_id[:_DERIVED_ID_LENGTH], fact_id[_DERIVED_ID_LENGTH + 1 :]
            if is_derived_id(base):
                count = int(rest) if rest.isdecimal() else 1
                self._counts[base] = max(count, self._counts.get(base, 0))

    def number(self, fact: Fact) -> Fact:
        """The fact, under an id of its own if it has one that is derived and not numbered yet."""
        if len(fact.id) != _DERIVED_ID_LENGTH or not is_derived_id(fact.id):
            return fact
        if len(self._counts) == self._window and fact.id not in self._counts:
            self._counts.clear()
            self._round += 1
        count = self._counts[fact.id] = self._counts.get(fact.id, 0) + 1
        number = f"{count}" if self._round == 1 else f"{self._round}:{count}"
        return msgspec.structs.replace(fact, id=f"{fact.id}:{number}")


def _drop_derived(fields: dict[str, Any], shape: Shape) -> None:
    event_class: str = fields.setdefault("eventClass", UNKNOWN)
    derived = {
        "kind": kind_of(event_class),
        "status": status_of(event_class),
        "title": event_class,
    }
    if shape == "ui":
        derived |= dict.fromkeys(_UI_UNKNOWN, UNKNOWN)
        if event_class == _MESSAGES:
            derived["phase"] = UNKNOWN
        if fields["id"] == _DERIVED_ID or is_derived_id(fields["id"]):
            del fields["id"]
    for field, value in derived.items():
        if fields.get(field) == value:
            del fields[field]
    if shape == "runtime-event":
        fields.setdefault("payload", {})


def _resolve_alias(fact: Fact) -> Fact:
    event_class = fact.event_class
    alias = CLASS_ALIASES.get(event_class) if event_class else None
    return msgspec.structs.replace(fact, event_class=alias) if alias else fact


def _origin_issues(origin: Mapping[str, Any], path: str) -> list[Issue]:
    """Fields that a fact cannot have, or cannot be without."""
    issues: list[Issue] = []
    for name, value in origin.items():
        field = _FIELDS.get(name)
        if field is None:
            continue
        if value is not None:
            issues += type_mismatches(value, field.type, f"{path}.{name}")
        if (value is None and field.required) or (value == "" and name in NEVER_EMPTY):
            issues.append(Issue("schema_mismatch", f"{path}.{name}", f"facts needs {name}"))
        if name == "sequence" and type(value) is int and abs(value) > SEQUENCE_MAX:
            issues.append(_sequence_issue(value, "facts", path))
    return issues


def _sequence_issue(sequence: int, shape: Shape, path: str) -> Issue:
    floor = SEQUENCE_FLOORS[shape]
    message = f"expected a whole number from {floor} to {SEQUENCE_MAX}, got {sequence}"
    return Issue("schema_mismatch", f"{path}.sequence", message)

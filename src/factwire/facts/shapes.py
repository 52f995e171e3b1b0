"""One fact, three wire shapes.

Shape A (`facts`) is the form Factwire keeps. Shape B (`runtime-event`) is what providers emit, and
shape C (`ui`) what UI clients exchange; both are A with other names for a few fields, and with
defaults that follow from the class. Reading fills those defaults, writing leaves them out again, so
that every shape survives a round trip, unknown top-level fields included.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.issues import InvalidFacts, Issue, UnreadableInput
from factwire.facts.limits import NESTING_DEPTH, SEQUENCE_MAX
from factwire.facts.mismatches import mismatches
from factwire.facts.vocabulary import CLASS_ALIASES, UNKNOWN, kind_of, status_of

Shape = Literal["facts", "runtime-event", "ui"]
AnyShape = Literal["auto", "facts", "runtime-event", "ui"]

SHAPES: Final[tuple[Shape, ...]] = ("facts", "runtime-event", "ui")

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

_NEVER_EMPTY: Final = ("id", "eventId", "type")
_DERIVED_ID: Final = "ui-sha256-"
_FIELDS: Final = {
    field.encode_name: field for field in msgspec.structs.fields(Fact) if field.encode_name
}
_UI_UNKNOWN: Final = ("createdAt", "schemaVersion", "runtimeId")

_decoder = msgspec.json.Decoder(Fact)
_any_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()

_SEQUENCE_MIN: Final = -SEQUENCE_MAX

_NESTED_BYTES: Final = 2 * NESTING_DEPTH
"""JSON shorter than this cannot be nested too deep."""


def wire_name(shape: Shape, field: str) -> str:
    """What shape A's `field` is called in `shape`."""
    return _NAMES[shape].get(field, field)


def shape_of(value: Mapping[str, object]) -> Shape:
    """The shape that an object most likely is of, by the fields that only one shape has."""
    if "eventId" in value or ("timestamp" in value and "schemaVersion" in value):
        return "runtime-event"
    if "type" in value and "kind" not in value and "eventClass" not in value:
        return "runtime-event" if "schemaVersion" in value else "ui"
    return "facts"


def shape_issues(value: object, shape: Shape, path: str = "$") -> list[Issue]:
    """Every required field that is missing and every field of a wrong type."""
    if not isinstance(value, Mapping):
        found = f"expected an object, got {_json_type(value)}"
        return [Issue("schema_mismatch", path, found)]
    fields: Mapping[str, object] = value
    issues = [
        Issue("schema_mismatch", f"{path}.{name}", f"{shape} needs {name}")
        for name in REQUIRED_FIELDS[shape]
        if fields.get(name) is None or (fields[name] == "" and name in _NEVER_EMPTY)
    ]
    for field, info in _FIELDS.items():
        name = wire_name(shape, field)
        found = fields.get(name)
        if found is not None:
            issues += mismatches(found, info.type, f"{path}.{name}")
    sequence = fields.get("sequence")
    if type(sequence) is int and not _sequence_floor(shape) <= sequence <= SEQUENCE_MAX:
        issues.append(_sequence_issue(sequence, shape, path))
    return issues


def read_fact(value: Mapping[str, Any], shape: AnyShape = "auto", path: str = "$") -> Fact:
    """The fact that an object of any shape states; raises `InvalidFacts` with every mismatch."""
    known = shape_of(value) if shape == "auto" else shape
    issues = shape_issues(value, known, path)
    if issues:
        raise InvalidFacts(issues)
    return read_checked_fact(value, known)


def read_checked_fact(value: Mapping[str, Any], shape: Shape) -> Fact:
    """The fact of an object in which `shape_issues` found nothing."""
    names = _NAMES[shape]
    known: dict[str, Any] = {}
    rest = {key: item for key, item in value.items() if key}
    for field in _FIELDS:
        item = rest.pop(names.get(field, field), None)
        if item is not None:
            known[field] = item
    if "" in value:
        rest[""] = value[""]
    _fill(known, value, shape)
    fact = msgspec.convert({**known, "": rest}, Fact)
    return _unaliased(fact)


def decode_fact(data: bytes | str, shape: AnyShape = "auto") -> Fact:
    """Decode one fact from JSON text of any shape."""
    if shape in ("auto", "facts"):
        fact = decode_plain(data)
        if fact is not None:
            return fact
    return read_fact(decode_object(data), shape)


def decode_plain(data: bytes | str) -> Fact | None:
    """Decode a shape A fact of known, well-typed fields only; None sends it the long way."""
    try:
        fact = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    sequence = fact.sequence
    if sequence is None or sequence > SEQUENCE_MAX or sequence < _SEQUENCE_MIN:
        return None
    if fact.extra or not fact.id or (len(data) > _NESTED_BYTES and _is_deep(fact.payload, data)):
        return None
    if fact.event_class in CLASS_ALIASES:
        return _unaliased(fact)
    return fact


def decode_object(data: bytes | str) -> dict[str, Any]:
    """Decode one JSON object, with every way in which bytes can be unreadable named."""
    value = decode_json(data)
    if not isinstance(value, dict):
        mismatch = f"expected an object, got {_json_type(value)}"
        raise InvalidFacts([Issue("schema_mismatch", "$", mismatch)])
    return value  # pyright: ignore[reportUnknownVariableType]


def decode_json(data: bytes | str) -> object:
    """Decode any JSON; raises `UnreadableInput` and nothing else."""
    try:
        value: object = _any_decoder.decode(data)
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise UnreadableInput(f"nested deeper than {NESTING_DEPTH} levels") from error
    except msgspec.DecodeError as error:
        raise UnreadableInput(f"not JSON: {error}") from error
    if too_deep(value):
        raise UnreadableInput(f"nested deeper than {NESTING_DEPTH} levels")
    return value


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
        _leave_out(fields, shape)
    names = _NAMES[shape]
    written = {names.get(field, field): item for field, item in fields.items()}
    return written | {key: item for key, item in extra.items() if key not in written}


def too_deep(value: object) -> bool:
    """Whether lists and objects are nested deeper than `NESTING_DEPTH`."""
    level: list[object] = [value]
    for _ in range(NESTING_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _is_deep(payload: dict[str, Any], data: bytes | str) -> bool:
    """Whether a payload is nested too deep; counting brackets first is cheaper than looking."""
    if isinstance(data, bytes):
        brackets = data.count(b"{") + data.count(b"[")
    else:
        brackets = data.count("{") + data.count("[")
    return brackets > NESTING_DEPTH and too_deep(payload)


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        values: list[Any] = list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    elif isinstance(value, list):
        values = value  # pyright: ignore[reportUnknownVariableType]
    else:
        return []
    return [child for child in values if isinstance(child, dict | list)]


def _fill(known: dict[str, Any], value: Mapping[str, Any], shape: Shape) -> None:
    if shape == "facts":
        return
    event_class: str = known["eventClass"]
    event_class = CLASS_ALIASES.get(event_class, event_class)
    known.setdefault("kind", kind_of(event_class))
    known.setdefault("status", status_of(event_class))
    known.setdefault("title", event_class)
    if shape == "ui":
        for field in _UI_UNKNOWN:
            known.setdefault(field, UNKNOWN)
        if "id" not in known:
            canonical = msgspec.json.encode(value, order="deterministic")
            known["id"] = _DERIVED_ID + sha256(canonical).hexdigest()
    elif event_class == UNKNOWN:
        del known["eventClass"]


def _leave_out(fields: dict[str, Any], shape: Shape) -> None:
    event_class: str = fields.setdefault("eventClass", UNKNOWN)
    derived = {
        "kind": kind_of(event_class),
        "status": status_of(event_class),
        "title": event_class,
    }
    if shape == "ui":
        derived |= dict.fromkeys(_UI_UNKNOWN, UNKNOWN)
        if fields["id"].startswith(_DERIVED_ID):
            del fields["id"]
    for field, value in derived.items():
        if fields.get(field) == value:
            del fields[field]
    if shape == "runtime-event":
        fields.setdefault("payload", {})


def _unaliased(fact: Fact) -> Fact:
    event_class = fact.event_class
    alias = CLASS_ALIASES.get(event_class) if event_class else None
    return msgspec.structs.replace(fact, event_class=alias) if alias else fact


def _sequence_floor(shape: Shape) -> int:
    return 0 if shape == "runtime-event" else -SEQUENCE_MAX


def _sequence_issue(sequence: int, shape: Shape, path: str) -> Issue:
    floor = _sequence_floor(shape)
    message = f"expected a whole number from {floor} to {SEQUENCE_MAX}, got {sequence}"
    return Issue("schema_mismatch", f"{path}.sequence", message)


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")

"""Rules of a mapping: which items one is about, what they become, and with which names.

A field that a class knows holds what its type says, or it is left out. Ids go under `ids`, and
refs are made where content is kept: no mapping writes them. A class that opens or closes
something is built by its verb or not at all.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from factwire.facts import KNOWN_CLASSES, RUNTIME_CLASSES, Fact, missing_fields
from factwire.facts.classes.class_tables import required_fields_of
from factwire.facts.fact import ATTRIBUTES, CORRELATION_IDS, PAYLOAD_NAMES
from factwire.facts.fact_rules import PAYLOAD_TYPES
from factwire.facts.json_values import object_at, texts_of
from factwire.sources.mapped.mapping_values import (
    MappingProblems,
    Value,
    ValueReader,
    is_of_element,
    join_place,
)
from factwire.sources.mapped.mapping_verbs import RESERVED, USAGE, VERBS, MappingVerb

FieldCheck = Callable[[Any], bool]

_KEPT: Final = frozenset({"action", "command", "patch", "subagent", "test", "tool", "turn"})
"""Families whose facts open and close each other."""

_FREE: Final = frozenset({"tool.catalog.resolved"})

_OURS: Final = frozenset({"threadId", "runId", "turnId", "stepId", "runtimeId", "agentId"})
"""Ids that a `FactBuilder` gives."""

_BESIDE: Final = {
    "subagent": ("task.created", "task.completed", "task.failed"),
    "turn": ("turn.submitted", "metrics.changed"),
}
"""Family of a verb → other classes that carry what its rule says."""

ID_NAMES: Final = frozenset(name for names in PAYLOAD_NAMES.values() for name in names)
"""Every way to spell an id in a payload."""

CLASSES: Final = frozenset(
    name
    for name in RUNTIME_CLASSES
    if name in VERBS or name in _FREE or name.partition(".")[0] not in _KEPT
)
"""The classes that an item can become."""

_PROBE: Final = Fact(
    id="probe", kind="", status="", title="", created_at="", schema_version="", runtime_id=""
)
_SAMPLES: Final[tuple[Any, ...]] = ("x", 1, ["x"])


def is_class(name: str) -> bool:
    """Whether facts have this class, whether or not a mapping may tell it."""
    return name in KNOWN_CLASSES


def ids_of(becomes: str) -> tuple[str, ...]:
    """The ids that a rule may give."""
    verb = VERBS.get(becomes)
    return verb.ids if verb else tuple(name for name in CORRELATION_IDS if name not in _OURS)


def fields_of(becomes: str) -> dict[str, FieldCheck]:
    """The fields that a rule may give, with what fits into each."""
    verb = VERBS.get(becomes)
    known = _payload_fields("metrics.changed" if becomes == "usage" else becomes)
    if verb is None:
        return known
    return {name: known.get(name, _is_text) for name in verb.fields}


def typed_names(becomes: str) -> frozenset[str]:
    """Names whose type is known in a fact that this becomes, or in one that is told beside it."""
    beside = _BESIDE.get(becomes.partition(".")[0], ())
    kinds = [PAYLOAD_TYPES[name] for name in (becomes, *beside) if name in PAYLOAD_TYPES]
    return frozenset(field.encode_name for kind in kinds for field in msgspec.structs.fields(kind))


def find_lacking_field(
    event_class: str, ids: dict[str, str], payload: dict[str, Any]
) -> str | None:
    """What a fact of this class needs and has not, if anything."""
    fields: dict[str, Any] = {ATTRIBUTES[name]: value for name, value in ids.items()}
    probe = msgspec.structs.replace(_PROBE, event_class=event_class, payload=payload, **fields)
    missing = missing_fields(probe)
    return missing[0].expected if missing else None


def never_met(event_class: str, ids: set[str], fields: set[str]) -> str | None:
    """What a class needs that no value of these names can give."""
    found = [
        find_lacking_field(event_class, dict.fromkeys(ids, "x"), dict.fromkeys(fields, sample))
        for sample in _SAMPLES
    ]
    return found[0] if all(found) else None


@lru_cache(maxsize=256)
def _payload_fields(event_class: str) -> dict[str, FieldCheck]:
    payload = PAYLOAD_TYPES.get(event_class)
    fields = msgspec.structs.fields(payload) if payload else ()
    return {
        field.encode_name: _make_check(field.type)
        for field in fields
        if field.encode_name not in ID_NAMES and not is_ref(field.encode_name)
    }


def is_ref(name: str) -> bool:
    """Whether a field holds refs."""
    return name in ("ref", "refId", "refIds") or name.endswith(("Ref", "Refs", "_ref", "_refs"))


def _make_check(kind: Any) -> FieldCheck:
    if kind is Any:
        return _is_anything
    if kind == str | None:
        return _is_text

    def fits(value: Any) -> bool:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return False
        return True

    return fits


def _is_anything(value: Any) -> bool:
    del value
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


RuleCondition = Callable[[Any, Any], bool]
"""Whether a rule is about an item and the element that is looked at."""

_ANSWERS = "text, a number, true, false, a list of them, { exists = … } or { not = … }"


def read_conditions(
    content: Any, place: str, reader: ValueReader
) -> tuple[tuple[RuleCondition, ...], tuple[RuleCondition, ...]]:
    """The conditions of a rule: those on the item, and those on its elements."""
    table = reader.read_table(content, place)
    if not table and isinstance(content, dict):
        reader.problems.wrong_value(place, "at least one condition", content)
    on_item: list[RuleCondition] = []
    on_element: list[RuleCondition] = []
    for path, wanted in table.items():
        at = join_place(place, path)
        value, holds = reader.read_path(path, at), _make_test(wanted, at, reader.problems)
        into = on_element if path.startswith("@") else on_item
        into.append(lambda item, element, value=value, holds=holds: holds(value(item, element)))
    return tuple(on_item), tuple(on_element)


def _make_test(wanted: Any, place: str, problems: MappingProblems) -> Callable[[Any], bool]:
    if not isinstance(wanted, dict):
        return _make_one_of_test(wanted, place, problems)
    table = cast("dict[str, Any]", wanted)
    problems.unknown_keys(place, table, ("exists", "not"))
    if len(table) != 1:
        problems.add("wrong_value", place, "exists or not", f"{len(table)} keys")
    elif "exists" in table:
        return _make_exists_test(table["exists"], join_place(place, "exists"), problems)
    elif "not" in table:
        holds = _make_one_of_test(table["not"], join_place(place, "not"), problems)
        return lambda value: not holds(value)
    return _is_never


def _make_exists_test(wanted: Any, place: str, problems: MappingProblems) -> Callable[[Any], bool]:
    if not isinstance(wanted, bool):
        problems.wrong_type(place, "true or false", wanted)
    return lambda value: (value is not None) is wanted


def _make_one_of_test(wanted: Any, place: str, problems: MappingProblems) -> Callable[[Any], bool]:
    answers = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    if not answers or not all(isinstance(each, str | int | float) for each in answers):
        problems.wrong_type(place, _ANSWERS, wanted)
        return _is_never
    return lambda value: any(_is_same(value, each) for each in answers)


def _is_same(value: Any, wanted: Any) -> bool:
    """Equal, and a truth value only to a truth value: in Python, true is 1."""
    return isinstance(value, bool) is isinstance(wanted, bool) and value == wanted


def _is_never(value: Any) -> bool:
    del value
    return False


_KEYS: Final = ("becomes", "counts", "each", "extra", "fields", "ids", "type", "when")
_TYPE_CONDITIONS: Final = frozenset({"ids", "ignore", "usage"})
"""What an item can become that is no class."""


class MappingRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, ready to be used. `types` is empty where only the conditions decide; `texts` has
    the paths at which one of some texts must stand.
    """

    becomes: str
    types: tuple[str, ...] = ()
    texts: dict[str, tuple[str, ...]] = {}
    when: tuple[RuleCondition, ...] = ()
    when_element: tuple[RuleCondition, ...] = ()
    each: Value | None = None
    ids: tuple[tuple[str, Value], ...] = ()
    fields: tuple[tuple[str, Value, FieldCheck], ...] = ()
    verb: MappingVerb | None = None
    has_needs: bool = False
    about: str = ""


def read_rule(value: Any, place: str, problems: MappingProblems) -> MappingRule | None:
    """A rule; what is wrong with it is noted."""
    if not isinstance(value, dict):
        problems.wrong_type(place, "a table", value)
        return None
    table = cast("dict[str, Any]", value)
    problems.unknown_keys(place, table, _KEYS)
    becomes = _read_becomes(table, place, problems)
    types = _read_types(table, place, problems)
    if not types and "when" not in table and "type" not in table:
        problems.add_missing(
            join_place(place, "type"), "a type or when, so that the rule matches something"
        )
    reader = ValueReader(problems, has_element="each" in table)
    plain = ValueReader(problems)
    each = plain.read_path(table["each"], join_place(place, "each")) if "each" in table else None
    conditions = ((), ())
    if "when" in table:
        conditions = read_conditions(table["when"], join_place(place, "when"), reader)
    if becomes is None:
        return None
    fields = _read_fields(becomes, table, place, reader)
    rule = MappingRule(
        becomes=becomes,
        types=types,
        texts=_read_type_texts(table.get("when")),
        when=conditions[0],
        when_element=conditions[1],
        each=each,
        ids=_read_ids(becomes, table, place, reader),
        fields=fields,
        verb=_find_verb(becomes, table, place, problems),
        has_needs=bool(required_fields_of(becomes)),
        about=_describe_rule(types, table),
    )
    _check_needs(rule, place, problems)
    return rule


def _read_becomes(table: dict[str, Any], place: str, problems: MappingProblems) -> str | None:
    place, name = join_place(place, "becomes"), table.get("becomes")
    if name is None:
        problems.add_missing(place, "the class of a fact, or ignore, ids or usage")
    elif not isinstance(name, str):
        problems.wrong_type(place, "the class of a fact, or ignore, ids or usage", name)
    elif name in CLASSES or name in _TYPE_CONDITIONS:
        return name
    elif is_class(name):
        problems.add(
            "wrong_value",
            place,
            "a class that a mapping can produce",
            repr(name),
            "use turn.started, tool.* or subagent.started and the classes that end them",
        )
    else:
        problems.wrong_value(place, "the class of a fact, or ignore, ids or usage", name)
    return None


def _read_types(table: dict[str, Any], place: str, problems: MappingProblems) -> tuple[str, ...]:
    if "type" not in table:
        return ()
    value = table["type"]
    names = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        problems.wrong_type(join_place(place, "type"), "text, or a list of texts", value)
        return ()
    return tuple(names)


def _read_type_texts(when: Any) -> dict[str, tuple[str, ...]]:
    """The conditions on an item that ask for a text, or for one of several."""
    table = object_at(when) or {}
    return {
        path: tuple(texts_of(wanted))
        for path, wanted in table.items()
        if not is_of_element(path) and _are_texts(wanted)
    }


def _are_texts(wanted: Any) -> bool:
    """Whether all of it is text with something in it."""
    several = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    return bool(several) and len(texts_of(several)) == len(several)


def _find_verb(
    becomes: str, table: dict[str, Any], place: str, problems: MappingProblems
) -> MappingVerb | None:
    verb = VERBS.get(becomes)
    if "counts" not in table:
        return verb
    place, counts = join_place(place, "counts"), table["counts"]
    if verb is None or becomes != "usage":
        problems.add("wrong_value", place, "counts only beside usage", repr(becomes))
        return verb
    if not isinstance(counts, str) or counts not in USAGE:
        problems.wrong_value(place, "one of " + ", ".join(USAGE), counts)
        return verb
    return msgspec.structs.replace(verb, apply=USAGE[counts])


def _read_ids(
    becomes: str, table: dict[str, Any], place: str, reader: ValueReader
) -> tuple[tuple[str, Value], ...]:
    place = join_place(place, "ids")
    value = reader.read_table(table.get("ids", {}), place)
    reader.problems.unknown_keys(place, value, ids_of(becomes))
    return tuple((name, reader.read(each, join_place(place, name))) for name, each in value.items())


def _read_fields(
    becomes: str, table: dict[str, Any], place: str, reader: ValueReader
) -> tuple[tuple[str, Value, FieldCheck], ...]:
    known = fields_of(becomes)
    at = join_place(place, "fields")
    content = reader.read_table(table.get("fields", {}), at)
    reader.problems.unknown_keys(at, content, known)
    found = [
        (
            name,
            _read_field(value, join_place(at, name), known.get(name), reader),
            known.get(name, _accept_any),
        )
        for name, value in content.items()
    ]
    return (*found, *_read_extra(becomes, table, place, reader))


def _read_field(content: Any, place: str, fits: FieldCheck | None, reader: ValueReader) -> Value:
    value = reader.read(content, place)
    table = object_at(content) or {}
    if fits is not None and "const" in table and not fits(table["const"]):
        reader.problems.wrong_type(place, "a constant of the field's type", table["const"])
    return value


def _read_extra(
    becomes: str, table: dict[str, Any], place: str, reader: ValueReader
) -> list[tuple[str, Value, FieldCheck]]:
    if "extra" not in table:
        return []
    place, verb = join_place(place, "extra"), VERBS.get(becomes)
    value = reader.read_table(table["extra"], place)
    if verb is not None and not verb.takes_extra:
        reader.problems.add("wrong_value", place, f"no extra fields of {becomes}", "some")
    for name in value:
        _check_extra(becomes, name, join_place(place, name), reader.problems)
    return [
        (name, reader.read(each, join_place(place, name)), _accept_any)
        for name, each in value.items()
    ]


def _check_extra(becomes: str, name: str, place: str, problems: MappingProblems) -> None:
    if name in typed_names(becomes):
        problems.wrong_value(place, "a name that the class does not define; see fields", name)
    elif name in ID_NAMES or is_ref(name):
        problems.wrong_value(place, "neither an id nor a ref; see ids", name)
    elif name in RESERVED or not (name.isascii() and name.isalnum()):
        problems.wrong_value(place, "another name, of letters and digits", name)


def _check_needs(rule: MappingRule, place: str, problems: MappingProblems) -> None:
    names = {name for name, _, _ in rule.fields}
    for name in rule.verb.needs if rule.verb else ():
        if name not in names:
            problems.add_missing(join_place(place, f"fields.{name}"), f"what {rule.becomes} needs")
    if rule.verb is None:
        lacks = never_met(rule.becomes, {name for name, _ in rule.ids}, names)
        if lacks:
            problems.add_missing(place, f"{lacks}, which {rule.becomes} needs")


def _describe_rule(types: tuple[str, ...], table: dict[str, Any]) -> str:
    when = cast("dict[str, Any]", table["when"]) if isinstance(table.get("when"), dict) else {}
    return ", ".join(types) + "".join(f" [{path}]" for path in when)


def _accept_any(value: Any) -> bool:
    del value
    return True

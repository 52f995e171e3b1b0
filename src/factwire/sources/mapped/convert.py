"""A mapping file, read, and a stream converted by it.

A file with a problem is refused with all of them. Every rule that is about an item is applied,
in its order; an item that none is about is not known, and one that lacks what its fact needs is
a warning.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts.fact import ATTRIBUTES
from factwire.facts.json_values import is_too_deep, list_at
from factwire.runtime.configuration import ConfigurationProblem
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.stream_framing import Framing
from factwire.sources.mapped.mapping_rules import MappingRule, find_lacking_field, read_rule
from factwire.sources.mapped.mapping_values import (
    FILE_BYTES,
    RULES,
    SHOWN_TYPE,
    MappingError,
    MappingProblems,
    Value,
    ValueReader,
    join_place,
    make_path_value,
    read_nothing,
)
from factwire.sources.mapped.mapping_verbs import NEWS
from factwire.sources.source_registry import Source


def _from_iso(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo is not None else None


def _from_seconds(value: Any) -> datetime | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return datetime.fromtimestamp(value, UTC) if is_number else None


def _from_milliseconds(value: Any) -> datetime | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return datetime.fromtimestamp(value / 1_000, UTC) if is_number else None


UNITS: Final[dict[str, Callable[[Any], datetime | None]]] = {
    "iso": _from_iso,
    "milliseconds": _from_milliseconds,
    "seconds": _from_seconds,
}


def read_time(value: Any, unit: str) -> str | None:
    """A time as facts state it."""
    try:
        moment = UNITS[unit](value)
        shown = moment.astimezone(UTC) if moment else None
    except (OverflowError, OSError, ValueError):
        return None
    return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z") if shown else None


_LINES: Final = ("answer", "prompt", "stop")


class MappedInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a program knows: what is asked of it, what was decided, and that it is to
    stop.
    """

    answer: Value | None = None
    prompt: Value | None = None
    stop: Value | None = None

    @property
    def stays_open(self) -> bool:
        """Whether there may be more to say after the prompt."""
        return self.answer is not None or self.stop is not None


def read_inputs(table: dict[str, Any], problems: MappingProblems) -> MappedInputs:
    if "stdin" not in table:
        return MappedInputs()
    reader = ValueReader(problems)
    value = reader.read_table(table["stdin"], "stdin")
    problems.unknown_keys("stdin", value, _LINES)
    return MappedInputs(
        **{name: _read_line(value[name], name, reader) for name in _LINES if name in value},
    )


def _read_line(value: Any, name: str, reader: ValueReader) -> Value:
    """An object: a line that is anything else is none of a protocol."""
    place = join_place("stdin", name)
    if not isinstance(value, dict) or "fields" not in value:
        reader.problems.wrong_value(place, "an object, written { fields = { … } }", value)
    return reader.read(value, place)


class RuleBucket(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one type, in their order: all that may hold for each text at a path, and those
    that may hold whatever stands there.
    """

    path: Value | None = None
    by_text: dict[str, tuple[MappingRule, ...]] = {}
    rest: tuple[MappingRule, ...] = ()

    def find_rules(self, item: dict[str, Any]) -> tuple[MappingRule, ...]:
        """The rules that may be about an item."""
        if self.path is None:
            return self.rest
        text = self.path(item, None)
        return self.by_text.get(text, self.rest) if isinstance(text, str) else self.rest


def make_bucket(rules: Iterable[MappingRule]) -> RuleBucket:
    """The rules of a type, laid out."""
    among = tuple(rules)
    path_counts = Counter(path for rule in among for path in rule.texts)
    if not path_counts:
        return RuleBucket(rest=among)
    path = path_counts.most_common(1)[0][0]
    texts = {text for rule in among for text in rule.texts.get(path, ())}
    return RuleBucket(
        path=make_path_value(path),
        by_text={
            text: tuple(rule for rule in among if text in rule.texts.get(path, (text,)))
            for text in texts
        },
        rest=tuple(rule for rule in among if path not in rule.texts),
    )


def make_buckets(rules: tuple[MappingRule, ...]) -> dict[str, RuleBucket]:
    """Each type that rules name → the rules that may be about items of it."""
    names = {name for rule in rules for name in rule.types}
    return {
        name: make_bucket(rule for rule in rules if not rule.types or name in rule.types)
        for name in names
    }


VERSION: Final = 1
"""The version of mapping files that is read."""

_KEYS: Final = ("framing", "mapping", "name", "on", "stdin", "time", "title", "type", "versions")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FRAMINGS: Final = ("lines", "events")


class AgentMapping(msgspec.Struct, frozen=True, kw_only=True):
    """What a mapping file says. `by_type` has the rules for each type that it names, `always` those
    that name none; `inputs` is what the program is told where it is run.
    """

    name: str
    title: str
    versions: str
    framing: Framing
    type: Value
    time: Value | None
    unit: str
    rules: tuple[MappingRule, ...]
    by_type: dict[str, RuleBucket]
    always: RuleBucket
    inputs: MappedInputs = MappedInputs()


def read_mapping(data: bytes, where: str = "mapping") -> AgentMapping:
    """The mapping in a file; raises `MappingError` with everything that is wrong with it."""
    table = _parse_toml(data, where)
    problems = MappingProblems(where)
    problems.unknown_keys("", table, _KEYS)
    _check_version(table, problems)
    name = _read_name(table, problems)
    rules = _read_rules(table, problems)
    time, unit = _read_time(table, problems)
    mapping = AgentMapping(
        name=name,
        title=_read_text(table, "title", name, problems),
        versions=_read_text(table, "versions", "not specified", problems),
        framing=_read_framing(table, problems),
        type=_read_type(table, rules, problems),
        time=time,
        unit=unit,
        rules=rules,
        by_type=make_buckets(rules),
        always=make_bucket(rule for rule in rules if not rule.types),
        inputs=read_inputs(table, problems),
    )
    problems.raise_any()
    return mapping


def _parse_toml(data: bytes, where: str) -> dict[str, Any]:
    try:
        if len(data) > FILE_BYTES:
            raise _unreadable_error(where, f"at most {FILE_BYTES} bytes", f"{len(data)}")
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise _unreadable_error(
            where, "text in UTF-8", f"byte {error.start} that is not"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise _unreadable_error(where, "TOML", f"an error in it: {error}") from error
    except RecursionError as error:
        raise _unreadable_error(where, "TOML", "tables nested too deeply") from error


def _unreadable_error(where: str, expected: str, got: str) -> MappingError:
    return MappingError(
        (ConfigurationProblem(code="unreadable", where=where, expected=expected, got=got),)
    )


def _check_version(table: dict[str, Any], problems: MappingProblems) -> None:
    value, expected = table.get("mapping"), f"{VERSION}, the version of the format"
    if value is None:
        problems.add_missing("mapping", expected)
    elif type(value) is not int or value != VERSION:
        problems.wrong_value("mapping", expected, value)


def _read_name(table: dict[str, Any], problems: MappingProblems) -> str:
    name = table.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    if name is None:
        problems.add_missing("name", "a name for the source")
    else:
        problems.wrong_value("name", "small letters, digits and dashes", name)
    return "unnamed"


def _read_text(table: dict[str, Any], key: str, default: str, problems: MappingProblems) -> str:
    value = table.get(key, default)
    if isinstance(value, str):
        return value
    problems.wrong_type(key, "text", value)
    return default


def _read_framing(table: dict[str, Any], problems: MappingProblems) -> Literal["lines", "events"]:
    value = table.get("framing", "lines")
    if value not in _FRAMINGS:
        problems.wrong_value("framing", "lines or events", value)
    return "events" if value == "events" else "lines"


def _read_type(
    table: dict[str, Any], rules: tuple[MappingRule, ...], problems: MappingProblems
) -> Value:
    if "type" in table:
        return ValueReader(problems).read(table["type"], "type")
    if any(rule.types for rule in rules):
        problems.add_missing("type", "the path to the type of an item, since rules use it")
    return read_nothing


def _read_time(table: dict[str, Any], problems: MappingProblems) -> tuple[Value | None, str]:
    if "time" not in table:
        return None, "iso"
    reader = ValueReader(problems)
    value = reader.read_table(table["time"], "time")
    problems.unknown_keys("time", value, ("unit", "value"))
    unit = value.get("unit", "iso")
    if not isinstance(unit, str) or unit not in UNITS:
        problems.wrong_value("time.unit", "one of " + ", ".join(UNITS), unit)
        unit = "iso"
    if "value" not in value:
        problems.add_missing("time.value", "the path to the time of an item")
        return None, unit
    return reader.read(value["value"], "time.value"), unit


def _read_rules(table: dict[str, Any], problems: MappingProblems) -> tuple[MappingRule, ...]:
    value = table.get("on")
    rows = list_at(value) or []
    if not rows:
        problems.add_missing("on", "at least one rule, a table [[on]]")
    if len(rows) > RULES:
        problems.add("wrong_value", "on", f"at most {RULES} rules", f"{len(rows)}")
        return ()
    read = [read_rule(row, f"on[{at}]", problems) for at, row in enumerate(rows, 1)]
    return tuple(rule for rule in read if rule is not None)


_NESTED: Final = (dict, list)


class MappedConverter:
    """Converts one stream."""

    def __init__(self, mapping: AgentMapping, builder: FactBuilder) -> None:
        self.mapping = mapping
        self.builder = builder
        self.has_begun = False
        self.reasoning: tuple[str | None, str] | None = None
        self.sums: dict[str, float] = {}
        self.numbers: dict[str, int] = {}

    def take(self, item: dict[str, Any]) -> None:
        mapping = self.mapping
        if mapping.time is not None:
            unit, value = mapping.unit, mapping.time(item, None)
            self.builder.at = read_time(value, unit) or self.builder.at
        value = mapping.type(item, None)
        kind = value if isinstance(value, str) else ""
        known = False
        for rule in mapping.by_type.get(kind, mapping.always).find_rules(item):
            if all(holds(item, None) for holds in rule.when):
                known = True
                self._apply_rule(rule, item)
        if not known:
            self.builder.warn_unknown(kind[:SHOWN_TYPE], item)

    def finish(self) -> None:
        """The `FactBuilder` closes what is open; a mapping has nothing to add."""

    def next_id(self, family: str) -> str:
        self.numbers[family] = self.numbers.get(family, 0) + 1
        return f"{self.builder.thread_id}:{family}-{self.numbers[family]}"

    def _apply_rule(self, rule: MappingRule, item: dict[str, Any]) -> None:
        if rule.each is None:
            self._apply_to_element(rule, item, None)
            return
        for element in _to_elements(rule.each(item, None)):
            if all(holds(item, element) for holds in rule.when_element):
                self._apply_to_element(rule, item, element)

    def _apply_to_element(self, rule: MappingRule, item: dict[str, Any], element: Any) -> None:
        ids = {name: found for name, value in rule.ids if (found := _to_id(value(item, element)))}
        fields = self._read_fields(rule, item, element)
        lacks = _find_lacking(rule, ids, fields)
        if lacks:
            message = f"{rule.becomes} needs {lacks}, which the item does not have"
            self.builder.warn("incomplete_source_item", message, item)
        elif rule.verb is None:
            self._add_fact(rule.becomes, ids, fields)
        else:
            rule.verb.apply(self, ids, fields)
        if rule.becomes in NEWS:
            self.reasoning = None
        self.has_begun = self.has_begun or self.builder.is_open

    def _read_fields(self, rule: MappingRule, item: dict[str, Any], element: Any) -> dict[str, Any]:
        """The fields of a fact; what does not fit, or is too deep to be written, is left out."""
        payload: dict[str, Any] = {}
        for name, value, fits in rule.fields:
            found = value(item, element)
            if found is None or not fits(found):
                continue
            if type(found) in _NESTED and is_too_deep([[found]]):
                self.builder.warn(
                    "value_too_deep", f"{name} is nested too deeply and was left out", item
                )
            else:
                payload[name] = found
        return payload

    def _add_fact(self, event_class: str, ids: dict[str, str], payload: dict[str, Any]) -> None:
        who = ids.pop("subagentId", None)
        fields = {ATTRIBUTES[name]: value for name, value in ids.items()}
        if who is None:
            self.builder.add_fact(event_class, payload, **fields)
        else:
            self.builder.add_subagent_fact(who, event_class, payload, **fields)


def read_mapped_source(data: bytes, where: str = "mapping") -> Source:
    """The source that a mapping file describes; raises `MappingError`."""
    return make_mapped_source(read_mapping(data, where))


def make_mapped_source(mapping: AgentMapping) -> Source:
    """The source that a mapping describes."""
    return Source(
        name=mapping.name,
        title=mapping.title,
        framing=mapping.framing,
        versions=mapping.versions,
        converter=partial(MappedConverter, mapping),
        maps=_make_maps(mapping.rules),
    )


def _find_lacking(rule: MappingRule, ids: dict[str, str], payload: dict[str, Any]) -> str | None:
    if rule.verb is not None:
        return next((name for name in rule.verb.needs if name not in payload), None)
    return find_lacking_field(rule.becomes, ids, payload) if rule.has_needs else None


def _to_id(value: Any) -> str | None:
    """An id: a text with something in it, or a whole number."""
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None


def _to_elements(value: Any) -> Iterable[Any]:
    """The elements of a list; of an object, its entries, each with its `key` and `value`."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return [{"key": key, "value": each} for key, each in entries]
    return list_at(value) or ()


def _make_maps(rules: tuple[MappingRule, ...]) -> dict[str, str]:
    """What each rule is about → what that becomes; rules about the same stand together."""
    rows: dict[str, list[str]] = {}
    for rule in rules:
        rows.setdefault(rule.about, []).append(rule.becomes)
    return {about: ", ".join(dict.fromkeys(classes)) for about, classes in rows.items()}

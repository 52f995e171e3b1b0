"""Rules: the `[[on]]` tables of a mapping, each about some items, each telling one fact of them."""

from typing import Any, Final, cast

import msgspec

from factwire.facts.needs import needs_of
from factwire.projection.reading import words
from factwire.sources.mapped.classes import (
    CLASSES,
    ID_NAMES,
    Fits,
    fields_of,
    ids_of,
    is_class,
    is_ref,
    never_met,
    typed_names,
)
from factwire.sources.mapped.conditions import Condition, read_conditions
from factwire.sources.mapped.paths import Value, is_of_element
from factwire.sources.mapped.problems import Problems, inside
from factwire.sources.mapped.values import ValueReader
from factwire.sources.mapped.verbs import RESERVED, USAGE, VERBS, Verb

_KEYS: Final = ("becomes", "counts", "each", "extra", "fields", "ids", "type", "when")
_WORDS: Final = frozenset({"ids", "ignore", "usage"})
"""What an item can become that is no class."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, ready to be used. `types` is empty where only the conditions decide; `texts` has
    the paths at which one of some texts must stand.
    """

    becomes: str
    types: tuple[str, ...] = ()
    texts: dict[str, tuple[str, ...]] = {}
    when: tuple[Condition, ...] = ()
    when_element: tuple[Condition, ...] = ()
    each: Value | None = None
    ids: tuple[tuple[str, Value], ...] = ()
    fields: tuple[tuple[str, Value, Fits], ...] = ()
    verb: Verb | None = None
    has_needs: bool = False
    about: str = ""


def read_rule(given: Any, place: str, problems: Problems) -> Rule | None:
    """A rule; what is wrong with it is noted."""
    if not isinstance(given, dict):
        problems.wrong_type(place, "a table", given)
        return None
    table = cast("dict[str, Any]", given)
    problems.unknown_keys(place, table, _KEYS)
    becomes = _becomes(table, place, problems)
    types = _types(table, place, problems)
    if not types and "when" not in table and "type" not in table:
        problems.missing(
            inside(place, "type"), "a type, or when, so that the rule is about something"
        )
    reader = ValueReader(problems, has_element="each" in table)
    plain = ValueReader(problems)
    each = plain.path(table["each"], inside(place, "each")) if "each" in table else None
    conditions = ((), ())
    if "when" in table:
        conditions = read_conditions(table["when"], inside(place, "when"), reader)
    if becomes is None:
        return None
    fields = _fields(becomes, table, place, reader)
    rule = Rule(
        becomes=becomes,
        types=types,
        texts=_texts(table.get("when")),
        when=conditions[0],
        when_element=conditions[1],
        each=each,
        ids=_ids(becomes, table, place, reader),
        fields=fields,
        verb=_verb(becomes, table, place, problems),
        has_needs=bool(needs_of(becomes)),
        about=_about(types, table),
    )
    _check_needs(rule, place, problems)
    return rule


def _becomes(table: dict[str, Any], place: str, problems: Problems) -> str | None:
    place, name = inside(place, "becomes"), table.get("becomes")
    if name is None:
        problems.missing(place, "the class of a fact, or ignore, ids or usage")
    elif not isinstance(name, str):
        problems.wrong_type(place, "the class of a fact, or ignore, ids or usage", name)
    elif name in CLASSES or name in _WORDS:
        return name
    elif is_class(name):
        problems.add(
            "wrong_value",
            place,
            "a class that a mapping can tell",
            repr(name),
            "tell what happened with turn.started, tool.* or subagent.started and their ends",
        )
    else:
        problems.wrong_value(place, "the class of a fact, or ignore, ids or usage", name)
    return None


def _types(table: dict[str, Any], place: str, problems: Problems) -> tuple[str, ...]:
    if "type" not in table:
        return ()
    given = table["type"]
    names = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not names or not all(isinstance(name, str) for name in names):
        problems.wrong_type(inside(place, "type"), "text, or a list of texts", given)
        return ()
    return tuple(names)


def _texts(when: Any) -> dict[str, tuple[str, ...]]:
    """The conditions on an item that ask for a text, or for one of several."""
    table = cast("dict[str, Any]", when) if isinstance(when, dict) else {}
    return {
        path: tuple(words(wanted))
        for path, wanted in table.items()
        if not is_of_element(path) and _are_texts(wanted)
    }


def _are_texts(wanted: Any) -> bool:
    """Whether all of it is text with something in it."""
    several = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    return bool(several) and len(words(several)) == len(several)


def _verb(becomes: str, table: dict[str, Any], place: str, problems: Problems) -> Verb | None:
    verb = VERBS.get(becomes)
    if "counts" not in table:
        return verb
    place, counts = inside(place, "counts"), table["counts"]
    if verb is None or becomes != "usage":
        problems.add("wrong_value", place, "counts only beside usage", repr(becomes))
        return verb
    if not isinstance(counts, str) or counts not in USAGE:
        problems.wrong_value(place, "one of " + ", ".join(USAGE), counts)
        return verb
    return msgspec.structs.replace(verb, tell=USAGE[counts])


def _ids(
    becomes: str, table: dict[str, Any], place: str, reader: ValueReader
) -> tuple[tuple[str, Value], ...]:
    place = inside(place, "ids")
    given = reader.table(table.get("ids", {}), place)
    reader.problems.unknown_keys(place, given, ids_of(becomes))
    return tuple((name, reader.read(each, inside(place, name))) for name, each in given.items())


def _fields(
    becomes: str, table: dict[str, Any], place: str, reader: ValueReader
) -> tuple[tuple[str, Value, Fits], ...]:
    known = fields_of(becomes)
    at = inside(place, "fields")
    given = reader.table(table.get("fields", {}), at)
    reader.problems.unknown_keys(at, given, known)
    found = [
        (name, _field(value, inside(at, name), known.get(name), reader), known.get(name, _any))
        for name, value in given.items()
    ]
    return (*found, *_extra(becomes, table, place, reader))


def _field(given: Any, place: str, fits: Fits | None, reader: ValueReader) -> Value:
    value = reader.read(given, place)
    table = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if fits is not None and "const" in table and not fits(table["const"]):
        reader.problems.wrong_type(place, "a constant of the field's type", table["const"])
    return value


def _extra(
    becomes: str, table: dict[str, Any], place: str, reader: ValueReader
) -> list[tuple[str, Value, Fits]]:
    if "extra" not in table:
        return []
    place, verb = inside(place, "extra"), VERBS.get(becomes)
    given = reader.table(table["extra"], place)
    if verb is not None and not verb.takes_extra:
        reader.problems.add("wrong_value", place, f"no extra fields of {becomes}", "some")
    for name in given:
        _check_extra(becomes, name, inside(place, name), reader.problems)
    return [(name, reader.read(each, inside(place, name)), _any) for name, each in given.items()]


def _check_extra(becomes: str, name: str, place: str, problems: Problems) -> None:
    if name in typed_names(becomes):
        problems.wrong_value(place, "a name that the class does not know; see fields", name)
    elif name in ID_NAMES or is_ref(name):
        problems.wrong_value(place, "neither an id nor a ref; see ids", name)
    elif name in RESERVED or not (name.isascii() and name.isalnum()):
        problems.wrong_value(place, "another name, of letters and digits", name)


def _check_needs(rule: Rule, place: str, problems: Problems) -> None:
    names = {name for name, _, _ in rule.fields}
    for name in rule.verb.needs if rule.verb else ():
        if name not in names:
            problems.missing(inside(place, f"fields.{name}"), f"what {rule.becomes} needs")
    if rule.verb is None:
        lacks = never_met(rule.becomes, {name for name, _ in rule.ids}, names)
        if lacks:
            problems.missing(place, f"{lacks}, which {rule.becomes} needs")


def _about(types: tuple[str, ...], table: dict[str, Any]) -> str:
    when = cast("dict[str, Any]", table["when"]) if isinstance(table.get("when"), dict) else {}
    return ", ".join(types) + "".join(f" [{path}]" for path in when)


def _any(value: Any) -> bool:
    del value
    return True

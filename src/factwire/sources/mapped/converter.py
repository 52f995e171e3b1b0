"""`Mapped`: a stream told by a mapping. Every rule that is about an item is told, in its order; an
item that none is about is not known, and one that lacks what its fact needs is a warning.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, cast

from factwire.facts.ids import ATTRIBUTES
from factwire.facts.json_text import too_deep
from factwire.sources.mapped.classes import lacking
from factwire.sources.mapped.limits import SHOWN_TYPE
from factwire.sources.mapped.mapping import Mapping, read_mapping
from factwire.sources.mapped.rules import Rule
from factwire.sources.mapped.times import time_of
from factwire.sources.mapped.verbs import NEWS
from factwire.sources.source import Source
from factwire.sources.telling import Telling

_NESTED: Final = (dict, list)


class Mapped:
    """Converts one stream."""

    def __init__(self, mapping: Mapping, telling: Telling) -> None:
        self.mapping = mapping
        self.tell = telling
        self.has_begun = False
        self.reasoning: tuple[str | None, str] | None = None
        self.sums: dict[str, float] = {}
        self.numbers: dict[str, int] = {}

    def take(self, item: dict[str, Any]) -> None:
        mapping = self.mapping
        if mapping.time is not None:
            unit, given = mapping.unit, mapping.time(item, None)
            self.tell.at = time_of(given, unit) or self.tell.at
        given = mapping.type(item, None)
        kind = given if isinstance(given, str) else ""
        known = False
        for rule in mapping.by_type.get(kind, mapping.always).rules(item):
            if all(holds(item, None) for holds in rule.when):
                known = True
                self._apply(rule, item)
        if not known:
            self.tell.unknown(kind[:SHOWN_TYPE], item)

    def finish(self) -> None:
        """The telling closes what is open; a mapping has nothing to add."""

    def number(self, family: str) -> str:
        self.numbers[family] = self.numbers.get(family, 0) + 1
        return f"{self.tell.thread_id}:{family}-{self.numbers[family]}"

    def _apply(self, rule: Rule, item: dict[str, Any]) -> None:
        if rule.each is None:
            self._tell(rule, item, None)
            return
        for element in _elements(rule.each(item, None)):
            if all(holds(item, element) for holds in rule.when_element):
                self._tell(rule, item, element)

    def _tell(self, rule: Rule, item: dict[str, Any], element: Any) -> None:
        ids = {name: found for name, value in rule.ids if (found := _id(value(item, element)))}
        said = self._said(rule, item, element)
        lacks = _lacks(rule, ids, said)
        if lacks:
            message = f"{rule.becomes} needs {lacks}, which the item does not give"
            self.tell.warn("incomplete_source_item", message, item)
        elif rule.verb is None:
            self._say(rule.becomes, ids, said)
        else:
            rule.verb.tell(self, ids, said)
        if rule.becomes in NEWS:
            self.reasoning = None
        self.has_begun = self.has_begun or self.tell.is_open

    def _said(self, rule: Rule, item: dict[str, Any], element: Any) -> dict[str, Any]:
        """The fields of a fact; what does not fit, or is too deep to be written, is left out."""
        said: dict[str, Any] = {}
        for name, value, fits in rule.fields:
            found = value(item, element)
            if found is None or not fits(found):
                continue
            if type(found) in _NESTED and too_deep([[found]]):
                self.tell.warn("value_too_deep", f"{name} is nested too deep and left out", item)
            else:
                said[name] = found
        return said

    def _say(self, event_class: str, ids: dict[str, str], said: dict[str, Any]) -> None:
        who = ids.pop("subagentId", None)
        given = {ATTRIBUTES[name]: value for name, value in ids.items()}
        if who is None:
            self.tell.fact(event_class, said, **given)
        else:
            self.tell.within(who, event_class, said, **given)


def mapped_source(data: bytes, where: str = "mapping") -> Source:
    """The source that a mapping file describes; raises `MappingError`."""
    return source_by(read_mapping(data, where))


def source_by(mapping: Mapping) -> Source:
    """The source that a mapping describes."""
    return Source(
        name=mapping.name,
        title=mapping.title,
        framing=mapping.framing,
        versions=mapping.versions,
        converter=partial(Mapped, mapping),
        maps=_maps(mapping.rules),
    )


def _lacks(rule: Rule, ids: dict[str, str], said: dict[str, Any]) -> str | None:
    if rule.verb is not None:
        return next((name for name in rule.verb.needs if name not in said), None)
    return lacking(rule.becomes, ids, said) if rule.has_needs else None


def _id(value: Any) -> str | None:
    """An id: a text with something in it, or a whole number."""
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None


def _elements(value: Any) -> Iterable[Any]:
    """The elements of a list; of an object, its entries, each with its `key` and `value`."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return [{"key": key, "value": each} for key, each in entries]
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _maps(rules: tuple[Rule, ...]) -> dict[str, str]:
    """What each rule is about → what that becomes; rules about the same stand together."""
    rows: dict[str, list[str]] = {}
    for rule in rules:
        rows.setdefault(rule.about, []).append(rule.becomes)
    return {about: ", ".join(dict.fromkeys(told)) for about, told in rows.items()}

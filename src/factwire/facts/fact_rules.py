"""The rules that one well-typed fact is held to, whatever shape it came in.

Most facts break none of them, and most of those are short text deltas: each rule first asks the
cheap question whose answer is nearly always no. A time is one by RFC 3339, with its offset; the
seconds seen last are remembered, because the facts of a stream come many to the second.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, cast

import msgspec

from factwire.facts.classes.class_tables import (
    KNOWN_CLASSES,
    PAYLOAD_TYPES,
    required_fields_of,
)
from factwire.facts.classes.payloads import Payload
from factwire.facts.classes.required_fields import THREAD, TURN, RequiredField
from factwire.facts.fact import Fact
from factwire.facts.inputs import INPUT_FIELDS, carried_input_issues
from factwire.facts.issues import Issue, path_step, type_mismatches
from factwire.facts.limits import PAYLOAD_CHARACTERS, PREVIEW_CHARACTERS
from factwire.facts.outcomes import STATED_STATUSES, outcome_issue
from factwire.facts.redaction import find_in_value, redact_text
from factwire.facts.refs import REF_LISTS, ref_issue
from factwire.facts.secret_shapes import find_secrets, may_hold_secret
from factwire.facts.shapes import wire_name
from factwire.facts.spill import json_characters
from factwire.facts.vocabulary import LEGACY_TERMINALS, SHAPES, UNKNOWN, Shape

_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_SECOND: Final = len("2026-06-10T00:00:00")


def is_timestamp(text: str) -> bool:
    """Whether a text is a time that anybody reads alike."""
    rest = text[_SECOND:]
    if rest == "Z":
        return _is_second(text[:_SECOND])
    if rest[:1] == "." and rest[-1] == "Z" and rest[1:-1].isdigit() and rest.isascii():
        return _is_second(text[:_SECOND])
    return _TIMESTAMP.fullmatch(text) is not None


@lru_cache(maxsize=256)
def _is_second(text: str) -> bool:
    return _TIMESTAMP.fullmatch(f"{text}Z") is not None


_REWRITE_FACTOR: Final = 5
"""How many times longer JSON can get when it is written again: 1e15 is 1000000000000000.0."""


_EXCERPT_CHARACTERS: Final = 40


class _ClassRules(msgspec.Struct, frozen=True):
    """What is known about a class before any fact of it is seen."""

    known: bool
    required: tuple[RequiredField, ...]
    payload: type[Payload] | None
    refs: tuple[str, ...] = ()
    statuses: frozenset[str] | None = None


def _rules_of(event_class: str | None, shape: Shape) -> _ClassRules:
    if event_class is None:
        return _ClassRules(known=True, required=(), payload=None)
    known = event_class in KNOWN_CLASSES
    payload = PAYLOAD_TYPES.get(event_class)
    refs = _ref_fields(payload) if payload else ()
    statuses = STATED_STATUSES.get(event_class)
    return _ClassRules(known, _gate_fields(event_class, shape), payload, refs, statuses)


def _gate_fields(event_class: str, shape: Shape) -> tuple[RequiredField, ...]:
    """What a provider's fact must carry. A fact about a turn names it and its thread in shape A,
    too; a reader of files does without, since a file of one thread need not name it.
    """
    fields = required_fields_of(event_class, shape)
    if shape == "facts" and event_class in _TURN_CLASSES:
        return (THREAD, TURN, *fields)
    return fields


_TURN_CLASSES: Final = frozenset(name for name in KNOWN_CLASSES if name.startswith("turn."))


@lru_cache(maxsize=256)
def _ref_fields(payload: type[Payload]) -> tuple[str, ...]:
    """The fields of a payload that hold refs; many classes share one type."""
    fields = msgspec.structs.fields(payload)
    return tuple(f.encode_name for f in fields if f.name == "ref" or f.name.endswith("_ref"))


_RULES: Final = {
    shape: {name: _rules_of(name, shape) for name in KNOWN_CLASSES} for shape in SHAPES
}


def rule_issues(
    fact: Fact, shape: Shape = "facts", *, wire_bytes: int | None = None
) -> list[Issue]:
    """Every rule that the fact breaks, with paths from `$`. `wire_bytes`, the length of the JSON it
    was decoded from, spares measuring the payload of a fact that is short as a whole.
    """
    issues = class_issues(fact, shape)
    issues += secret_issues(fact, shape)
    if wire_bytes is None or wire_bytes > PREVIEW_CHARACTERS:
        issues += _size_issues(fact, shape, wire_bytes)
    return issues


def class_issues(fact: Fact, shape: Shape = "facts") -> list[Issue]:
    """The rules that redaction and spilling cannot mend: class, needs, payload types, refs."""
    issues: list[Issue] = []
    if not is_timestamp(fact.created_at) and (shape != "ui" or fact.created_at != UNKNOWN):
        issues.append(_timestamp_issue(fact.created_at, shape))
    rules = _RULES[shape].get(fact.event_class or "") or _rules_of(fact.event_class, shape)
    if not rules.known:
        issues.append(_unknown_class_issue(fact.event_class or "", shape))
    if rules.required:
        issues += [_missing_field_issue(it, fact) for it in rules.required if not it.is_met(fact)]
    if rules.statuses is not None:
        issue = outcome_issue(fact, rules.statuses)
        issues += [] if issue is None else [issue]
    if rules.payload is not None and fact.payload:
        issues += _typed_payload_issues(fact.payload, rules.payload, rules.refs)
    if fact.ref_ids or fact.artifact_refs or fact.evidence_refs:
        issues += _ref_issues(fact)
    if fact.extra or not INPUT_FIELDS.isdisjoint(fact.payload):
        issues += carried_input_issues(fact)
    return issues


def _typed_payload_issues(
    payload: dict[str, Any], kind: type[Payload], refs: tuple[str, ...]
) -> list[Issue]:
    issues: list[Issue] = []
    try:
        msgspec.convert(payload, kind)
    except msgspec.ValidationError:
        issues += _payload_issues(payload, kind)
    for name in refs:
        if name in payload:
            issues += _payload_ref_issues(payload[name], f"$.payload.{name}")
    return issues


def _timestamp_issue(text: str, shape: Shape) -> Issue:
    clean = redact_text(text)[0]
    excerpt = clean if len(clean) <= _EXCERPT_CHARACTERS else f"{clean[:_EXCERPT_CHARACTERS]}…"
    message = f"expected a time such as 2026-06-10T00:00:00Z (RFC 3339), got {excerpt!r}"
    return Issue("schema_mismatch", f"$.{wire_name(shape, 'createdAt')}", message)


def rebase_issues(issues: list[Issue], path: str) -> list[Issue]:
    """The issues of one fact, as issues of the stream or fixture in which it stands at `path`."""
    if path == "$":
        return issues
    return [Issue(issue.code, path + issue.path[1:], issue.message) for issue in issues]


def _unknown_class_issue(event_class: str, shape: Shape) -> Issue:
    path = f"$.{wire_name(shape, 'eventClass')}"
    if event_class in LEGACY_TERMINALS:
        message = (
            f"{event_class!r} is a legacy terminal; "
            "use turn.completed, turn.failed or turn.canceled"
        )
        return Issue("schema_mismatch", path, message)
    name = redact_text(event_class)[0]
    return Issue("unknown_event_type", path, f"{name!r} is not in the vocabulary")


def _missing_field_issue(field: RequiredField, fact: Fact) -> Issue:
    return Issue(
        "missing_scope_id", f"$.{field.path}", f"{fact.event_class} needs {field.expected}"
    )


def _payload_issues(payload: dict[str, Any], expected: type[Payload]) -> list[Issue]:
    return [
        issue
        for field in msgspec.structs.fields(expected)
        for issue in type_mismatches(
            payload.get(field.encode_name), field.type, f"$.payload.{field.encode_name}"
        )
    ]


def secret_issues(fact: Fact, shape: Shape = "facts") -> list[Issue]:
    """Keys that name a secret and values that are one, wherever the fact holds them."""
    findings = find_in_value(fact.payload, "$.payload") if fact.payload else []
    if fact.extra:
        findings = [*findings, *find_in_value(fact.extra, "$")]
    issues = [
        Issue("secret_leak_risk", finding.path, f"looks like a secret ({finding.rule})")
        for finding in findings
    ]
    for name, text in (("title", fact.title), ("detail", fact.detail)):
        if text and may_hold_secret(text):
            issues += [
                Issue("secret_leak_risk", f"$.{name}", f"looks like a secret (value:{found.rule})")
                for found in find_secrets(text)
            ]
    return issues + name_issues(fact, shape)


_TEXT_FIELDS: Final = tuple(
    (field.name, field.encode_name)
    for field in msgspec.structs.fields(Fact)
    if field.type in (str, str | None)
)
"""Attribute and wire name of each field that is a text, an id, a name or a time."""

NAME_FIELDS: Final = {
    attribute: name for attribute, name in _TEXT_FIELDS if attribute not in ("title", "detail")
}
"""Attribute → wire name of each field that is an id, a name or a time."""

_OWN_ID: Final = re.compile(r"[a-z]{1,8}_[0-7][0-9A-HJKMNP-TV-Z]{25}")
"""The form of most ids, too short for any token; they need no search."""

_SHARED: Final = tuple(name for name in NAME_FIELDS if name not in ("id", "created_at"))
_shared_names = attrgetter(*_SHARED)


def name_issues(fact: Fact, shape: Shape = "facts") -> list[Issue]:
    """Secrets in ids and other names. A name that was replaced would name something else, so the
    sender has to choose another one.
    """
    rules = dict(_find_in_names(_shared_names(fact)))
    own = _OWN_ID.fullmatch(fact.id)
    if own is None and may_hold_secret(fact.id) and (found := find_secrets(fact.id)):
        rules["id"] = found[0].rule
    return [
        Issue(
            "secret_leak_risk",
            f"$.{wire_name(shape, NAME_FIELDS[attribute])}",
            f"a name that looks like a secret (value:{rule}); names are not redacted, so use "
            "another one",
        )
        for attribute, rule in rules.items()
    ]


class NameCheck:
    """`name_issues` for one fact after the other; a name that the fact before it has too, as most
    of one turn are, is not searched again.
    """

    def __init__(self) -> None:
        self._clean: tuple[str | None, ...] = (None,) * len(_SHARED)

    def find_issues(self, fact: Fact, shape: Shape) -> list[Issue]:
        """Secrets in the names of the next fact."""
        names, clean = _shared_names(fact), self._clean
        if names == clean:
            return name_issues(fact, shape) if may_hold_secret(fact.id) else []
        other = (name for name, before in zip(names, clean, strict=True) if name != before)
        if any(map(may_hold_secret, filter(None, (fact.id, *other)))) and (
            issues := name_issues(fact, shape)
        ):
            return issues
        self._clean = names
        return []


@lru_cache(maxsize=1024)
def _find_in_names(names: tuple[str | None, ...]) -> tuple[tuple[str, str], ...]:
    """Attribute and rule of each name that holds a secret; facts of one turn share most names."""
    return tuple(
        (attribute, found[0].rule)
        for attribute, name in zip(_SHARED, names, strict=True)
        if name is not None and may_hold_secret(name) and (found := find_secrets(name))
    )


def _size_issues(fact: Fact, shape: Shape, wire_bytes: int | None) -> list[Issue]:
    issues: list[Issue] = []
    if wire_bytes is None or wire_bytes > PAYLOAD_CHARACTERS // _REWRITE_FACTOR:
        for step, value in _inline_values(fact, shape):
            size = json_characters(value)
            if size > PAYLOAD_CHARACTERS:
                message = f"{size} characters of JSON, at most {PAYLOAD_CHARACTERS} travel inline"
                issues.append(Issue("large_payload_inline", f"${step}", message))
    issues += _preview_issues(fact.payload, "$.payload")
    return issues + _preview_issues(fact.extra, "$") if fact.extra else issues


def _inline_values(fact: Fact, shape: Shape) -> Iterator[tuple[str, object]]:
    """Everything of a fact that can grow, by its step in a path."""
    yield ".payload", fact.payload
    for attribute, name in _TEXT_FIELDS:
        text = getattr(fact, attribute)
        if text is not None and len(text) * _REWRITE_FACTOR > PAYLOAD_CHARACTERS:
            yield f".{wire_name(shape, name)}", text
    for attribute, name in REF_LISTS.items():
        if getattr(fact, attribute):
            yield f".{name}", list(getattr(fact, attribute))
    for key, value in fact.extra.items():
        yield path_step(redact_text(key)[0]), value


def _preview_issues(value: object, path: str) -> list[Issue]:
    """Previews of refs over the limit, at any depth (which is bounded where JSON is decoded). What
    else is called a preview is some tool's word for its own.
    """
    issues: list[Issue] = []
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        previews = "preview" if isinstance(fields.get("ref"), str) else None
        for key, item in fields.items():
            if key == previews and isinstance(item, str) and len(item) > PREVIEW_CHARACTERS:
                message = f"{len(item)} characters, at most {PREVIEW_CHARACTERS} in a preview"
                issues.append(Issue("large_payload_inline", f"{path}.preview", message))
            elif not isinstance(item, str):
                issues += _preview_issues(item, path + path_step(key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            issues += _preview_issues(item, f"{path}[{index}]")
    return issues


def _payload_ref_issues(ref: object, path: str) -> list[Issue]:
    """What is wrong with a ref in a payload, where secrets are looked for anyway."""
    if isinstance(ref, dict):
        fields = cast("dict[str, object]", ref)
        return _payload_ref_issues(fields.get("ref"), f"{path}.ref")
    issue = ref_issue(ref, path) if isinstance(ref, str) else None
    return [issue] if issue and issue.code != "secret_leak_risk" else []


def _ref_issues(fact: Fact) -> list[Issue]:
    issues = (
        ref_issue(ref, f"$.{name}[{index}]")
        for attribute, name in REF_LISTS.items()
        for index, ref in enumerate(getattr(fact, attribute))
    )
    return [issue for issue in issues if issue is not None]

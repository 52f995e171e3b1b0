"""Conformance fixtures: a recorded stream together with what a projection must make of it.

A fixture is one JSON document (`agent-ui-fixture/v0.1`). Inspecting it inspects its stream, with
paths into the document, and its own fields.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from factwire.facts.inspection import Item, StreamInspector
from factwire.facts.issues import InvalidFacts, Issue, is_valid
from factwire.facts.lifecycle import VerifierMode
from factwire.facts.mismatches import mismatches
from factwire.facts.shapes import AnyShape

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
    value: Mapping[str, Any], shape: AnyShape = "auto", mode: VerifierMode = "collect"
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
            issues += mismatches(value[name], field.type, f"$.{name}")
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

"""Validity: each fact by itself, the order of all, and what may follow what.

The rules are those of `factwire.facts`; here each broken one is put under the requirement that it
breaks, with the fact that shows it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from factwire.conformance.case import Finding
from factwire.conformance.streams.stream import Read, Stream
from factwire.facts import (
    INFORMATION,
    Fact,
    Issue,
    Item,
    StreamInspector,
    UnreadableInput,
    decode_json,
    read_item,
    write_fact,
)

_REQUIREMENTS: Final[dict[str, str]] = {
    "schema_mismatch": "stream.schema",
    "missing_scope_id": "stream.scope-ids",
    "sequence_gap": "stream.sequence",
    "secret_leak_risk": "stream.secrets",
    "large_payload_inline": "stream.size",
    "sequence_violation": "stream.lifecycle",
}
_VIOLATIONS: Final = {
    "duplicate_event_id": "stream.ids",
    "turn_terminal_repeated": "stream.terminal",
}
"""Violations of the lifecycle that have a requirement of their own."""

_INDEX: Final = re.compile(r"\[(\d+)\]")


def read_stream(stream: Stream) -> tuple[Read, list[Finding]]:
    """The facts of a stream, and every rule that one of them breaks."""
    inspector = StreamInspector(gaps_declared=stream.gaps_declared)
    facts: list[Fact] = []
    findings: list[Finding] = []
    for index, given in enumerate(stream.items):
        item, issues = _readable(given, index, typed=stream.typed)
        if item is not None:
            issues += inspector.feed(item)
            fact = read_item(item).fact
            facts += [] if fact is None else [fact]
        else:
            inspector.facts += 1
        findings += _findings(issues, stream)
    findings += _findings(inspector.finish(), stream)
    return Read(stream=stream, facts=tuple(facts)), findings


def _readable(item: object, index: int, *, typed: bool) -> tuple[Item | None, list[Issue]]:
    """The item as something that can be inspected, or why it is no fact whatever else it is."""
    message = f"expected a fact, got {type(item).__name__}"
    if isinstance(item, Fact):
        issues = _type_issues(item)
        located = [Issue(i.code, f"$[{index}]{i.path[1:]}", i.message) for i in issues]
        return (None if issues else item), located
    if isinstance(item, (bytes, str)) and not typed:
        try:
            decode_json(item)
        except UnreadableInput as error:
            return None, [Issue("schema_mismatch", f"$[{index}]", error.reason)]
        return item, []
    if isinstance(item, Mapping) and not typed:
        return cast("Mapping[str, Any]", item), []
    return None, [Issue("schema_mismatch", f"$[{index}]", message)]


def _type_issues(fact: Fact) -> list[Issue]:
    """A fact made in Python is checked by nobody; as JSON it is. A runtime gives its sequence."""
    try:
        written = write_fact(fact)
    except (TypeError, ValueError, RecursionError) as error:
        return [Issue("schema_mismatch", "$", f"cannot be written as JSON: {error}")]
    if written.get("sequence") is None:
        written["sequence"] = 0
    return read_item(written, "facts").issues


def _findings(issues: list[Issue], stream: Stream) -> Iterator[Finding]:
    for issue in issues:
        if issue.code not in INFORMATION:
            yield _finding(issue, stream)


def _finding(issue: Issue, stream: Stream) -> Finding:
    place = _INDEX.search(issue.path)
    shown = shown_item(stream.items[int(place[1])]) if place else None
    code, _, _ = issue.message.partition(":")
    return Finding(
        requirement=_VIOLATIONS.get(code, _REQUIREMENTS[issue.code]),
        message=f"{stream.prefix}{issue.message}",
        level="facts",
        fact_id=_id_of(shown),
        fact=shown,
        path=issue.path,
    )


def shown_item(item: object) -> dict[str, Any] | None:
    """An item as an object to show, where it is one."""
    if isinstance(item, Fact):
        try:
            return write_fact(item)
        except (TypeError, ValueError, RecursionError):
            return {"id": str(item.id), "eventClass": str(item.event_class)}
    if isinstance(item, (bytes, str)):
        try:
            item = decode_json(item)
        except UnreadableInput:
            return None
    return dict(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else None


def _id_of(shown: dict[str, Any] | None) -> str | None:
    found = None if shown is None else shown.get("id", shown.get("eventId"))
    return found if isinstance(found, str) else None

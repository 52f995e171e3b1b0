"""Streams that a test writes itself."""

from typing import Any, Final

import msgspec

from factwire.facts import Fact, Issue, encode_fact, inspect_stream, is_valid, verify
from factwire.sources import convert_recording, find_source


def facts_from(name: str, *items: dict[str, Any]) -> list[Fact]:
    """The facts of these items of a source, which are valid."""
    source = find_source(name)
    encoded = [msgspec.json.encode(item) for item in items]
    events = source.framing == "events"
    lines = [b"data: " + data + b"\n\n" if events else data + b"\n" for data in encoded]
    facts = list(
        convert_recording(source, b"".join(lines).splitlines(keepends=True), thread_id="t")
    )
    assert is_valid(find_defects(facts))
    return facts


_BREACH: Final = "tool_result_after_denial"
"""What an agent did although it was denied; a recording of that is converted as it was."""


def find_defects(facts: list[Fact]) -> list[Issue]:
    """The issues of converted facts that are no breach which the recording itself reports."""
    issues = inspect_stream([encode_fact(fact) for fact in facts])
    assert [each for each in verify(facts) if each.code != _BREACH] == []
    return [issue for issue in issues if not issue.message.startswith(_BREACH)]


def classes(facts: list[Fact], prefix: str) -> list[str]:
    """The classes of the facts of a family, in order."""
    return [name for fact in facts if (name := fact.event_class or "").startswith(prefix)]

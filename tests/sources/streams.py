"""Streams that a test writes itself."""

from typing import Any

import msgspec

from factwire.facts import Fact, encode_fact, inspect_stream, is_valid, verify
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
    assert is_valid(inspect_stream([encode_fact(fact) for fact in facts]))
    assert verify(facts) == []
    return facts


def classes(facts: list[Fact], prefix: str) -> list[str]:
    """The classes of the facts of a family, in order."""
    return [name for fact in facts if (name := fact.event_class or "").startswith(prefix)]

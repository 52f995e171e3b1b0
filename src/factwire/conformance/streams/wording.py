"""Wording: what streamed as a part is its final text, under one id.

The final text replaces what streamed, so a reader would never see that they differ; but a screen
that shows both, or the one after the other, was told two things. The same text under two ids is one
message that changed its name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from factwire.conformance.case import Finding, broken
from factwire.conformance.streams.stream import Read
from factwire.facts import Fact, id_of, redact_text

_EXCERPT: Final = 60
_SNAPSHOTS: Final = frozenset({"messages.snapshot", "snapshot.updated", "state.snapshot"})

Key = tuple[str | None, str | None, str | None, str | None]


class _Part(msgspec.Struct):
    """A part as it streams. `holes` is how many gaps there were when it began."""

    pieces: list[str] = msgspec.field(default_factory=list[str])
    holes: int = 0
    final: Fact | None = None
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


Speakers = dict[tuple[str | None, str | None], dict[Key, _Part]]
"""Turn and subagent → the parts in which they speak."""


def final_texts(read: Read) -> Iterator[Finding]:
    """Final texts that are not what streamed; of one that lost pieces on the way nobody knows."""
    parts: dict[Key, _Part] = {}
    holes = _Holes()
    for fact in read.facts:
        before = holes.count
        holes.feed(fact)
        if not _is_text(fact):
            continue
        part = parts.setdefault(_key(fact), _Part(holes=before))
        if fact.event_class == "model.delta":
            _streamed(part, fact)
        else:
            whole = part.holes == holes.count
            yield from _ended(part, fact, read.stream.prefix) if whole else ()
            part.closed, part.holes = True, holes.count


def stable_ids(read: Read) -> Iterator[Finding]:
    """Text that streamed under one id and became final under another."""
    speakers: Speakers = {}
    for fact in read.facts:
        if not _is_text(fact):
            yield from _renamed_in_snapshot(fact, speakers, read.stream.prefix)
            continue
        key = _key(fact)
        parts = speakers.setdefault(key[:2], {})
        part = parts.setdefault(key, _Part())
        if fact.event_class == "model.delta":
            _streamed(part, fact)
        else:
            part.final, part.closed = fact, True
            yield from _renamed(part, fact, parts, read.stream.prefix)


class _Holes:
    """Counts places at which facts are missing, or are said to be."""

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[str | None, int] = {}

    def feed(self, fact: Fact) -> None:
        thread, sequence = fact.thread_id, fact.sequence
        last = self._last.get(thread)
        if sequence is not None:
            self.count += last is not None and sequence != last + 1
            self._last[thread] = sequence
        self.count += fact.event_class == "stream.gap.detected"


def _key(fact: Fact) -> Key:
    ids = ("turnId", "subagentId", "messageId", "partId")
    turn, subagent, message, part = (id_of(fact, name) for name in ids)
    return turn, subagent, message, part


def _is_text(fact: Fact) -> bool:
    return fact.event_class in ("model.delta", "model.completed")


def _streamed(part: _Part, fact: Fact) -> None:
    delta, whole = fact.payload.get("delta"), fact.payload.get("text")
    if part.closed:
        # Text behind a final text is the message's next text.
        part.pieces, part.closed, part.final = [], False, None
    if isinstance(delta, str):
        part.pieces.append(delta)
    elif isinstance(whole, str):
        part.pieces = [whole]


def _ended(part: _Part, fact: Fact, prefix: str) -> Iterator[Finding]:
    text = fact.payload.get("text")
    if isinstance(text, str) and part.pieces and not part.closed and part.text != text:
        message = f"{prefix}{_excerpt(part.text)} streamed, and {_excerpt(text)} is final"
        path = "$.payload.text"
        yield broken("screen.final-text", message, level="projection", fact=fact, path=path)
    elif part.closed and isinstance(text, str) and text:
        message = f"{prefix}{_excerpt(text)} is final for the second time"
        yield broken("screen.final-text", message, level="projection", fact=fact)


def _renamed(part: _Part, fact: Fact, parts: dict[Key, _Part], prefix: str) -> Iterator[Finding]:
    text = fact.payload.get("text")
    if not isinstance(text, str) or not text or part.pieces:
        return
    for key, other in parts.items():
        if other is not part and not other.closed and other.text == text:
            message = (
                f"{prefix}{_excerpt(text)} streamed as {key[2]} and is final as {_key(fact)[2]}"
            )
            yield broken("screen.stable-ids", message, level="projection", fact=fact)


def _renamed_in_snapshot(fact: Fact, speakers: Speakers, prefix: str) -> Iterator[Finding]:
    rows: object = fact.payload.get("messages") if fact.event_class in _SNAPSHOTS else None
    if not isinstance(rows, list):
        return
    parts = {key: part for own in speakers.values() for key, part in own.items()}
    said = {_text_of(part): key[2] for key, part in parts.items() if key[2] and _text_of(part)}
    known = {key[2] for key in parts}
    for row in cast("list[object]", rows):
        if not isinstance(row, Mapping):
            continue
        fields = cast("Mapping[str, Any]", row)
        given, text = fields.get("messageId", fields.get("id")), fields.get("text")
        if given not in known and isinstance(text, str) and text in said:
            message = f"{prefix}{_excerpt(text)} was {said[text]} and is {given} in a snapshot"
            yield broken("screen.stable-ids", message, level="projection", fact=fact)


def _text_of(part: _Part) -> str:
    final = part.final.payload.get("text") if part.final is not None else None
    return final if isinstance(final, str) else part.text


def _excerpt(text: str) -> str:
    """The beginning of a text. Half a secret is no longer known for one: they go first."""
    shown = redact_text(text)[0]
    return repr(shown if len(shown) <= _EXCERPT else f"{shown[:_EXCERPT]}…")

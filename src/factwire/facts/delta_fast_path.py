"""Text that arrives in pieces, and the fast path for a piece that goes on with the last one.

The rows of the classes say which carry pieces and what tells two texts apart. Most of a stream is
one text growing by a piece a fact: a piece that repeats the one before it in all that rules and
redaction look at needs only its text looked at.
"""

from typing import Final

from factwire.facts.classes.class_tables import TEXT_PIECES
from factwire.facts.classes.specification import MESSAGE_IDS, TextPieces
from factwire.facts.fact import Fact, id_of

TextKey = tuple[str | None, str, tuple[str | None, ...], str]
"""One text that arrives in pieces: its turn, family and ids, and the stream within them."""


def text_key(fact: Fact, pieces: TextPieces) -> TextKey:
    payload = fact.payload
    field = payload.get(pieces.field, "") if pieces.field else ""
    if pieces.ids is MESSAGE_IDS:
        ids = (
            fact.message_id or payload.get("messageId") or payload.get("message_id"),
            fact.part_id or payload.get("partId") or payload.get("part_id"),
        )
    else:
        ids = tuple([id_of(fact, name) for name in pieces.ids])
    return fact.turn_id or id_of(fact, "turnId"), pieces.family, ids, str(field)


def is_end_of_text(fact: Fact, pieces: TextPieces, key: TextKey) -> bool:
    """Whether a closing fact is about this text; it may name fewer ids than the pieces did."""
    turn, family, ids, _ = key
    if family != pieces.family or turn != id_of(fact, "turnId"):
        return False
    ids_named = (id_of(fact, name) for name in pieces.ids)
    return all(name is None or name == known for name, known in zip(ids_named, ids, strict=True))


_SAME: Final = (
    "event_class",
    "thread_id",
    "turn_id",
    "title",
    "message_id",
    "part_id",
    "tool_call_id",
    "process_id",
    "detail",
    "ref_ids",
    "artifact_refs",
    "evidence_refs",
)
"""What the pieces of one text share; the last four are None or empty in a plain piece."""


class DeltaPattern:
    """The text that grew last, and what its pieces have in common."""

    __slots__ = ("_entries", "_same", "_size", "_text", "key")

    def __init__(self, fact: Fact, text: str, key: TextKey) -> None:
        self.key = key
        self._text = text
        self._size = len(fact.payload)
        self._same = tuple([getattr(fact, name) for name in _SAME])
        self._entries = tuple([entry for entry in fact.payload.items() if entry[0] != text])

    def next_piece(self, fact: Fact) -> str | None:
        """The text of a fact that is the next piece; None for any other fact."""
        payload = fact.payload
        same = (
            fact.event_class,
            fact.thread_id,
            fact.turn_id,
            fact.title,
            fact.message_id,
            fact.part_id,
            fact.tool_call_id,
            fact.process_id,
            fact.detail,
            fact.ref_ids,
            fact.artifact_refs,
            fact.evidence_refs,
        )
        if same != self._same or len(payload) != self._size or fact.extra:
            return None
        for key, value in self._entries:
            if payload.get(key) != value:
                return None
        text = payload.get(self._text)
        return text if text.__class__ is str else None


def delta_pattern_of(fact: Fact) -> DeltaPattern | None:
    """What the next piece of the same text will look like, if this fact is a plain piece."""
    pieces = TEXT_PIECES.get(fact.event_class or "")
    if pieces is None or fact.detail or fact.extra or _has_refs(fact):
        return None
    if not all(isinstance(value, str) for value in fact.payload.values()):
        return None
    return DeltaPattern(fact, pieces.key, text_key(fact, pieces))


def _has_refs(fact: Fact) -> bool:
    return bool(fact.ref_ids or fact.artifact_refs or fact.evidence_refs)

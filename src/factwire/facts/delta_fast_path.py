"""Text that arrives in pieces, and the fast path for a piece that goes on with the last one.

The rows of the classes say which carry pieces and what tells two texts apart; in a fact of any
other class, a text called `delta` is a piece, too. Most of a stream is one text growing by a piece
a fact: a piece that repeats the one before it in all that rules and redaction look at needs only
its text looked at.
"""

from typing import Final

from factwire.facts.classes.class_tables import TEXT_ENDS, TEXT_PIECES
from factwire.facts.classes.specification import MESSAGE_IDS, TextEnd, TextPieces
from factwire.facts.fact import ATTRIBUTES, Fact, id_of, snake_case
from factwire.facts.json_values import text_at

TextIds = tuple[str | None, ...]


TextKey = tuple[str | None, str, TextIds, str, str, str]
"""One text that arrives in pieces: its turn, family and ids, the stream within them, and the class
and payload key of its pieces. A plain tuple, since one is made for most facts of a stream.
"""

KEY_TURN: Final = 0
KEY_FAMILY: Final = 1
KEY_IDS: Final = 2
KEY_NAME: Final = 5

INCREMENT: Final = "delta"
"""What a piece is called where its class does not say; also what a closing fact calls the rest of
a text.
"""

_OTHER_PIECES: Final = TextPieces(
    "other",
    INCREMENT,
    (*MESSAGE_IDS, "toolCallId", "processId", "taskId", "subagentId", "actionId", "artifactId"),
    "stream",
)


def pieces_of(fact: Fact) -> TextPieces | None:
    """How a fact carries a piece of a text; None for one that carries none."""
    event_class = fact.event_class or ""
    pieces = TEXT_PIECES.get(event_class)
    if pieces is None and INCREMENT in fact.payload and event_class not in TEXT_ENDS:
        return _OTHER_PIECES
    return pieces


def piece_names(fact: Fact, pieces: TextPieces) -> tuple[str, ...]:
    """The payload keys under which the fact has a piece."""
    payload = fact.payload
    if not pieces.other_keys:
        return (pieces.key,) if isinstance(payload.get(pieces.key), str) else ()
    return tuple([name for name in pieces.keys if isinstance(payload.get(name), str)])


def text_key(fact: Fact, pieces: TextPieces, name: str, event_class: str | None = None) -> TextKey:
    """The text that the piece under a payload key goes on with; a fact that closes a text names the
    class of its pieces.
    """
    payload = fact.payload
    field = payload.get(pieces.field, "") if pieces.field else ""
    if pieces.ids is MESSAGE_IDS:
        ids = (
            fact.message_id or text_at(payload, "messageId", "message_id"),
            fact.part_id or text_at(payload, "partId", "part_id"),
        )
    else:
        ids = _ids_of(fact, pieces)
    turn = fact.turn_id or id_of(fact, "turnId")
    return turn, pieces.family, ids, str(field), event_class or fact.event_class or "", name


def _ids_of(fact: Fact, pieces: TextPieces) -> TextIds:
    return tuple(
        [
            id_of(fact, name)
            if name in ATTRIBUTES
            else text_at(fact.payload, name, snake_case(name))
            for name in pieces.ids
        ]
    )


def ends_text(fact: Fact, end: TextEnd, key: TextKey) -> bool:
    """Whether a closing fact is about this text; it may name fewer ids than the pieces did."""
    pieces = TEXT_PIECES[end.pieces]
    if key[KEY_FAMILY] != pieces.family or key[KEY_TURN] != id_of(fact, "turnId"):
        return False
    if key[KEY_NAME] in end.whole_keys:
        return False
    named = zip(_ids_of(fact, pieces), key[KEY_IDS], strict=True)
    return all(name is None or name == of_pieces for name, of_pieces in named)


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
    name = pieces.key
    if pieces.other_keys:
        names = piece_names(fact, pieces)
        if len(names) != 1:
            return None
        name = names[0]
    return DeltaPattern(fact, name, text_key(fact, pieces, name))


def _has_refs(fact: Fact) -> bool:
    return bool(fact.ref_ids or fact.artifact_refs or fact.evidence_refs)

"""What is said about an event class: one row, and what the row's family says for all of its rows.

A row is the one place where a class is defined: where it shows, which UI classes it becomes, what
its payload is and must hold, what it opens, uses and closes, whether it carries or ends a text, and
whether it ends its turn. Everything that is looked up by class (`class_tables`) follows from rows.
A row says only what the class alone can know; `unknown` stands where that depends on the fact.
"""

from typing import Final, Literal

import msgspec

from factwire.facts.classes.payloads import Payload
from factwire.facts.classes.required_fields import RequiredField
from factwire.facts.vocabulary import OWNERS, PERSISTENCE, PHASES, SCOPES, SURFACES

TurnOutcome = Literal["completed", "failed", "canceled"]

_COLUMNS: Final = (OWNERS, SCOPES, PHASES, SURFACES, PERSISTENCE)


class MoveSubject(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is opened and closed: where its id stands, and the violation of a turn that
    ends while it is open. `payload_ids` come before the correlation id.
    """

    correlation_id: str
    unclosed: str
    payload_ids: tuple[str, ...] = ()


SUBJECTS: Final = {
    "tool": MoveSubject(correlation_id="toolCallId", unclosed="tool_unclosed_at_turn_end"),
    "patch": MoveSubject(
        correlation_id="toolCallId",
        unclosed="patch_unclosed_at_turn_end",
        payload_ids=("patchId", "patch_id"),
    ),
    "command": MoveSubject(
        correlation_id="toolCallId",
        unclosed="command_unclosed_at_turn_end",
        payload_ids=("commandId", "command_id"),
    ),
    "test": MoveSubject(
        correlation_id="toolCallId",
        unclosed="test_unclosed_at_turn_end",
        payload_ids=("testRunId", "test_run_id"),
    ),
    "action": MoveSubject(correlation_id="actionId", unclosed="action_unresolved_at_turn_end"),
}
"""Everything that can be open, in the order in which the end of a turn misses it."""


class Move(msgspec.Struct, frozen=True, gc=False):
    """What a class does to one subject; `violation` is the code if it cannot, and None where the
    verifier lets it pass.
    """

    subject: str
    does: Literal["open", "close", "use"]
    violation: str | None = None


class TextPieces(msgspec.Struct, frozen=True):
    """The pieces of one kind of text: where they stand, and what tells two texts of a kind apart.

    A piece may also stand under one of `other_keys`. The last three are for the journal, which
    drops pieces once a fact holds the whole text: what else, of ids and of payload fields, both
    must have in common, and the payload fields that keep a piece, because they say something that
    the whole does not.
    """

    family: str
    key: str
    ids: tuple[str, ...]
    field: str = ""
    other_keys: tuple[str, ...] = ()
    also_same: tuple[str, ...] = ()
    same_fields: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Every payload key under which a piece may stand."""
        return (self.key, *self.other_keys)


MESSAGE_IDS: Final = ("messageId", "partId")
"""What tells one streamed text of a model from another."""


class TextEnd(msgspec.Struct, frozen=True):
    """A class that ends a text: of which pieces, the key under which it may bring the whole, and
    whether the pieces may be dropped once it has. Under the keys of the pieces it may bring the
    last one, but for `whole_keys`, which hold something whole.
    """

    pieces: str
    key: str
    replaces_pieces: bool = False
    whole_keys: tuple[str, ...] = ()


class Family(msgspec.Struct, frozen=True):
    """What holds for every class that begins with the same word, known or not.

    `is_execution`: nothing of it may come after the end of its turn. `names_turn`: as a runtime
    event it must name its thread and turn. `ui_fallback`: what a fact becomes for a UI when it
    lacks what its UI class requires.
    """

    name: str
    kind: str = "state"
    payload: type[Payload] | None = None
    requires: tuple[RequiredField, ...] = ()
    is_execution: bool = False
    names_turn: bool = False
    ui_fallback: str = "diagnostic.changed"


class EventClass(msgspec.Struct, frozen=True, kw_only=True):
    """One class: what it says about every fact that carries it.

    `payload` is the family's where it is None. `requires` comes on top of what the family requires,
    unless `family_exempt`. `is_execution` is for a class whose family is none. `streams`: it comes
    in great numbers. `aliases` are names that are replaced by this one when a fact is read.
    """

    name: str
    owner: str
    scope: str
    phase: str
    surface: str
    persistence: str
    ui: tuple[str, ...] = ()
    payload: type[Payload] | None = None
    requires: tuple[RequiredField, ...] = ()
    family_exempt: bool = False
    move: Move | None = None
    pieces: TextPieces | None = None
    ends_text: TextEnd | None = None
    ends_turn: TurnOutcome | None = None
    is_execution: bool = False
    settles_gaps: bool = False
    streams: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The first word of the class."""
        return self.name.partition(".")[0]


def row(
    name: str,
    classification: str,
    ui: str = "",
    *,
    payload: type[Payload] | None = None,
    requires: tuple[RequiredField, ...] = (),
    family_exempt: bool = False,
    move: Move | None = None,
    pieces: TextPieces | None = None,
    ends_text: TextEnd | None = None,
    ends_turn: TurnOutcome | None = None,
    is_execution: bool = False,
    settles_gaps: bool = False,
    streams: bool = False,
    aliases: tuple[str, ...] = (),
) -> EventClass:
    """A class as a line of a table: its name, `owner scope phase surface persistence`, its UI
    classes, and what else there is to say.
    """
    cells = classification.split()
    for cell, column in zip(cells, _COLUMNS, strict=True):
        if cell not in column:
            raise ValueError(f"{name}: {cell!r} is not in the vocabulary")
    owner, scope, phase, surface, persistence = cells
    return EventClass(
        name=name,
        owner=owner,
        scope=scope,
        phase=phase,
        surface=surface,
        persistence=persistence,
        ui=tuple(ui.split()),
        payload=payload,
        requires=requires,
        family_exempt=family_exempt,
        move=move,
        pieces=pieces,
        ends_text=ends_text,
        ends_turn=ends_turn,
        is_execution=is_execution,
        settles_gaps=settles_gaps,
        streams=streams or pieces is not None,
        aliases=aliases,
    )


def opens(subject: str, violation: str) -> Move:
    """The move of a class that begins something; `violation` is when it has begun already."""
    return Move(subject, "open", violation)


def closes(subject: str, violation: str) -> Move:
    """The move of a class that ends something; `violation` is when it never began."""
    return Move(subject, "close", violation)


def uses(subject: str, violation: str | None = None) -> Move:
    """The move of a class about something that must be open; the verifier lets most pass."""
    return Move(subject, "use", violation)

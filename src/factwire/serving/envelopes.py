"""Envelopes: a fact as an event, at the fact's own place in the journal, and the frames beside it.

An event's id is its fact's, in a form that begins with `evt_`; `fact_id_of` leads back. A mapping
says which type and payload a fact has in a view, and declares the types that it may give. A field
that the fact does not have is absent, never guessed. A fact without a trace id is traced with its
run: the first 32 hex digits of the SHA-256 of the run id, else of the thread id, else of the fact
id. The ids of an envelope's scope are derived here and nowhere else: a filter compares these ids,
so that it returns exactly the envelopes that name what it asks for. What streams send beside
envelopes has a reserved type, and no fact's class passes for one.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factwire.facts import Fact
from factwire.facts.fact import PAYLOAD_NAMES, id_in_payload
from factwire.facts.json_values import text_at
from factwire.facts.resources import EventPayload
from factwire.facts.vocabulary import UNKNOWN
from factwire.journal.filter import BESIDE_THREAD
from factwire.projection import Operation, ProjectionState
from factwire.projection.messages import user_message_id
from factwire.projection.payload_fields import other_id, queued_turn_of, subagent_of, turn_of
from factwire.runtime.mint import new_id, run_of

View = Literal["runtime", "conversation"]
VIEWS: Final[tuple[View, ...]] = ("runtime", "conversation")
TypedPayload = tuple[str, EventPayload]
"""A type and its payload."""


class EventMapping(NamedTuple):
    """What tells a fact, and the types that it may give."""

    to_event: Callable[[Fact], TypedPayload | None]
    types: tuple[str, ...]


class ViewMappings(NamedTuple):
    """The words of a class, one a view."""

    runtime: EventMapping
    conversation: EventMapping


MappingTable = Mapping[str, ViewMappings]
"""The words of each class."""


def map_both_views(to_event: Callable[[Fact], TypedPayload | None], *types: str) -> ViewMappings:
    """The same word in both views."""
    mapping = EventMapping(to_event, types)
    return ViewMappings(mapping, mapping)


VERSION: Final = "v1"


class Scope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """What an event is about; ids that its fact does not have are absent."""

    project_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    item_id: str | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """One event. `id` leads to its fact, `seq` is the fact's, `cursor` is where to resume after it;
    `type` decides what `payload` is. `sent_at` is the fact's own time, which orders nothing.
    """

    version: Literal["v1"]
    id: str
    seq: int
    type: str
    scope: Scope
    trace_id: str
    sent_at: str
    payload: Any
    cursor: str


class StreamFrame(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """The root of the frames that a `type` tells apart."""


class Checkpoint(StreamFrame, frozen=True, kw_only=True, tag="checkpoint"):
    """Nothing of interest until here: a filtered stream may be resumed from this cursor."""

    cursor: str
    seq: int


class ErrorDetails(EventPayload, frozen=True):
    """What to do about an error: take the snapshot at `snapshot_url`, resume at `as_of_cursor`."""

    snapshot_required: bool | None = None
    snapshot_url: str | None = None
    as_of_cursor: str | None = None


class ErrorPayload(EventPayload, frozen=True):
    """Why a stream cannot go on; `code` is stable, `message` is for people."""

    code: str
    message: str
    trace_id: str
    details: ErrorDetails | None = None


class ErrorEvent(StreamFrame, frozen=True, kw_only=True, tag="error"):
    """An error, as an envelope of its own: no fact has its `id`, and `seq` is the last one of the
    journal when it was sent. It has no cursor to resume from; the stream ends.
    """

    version: Literal["v1"]
    id: str
    seq: int
    scope: Scope
    trace_id: str
    sent_at: str
    payload: ErrorPayload


class FactFrame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A fact as it is stored, with its place."""

    cursor: str
    seq: int
    fact: Fact


class ProjectionSnapshot(StreamFrame, frozen=True, kw_only=True, tag="projection.snapshot"):
    """The whole state of a thread."""

    thread_id: str
    cursor: str
    state: ProjectionState


class ProjectionDelta(StreamFrame, frozen=True, kw_only=True, tag="projection.delta"):
    """What changed in the state since the frame before, to be carried out in order."""

    thread_id: str
    cursor: str
    operations: list[Operation]


def build_error_event(
    code: str,
    message: str,
    *,
    seq: int,
    trace_id: str,
    sent_at: str,
    scope: Scope,
    details: ErrorDetails | None = None,
) -> ErrorEvent:
    """The error that a stream ends with."""
    payload = ErrorPayload(code=code, message=message, trace_id=trace_id, details=details)
    return ErrorEvent(
        version=VERSION,
        id=new_id("evt"),
        seq=seq,
        scope=scope,
        trace_id=trace_id,
        sent_at=sent_at,
        payload=payload,
    )


def encode_frame(frame: Any) -> bytes:
    """A frame as it is sent."""
    return msgspec.json.encode(frame)


def to_percent(share: float | None) -> float | None:
    """A share of one, in hundredths."""
    hundredths = None if share is None else share * 100
    return hundredths if hundredths is not None and isfinite(hundredths) else None


_PREFIX: Final = "evt_"
_CODED: Final = "evt_~"
_UTC: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z"
).fullmatch
_TRACE_DIGITS: Final = 32


class EventIdInvalid(ValueError):
    """A text that is no event id of any fact."""

    code = "cursor_invalid"


def event_id_of(fact_id: str) -> str:
    """The id of a fact's envelope."""
    if fact_id.startswith(_PREFIX) and not fact_id.startswith(_CODED):
        return fact_id
    return _CODED + urlsafe_b64encode(fact_id.encode()).decode().rstrip("=")


def fact_id_of(event_id: str) -> str:
    """The id of the fact that an envelope was made of; raises `EventIdInvalid`."""
    if not event_id.startswith(_CODED):
        if event_id.startswith(_PREFIX):
            return event_id
        raise EventIdInvalid(f"expected an event id (evt_…), got {event_id[:80]!r}")
    coded = event_id[len(_CODED) :]
    try:
        fact_id = urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    except ValueError:
        fact_id = ""
    if not fact_id or event_id_of(fact_id) != event_id:
        raise EventIdInvalid(f"expected base64url of a fact id behind evt_~, got {event_id[:80]!r}")
    return fact_id


class ScopeIds(NamedTuple):
    """What an envelope is about, as far as its fact and the place of its thread show."""

    project_id: str | None
    conversation_id: str | None
    thread_id: str | None
    run_id: str | None


class ThreadPlace(NamedTuple):
    """The project and the conversation of a thread, each with the seq of the fact that named it."""

    project_id: str | None = None
    project_seq: int = 0
    conversation_id: str | None = None
    conversation_seq: int = 0


PlaceOf = Callable[[str], ThreadPlace | None]
"""The place of a thread, if it has one."""

_ABOUT_THREAD: Final = "aboutThread"
_NAMED_IN_PAYLOAD: Final = frozenset(
    {
        _ABOUT_THREAD,
        BESIDE_THREAD,
        *(
            key
            for name in ("projectId", "conversationId", "threadId")
            for key in PAYLOAD_NAMES[name]
        ),
    }
)


def has_no_place(_: str) -> ThreadPlace | None:
    """The place of a thread where nobody lists threads."""
    return None


def scope_ids_of(seq: int, fact: Fact, place_of: PlaceOf) -> ScopeIds:
    """The ids of the envelope of a fact: its own, else those of the place that its thread has had
    since an earlier fact.
    """
    project, conversation, thread = fact.project_id, fact.conversation_id, fact.thread_id
    about = thread
    if fact.payload and not _NAMED_IN_PAYLOAD.isdisjoint(fact.payload):
        project = project or id_in_payload(fact.payload, "projectId")
        conversation = conversation or id_in_payload(fact.payload, "conversationId")
        thread = thread or id_in_payload(fact.payload, "threadId")
        thread = thread or text_at(fact.payload, BESIDE_THREAD)
        about = thread or text_at(fact.payload, _ABOUT_THREAD)
    if about is not None and (project is None or conversation is None):
        place = place_of(about)
        if place is not None:
            if project is None and place.project_seq <= seq:
                project = place.project_id
            if conversation is None and place.conversation_seq <= seq:
                conversation = place.conversation_id
    return ScopeIds(project, conversation, thread, run_id_of(fact))


def run_id_of(fact: Fact) -> str | None:
    """The run that a fact is about: of a change of the queue, the run that is queued."""
    queued = queued_turn_of(fact) if fact.event_class == "queue.changed" else None
    if queued is not None and fact.turn_id not in (None, queued):
        return run_of(queued)
    if fact.run_id is not None:
        return fact.run_id
    named = other_id(fact, "runId", "run_id")
    if named is not None:
        return named
    turn = queued or turn_of(fact)
    return None if turn is None else run_of(turn)


def thread_id_of(fact: Fact) -> str | None:
    return fact.thread_id or other_id(fact, "threadId", "thread_id")


def message_id_of(fact: Fact) -> str:
    """The message that a fact speaks in, by the name that a projection has for it."""
    named = fact.message_id or other_id(fact, "messageId", "message_id")
    if named is not None:
        return named
    speaker, turn = subagent_of(fact), turn_of(fact) or "thread"
    return f"{turn}:{speaker}:answer" if speaker else f"{turn}:answer"


def part_id_of(fact: Fact) -> str | None:
    """The part of its message that a fact is about."""
    if len(fact.payload) == 1:
        # The one field of most pieces is their text, and no place to look for a name.
        return fact.part_id
    return other_id(fact, "partId", "part_id")


def speaker_of(fact: Fact) -> str | None:
    """The subagent that a text is by; none for the main agent."""
    return fact.subagent_id if len(fact.payload) == 1 else subagent_of(fact)


def item_id_of(fact: Fact) -> str:
    """The item that a text belongs to: its message, or a part of it that has a name."""
    if fact.item_id is not None:
        return fact.item_id
    part = part_id_of(fact)
    return message_id_of(fact) if part is None else f"{message_id_of(fact)}/{part}"


def user_item_id_of(fact: Fact) -> str:
    """The item that holds what a user asked in a turn."""
    named = fact.item_id or other_id(fact, "messageId", "message_id")
    return named or user_message_id(fact, subagent_of(fact))


@lru_cache(maxsize=1_024)
def derive_trace_id(name: str) -> str:
    """The trace of everything that goes by this name."""
    return sha256(name.encode()).hexdigest()[:_TRACE_DIGITS]


def sent_at(created_at: str) -> str:
    """The time of a fact in RFC 3339 UTC; `unknown` where it does not name a moment."""
    try:
        moment = datetime.fromisoformat(created_at)
        if _UTC(created_at):
            return created_at
        if moment.tzinfo is None:
            return UNKNOWN
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return UNKNOWN

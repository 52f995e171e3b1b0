"""Ids of envelopes: an event's id is its fact's, in a form that begins with `evt_`.

A fact id that begins so is the event id. Any other stands behind `evt_~` in base64url, and so does
one that begins with `evt_~` itself: two facts never share an event id, and `fact_id_of` leads back.
A fact without a trace id is traced with its run: the first 32 hex digits of the SHA-256 of the run
id, else of the thread id, else of the fact id.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final

from factwire.facts import Fact
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.reading import other_id, subagent_of, turn_of
from factwire.runtime.minting import run_of

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


def run_id_of(fact: Fact) -> str | None:
    """The run that a fact is part of."""
    if fact.run_id is not None:
        return fact.run_id
    named = other_id(fact, "runId", "run_id")
    if named is not None:
        return named
    turn = turn_of(fact)
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
    return named or f"{turn_of(fact) or fact.id}:user"


@lru_cache(maxsize=1_024)
def traced(name: str) -> str:
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

"""Queries: what a reader asks for in a URL, or a problem that says what is wrong with it.

Nothing is guessed. A name that is not known, a value that is empty or given twice is refused before
a stream begins; a filter with a slip of the pen would otherwise show everything.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar
from urllib.parse import parse_qsl

import msgspec

from factwire.edge.events import VIEWS
from factwire.edge.limits import (
    PAGE_ITEMS,
    PAGE_ITEMS_MOST,
    QUERY_CHARACTERS,
    QUERY_TYPES,
)
from factwire.edge.problems import Problem
from factwire.edge.streams.selection import Face, Selection
from factwire.journal import Filter

_IDS: Final[Mapping[str, str]] = {"projectId": "project", "threadId": "thread", "runId": "run"}
"""Name in a query → field of a filter."""

_STREAM: Final = frozenset({"cursor", "stream", "ticket"})
"""What every stream takes; a ticket was looked at before anybody asks here."""

NAMES: Final[Mapping[str, frozenset[str]]] = {
    "events": _STREAM | {"since", "limit", "view", "types", *_IDS},
    "facts": _STREAM | {"since", "limit", "classes", *_IDS},
    "projection": _STREAM,
}
"""Face → every name that its query may have."""

_T = TypeVar("_T", bound=str)

_LISTS: Final = frozenset({"types", "classes"})


class Start(msgspec.Struct, frozen=True):
    """Where to begin: after a cursor or an id, now, or, with neither, at the oldest fact kept."""

    cursor: str | None = None
    now: bool = False


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A well-formed question."""

    selection: Selection
    start: Start
    limit: int = PAGE_ITEMS


def read_query(face: Face, query: bytes, last_event_id: str | None = None) -> Query:
    """The query of a stream or a page; raises `Problem`.

    `last_event_id` is what a browser sends when it comes again; it is newer than the URL.
    """
    given = _pairs(face, query)
    wanted = Filter(
        **{field: given[name] for name, field in _IDS.items() if name in given},
        classes=_names(given, "classes"),
    )
    return Query(
        selection=Selection(
            face=face,
            view=_choice(given, "view", VIEWS, "runtime"),
            filter=None if wanted == Filter() else wanted,
            types=_names(given, "types"),
        ),
        start=read_start(given, last_event_id),
        limit=_limit(given),
    )


def projection_start(query: bytes, last_event_id: str | None = None) -> Start:
    """Where a viewer of a thread wants to go on; raises `Problem`."""
    return read_start(_pairs("projection", query), last_event_id)


def read_start(given: Mapping[str, str], last_event_id: str | None) -> Start:
    since = given.get("since")
    if since not in (None, "now"):
        raise _invalid("since", "the word now", since)
    if last_event_id:
        return Start(_short("Last-Event-ID", last_event_id))
    if since and "cursor" in given:
        raise Problem(400, "conflicting_parameters", "name a cursor or since=now, not both")
    return Start(given.get("cursor"), since == "now")


def _pairs(face: Literal["events", "facts", "projection"], query: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _parsed(query):
        if name not in NAMES[face]:
            known = ", ".join(sorted(NAMES[face]))
            raise Problem(400, "unknown_parameter", f"{name[:80]!r} is none of {known}")
        if not value:
            raise _invalid(name, "a value", "")
        if name in found and name not in _LISTS:
            raise Problem(400, "repeated_parameter", f"{name} may be given once")
        _short(name, value)
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _parsed(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=128
        )
    except ValueError as error:
        raise Problem(400, "invalid_query", f"the query cannot be read: {error}") from None


def _names(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Names between commas, in one order, so that equal filters are equal."""
    text = given.get(name)
    if text is None:
        return ()
    names = sorted({part.strip().removesuffix(".") for part in text.split(",")})
    if not all(names):
        raise _invalid(name, "names between commas", text)
    if len(names) > QUERY_TYPES:
        raise _invalid(name, f"at most {QUERY_TYPES} names", f"{len(names)} names")
    return tuple(names)


def _choice(given: Mapping[str, str], name: str, known: tuple[_T, ...], default: _T) -> _T:
    value = given.get(name, default)
    for word in known:
        if word == value:
            return word
    raise _invalid(name, " or ".join(known), value)


def _limit(given: Mapping[str, str]) -> int:
    text = given.get("limit")
    if text is None:
        return PAGE_ITEMS
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= PAGE_ITEMS_MOST):
        raise _invalid("limit", f"a number from 1 to {PAGE_ITEMS_MOST}", text)
    return int(text)


def _short(name: str, value: str) -> str:
    if len(value) > QUERY_CHARACTERS:
        raise _invalid(name, f"at most {QUERY_CHARACTERS} characters", f"{len(value)} characters")
    return value


def _invalid(name: str, expected: str, got: str | None) -> Problem:
    return Problem(
        400, "invalid_parameter", f"{name}: expected {expected}, got {(got or '')[:80]!r}"
    )

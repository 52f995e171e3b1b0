"""What a reader asks for in a URL: a filter and a cursor, or a problem that says what is wrong.

Nothing is guessed. A name that is not known, a value that is empty or given twice is refused before
a stream begins; a filter with a slip of the pen would otherwise show everything. A reader may name
the text of a cursor, the id of an event or the id of a fact. One that cannot be resumed from gets
a single `error` envelope with the way to a snapshot, and nothing is replayed.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar
from urllib.parse import parse_qsl, quote

import msgspec

from factwire.journal import Cursor, CursorError, CursorExpired, CursorMalformed, Filter, Journal
from factwire.journal.cursor import MARK
from factwire.serving.asgi import Problem
from factwire.serving.envelopes import (
    VIEWS,
    ErrorDetails,
    EventIdInvalid,
    Scope,
    View,
    build_error_event,
    encode_frame,
    fact_id_of,
)
from factwire.serving.limits import PAGE_ITEMS, PAGE_ITEMS_MOST, QUERY_CHARACTERS, QUERY_TYPES
from factwire.serving.streams.frame_encoder import Face, Selection
from factwire.serving.streams.stream_sinks import CURSOR_EXPIRED, CURSOR_INVALID, CloseReason

_IDS: Final = ("projectId", "threadId", "runId")
_STREAM: Final = frozenset({"cursor", "stream", "ticket"})
"""What every stream takes; a ticket was looked at before anybody asks here."""

QUERY_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "events": _STREAM | {"since", "limit", "view", "types", *_IDS},
    "facts": _STREAM | {"since", "limit", "classes", *_IDS},
    "projection": _STREAM,
}
"""Face → every name that its query may have."""

_T = TypeVar("_T", bound=str)

LIST_PARAMETERS: Final = frozenset({"types", "classes"})
"""Parameters that hold several names; a stream takes them more than once."""


class StreamStart(msgspec.Struct, frozen=True):
    """Where to begin: after a cursor or an id, now, or, with neither, at the oldest fact kept."""

    cursor: str | None = None
    now: bool = False


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A well-formed question."""

    selection: Selection
    start: StreamStart
    limit: int = PAGE_ITEMS


TypesOfView = Callable[[View], frozenset[str]]
"""View → the types of its envelopes."""


def ensure_known_types(names: Iterable[str], view: View, types_of: TypesOfView) -> None:
    """Raise `Problem` for a name that stands for no type of a view: nothing would ever come."""
    existing = types_of(view)
    for name in names:
        if name not in existing and not any(each.startswith(f"{name}.") for each in existing):
            others = [other for other in VIEWS if other != view and name in types_of(other)]
            hint = f"; use view={others[0]}" if others else "; `types` lists what exists"
            raise Problem(
                400,
                "unknown_type",
                f"types: view={view} has no type {name[:80]!r}{hint}",
                types=sorted(existing),
            )


def read_query(
    face: Face, query: bytes, last_event_id: str | None = None, *, types_of: TypesOfView
) -> StreamQuery:
    """The query of a stream or a page; raises `Problem`.

    `last_event_id` is what a browser sends when it comes again; it is newer than the URL.
    """
    pairs = _read_pairs(face, query)
    view: View = _parse_choice(pairs, "view", VIEWS, "runtime")
    types = parse_names(pairs.get("types"), "types")
    ensure_known_types(types, view, types_of)
    wanted = Filter(
        project=pairs.get("projectId"),
        thread=pairs.get("threadId"),
        run=pairs.get("runId"),
        classes=parse_names(pairs.get("classes"), "classes"),
    )
    return StreamQuery(
        selection=Selection(
            face=face,
            view=view,
            filter=None if wanted == Filter() else wanted,
            types=types,
        ),
        start=read_start(pairs, last_event_id),
        limit=_parse_limit(pairs),
    )


def read_projection_start(query: bytes, last_event_id: str | None = None) -> StreamStart:
    """Where a viewer of a thread wants to go on; raises `Problem`."""
    return read_start(_read_pairs("projection", query), last_event_id)


def read_start(pairs: Mapping[str, str], last_event_id: str | None) -> StreamStart:
    since = pairs.get("since")
    if since not in (None, "now"):
        raise _invalid_parameter("since", "the word now", since)
    if last_event_id:
        return StreamStart(check_length("Last-Event-ID", last_event_id))
    if since and "cursor" in pairs:
        raise Problem(400, "conflicting_parameters", "use a cursor or since=now, not both")
    return StreamStart(pairs.get("cursor"), since == "now")


def _read_pairs(face: Literal["events", "facts", "projection"], query: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _parse_pairs(query):
        if name not in QUERY_NAMES[face]:
            known = ", ".join(sorted(QUERY_NAMES[face]))
            raise Problem(400, "unknown_parameter", f"unknown parameter {name[:80]!r}; use {known}")
        if not value:
            raise _invalid_parameter(name, "a value", "")
        if name in found and name not in LIST_PARAMETERS:
            raise Problem(400, "repeated_parameter", f"{name} can be used only once")
        check_length(name, value)
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _parse_pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=128
        )
    except ValueError as error:
        raise Problem(400, "invalid_query", f"the query cannot be read: {error}") from None


def parse_names(text: str | None, name: str) -> tuple[str, ...]:
    """Names between commas, in one order, so that equal filters are equal; raises `Problem`."""
    if text is None:
        return ()
    names = sorted({part.strip().removesuffix(".") for part in text.split(",")})
    if not all(names):
        raise _invalid_parameter(name, "names separated by commas", text)
    for each in names:
        _ensure_short(name, each)
    if len(names) > QUERY_TYPES:
        raise _invalid_parameter(name, f"at most {QUERY_TYPES} names", f"{len(names)} names")
    return tuple(names)


def _parse_choice(pairs: Mapping[str, str], name: str, known: tuple[_T, ...], default: _T) -> _T:
    value = pairs.get(name, default)
    for word in known:
        if word == value:
            return word
    raise _invalid_parameter(name, " or ".join(known), value)


def _parse_limit(pairs: Mapping[str, str]) -> int:
    text = pairs.get("limit")
    if text is None:
        return PAGE_ITEMS
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= PAGE_ITEMS_MOST):
        raise _invalid_parameter("limit", f"a number from 1 to {PAGE_ITEMS_MOST}", text)
    return int(text)


def check_length(name: str, value: str) -> str:
    """A value that is not too long, or a list, whose names are looked at one by one; raises
    `Problem`.
    """
    if name not in LIST_PARAMETERS:
        _ensure_short(name, value)
    return value


def _ensure_short(name: str, value: str) -> None:
    if len(value) > QUERY_CHARACTERS:
        raise _invalid_parameter(
            name, f"at most {QUERY_CHARACTERS} characters", f"{len(value)} characters"
        )


def _invalid_parameter(name: str, expected: str, got: str | None) -> Problem:
    return Problem(
        400, "invalid_parameter", f"{name}: expected {expected}, got {(got or '')[:80]!r}"
    )


_EVENT: Final = "evt_"


async def read_cursor(journal: Journal, text: str) -> Cursor:
    """The place that a reader means; raises `CursorError`."""
    if text.startswith(MARK):
        return Cursor.parse(text)
    if text.startswith(_EVENT):
        try:
            text = fact_id_of(text)
        except EventIdInvalid as error:
            raise CursorMalformed(str(error)) from None
    return await journal.position(text)


def close_reason_of(error: CursorError) -> CloseReason:
    """How a stream ends whose cursor is of no use."""
    return CURSOR_EXPIRED if isinstance(error, CursorExpired) else CURSOR_INVALID


def snapshot_url(wanted: Filter | None) -> str:
    """Where a reader finds the state to begin anew from."""
    if wanted is not None and wanted.thread is not None:
        return f"/v1/threads/{quote(wanted.thread, safe='')}/projection"
    return "/v1/threads"


def encode_cursor_error(
    error: CursorError, wanted: Filter | None, head: Cursor, *, scope: Scope, trace_id: str
) -> bytes:
    """The one message that a reader gets; it has no place in the journal."""
    expired = close_reason_of(error) is CURSOR_EXPIRED
    event = build_error_event(
        "cursor_expired" if expired else "cursor_invalid",
        str(error),
        seq=head.seq,
        trace_id=trace_id,
        sent_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        scope=scope,
        details=ErrorDetails(
            snapshot_required=True, snapshot_url=snapshot_url(wanted), as_of_cursor=str(head)
        ),
    )
    return encode_frame(event)

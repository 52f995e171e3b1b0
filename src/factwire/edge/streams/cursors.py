"""Cursors that a reader names: taken exactly, or refused with the way to a snapshot.

A reader may name the text of a cursor, the id of an event or the id of a fact. One that cannot be
resumed from gets a single `error` envelope, and nothing is replayed.
"""

from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from factwire.edge.events import (
    ErrorDetails,
    EventIdInvalid,
    encode_frame,
    error_event,
    fact_id_of,
)
from factwire.edge.streams.closing import CURSOR_EXPIRED, CURSOR_INVALID, Closing
from factwire.journal import (
    Cursor,
    CursorError,
    CursorExpired,
    CursorMalformed,
    Filter,
    Journal,
)
from factwire.journal.cursor import MARK

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


def closing_of(error: CursorError) -> Closing:
    """How a stream ends whose cursor is of no use."""
    return CURSOR_EXPIRED if isinstance(error, CursorExpired) else CURSOR_INVALID


def snapshot_url(wanted: Filter | None) -> str:
    """Where a reader finds the state to begin anew from."""
    if wanted is not None and wanted.thread is not None:
        return f"/v1/threads/{quote(wanted.thread, safe='')}/projection"
    return "/v1/threads"


def error_envelope(
    error: CursorError, wanted: Filter | None, head: Cursor, *, edge_id: str, trace_id: str
) -> bytes:
    """The one message that a reader gets; it has no place in the journal."""
    expired = closing_of(error) is CURSOR_EXPIRED
    event = error_event(
        "cursor_expired" if expired else "cursor_invalid",
        str(error),
        trace_id=trace_id,
        sent_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        edge_id=edge_id,
        details=ErrorDetails(
            snapshot_required=True, snapshot_url=snapshot_url(wanted), as_of_cursor=str(head)
        ),
    )
    return encode_frame(event)

"""Reading messages: around a number, by search, and what changed since a cursor.

Every answer says the cursor as of which it is true. `sync_events` gives what a socket would give,
for clients that have none; both read the same log.
"""

from typing import Final

import msgspec
from sqlalchemy import select

from factwire.hub.chat_resources import (
    ChatMessage,
    MessageHit,
    MessageWindow,
    SyncedEvent,
    SyncPage,
)
from factwire.hub.chats.chat_members import find_chat
from factwire.hub.chats.chat_messages import unknown_message
from factwire.hub.chats.message_search import build_snippet, find_messages, parse_search
from factwire.hub.device_resources import StatePage
from factwire.hub.frames.event_log import HubEvent, read_bounds, read_cursor, read_events
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records import chat_records
from factwire.hub.records.chat_tables import chat_members
from factwire.hub.records.people_records import Place, format_place, format_time, parse_place
from factwire.journal import Cursor
from factwire.journal.cursor import check_cursor
from factwire.serving.asgi import Problem

_CHAT_EVENTS: Final = ("message.", "session.", "friend.")
_READS: Final = 10
"""Pages of the log that one request reads to find events of chats among others."""


async def read_message(
    hub: HubServices, caller: HubCaller, chat_id: str, message_id: str
) -> ChatMessage:
    async with hub.database.read() as connection:
        await find_chat(hub, connection, caller.person_id, chat_id)
        row = await chat_records.find_message(connection, caller.person_id, chat_id, message_id)
        if row is None:
            raise unknown_message()
        as_of = await read_cursor(connection)
        [message] = await chat_records.to_messages(connection, [row], as_of)
    return message


async def list_messages(
    hub: HubServices,
    caller: HubCaller,
    chat_id: str,
    *,
    before: int | None,
    after: int | None,
    around: int | None,
    limit: int,
) -> MessageWindow:
    """Messages of a chat: those before a number, after one, or around one; without a number, the
    newest. Raises `Problem`.
    """
    if sum(place is not None for place in (before, after, around)) > 1:
        raise Problem(400, "too_many_places", "give one of `before`, `after` and `around`, or none")
    async with hub.database.read() as connection:
        chat = await find_chat(hub, connection, caller.person_id, chat_id)
        newest: int = chat["last_seq"]
        # Numbers have no gaps, so the first one of a page says all.
        first = newest - limit
        if before is not None:
            first = min(before - 1, newest) - limit
        elif after is not None:
            first = after
        elif around is not None:
            first = around - 1 - limit // 2
        first = max(0, first)
        upto = min(newest, first + limit) if before is None else min(newest, before - 1)
        rows = await chat_records.list_messages(
            connection, caller.person_id, chat_id, after=first, limit=max(0, upto - first)
        )
        items = await chat_records.to_messages(connection, rows)
        as_of = await read_cursor(connection)
    return MessageWindow(
        items=items,
        as_of=as_of,
        has_before=bool(rows) and rows[0]["seq_id"] > 1,
        has_after=bool(rows) and rows[-1]["seq_id"] < newest,
    )


async def list_pins(hub: HubServices, caller: HubCaller, chat_id: str) -> StatePage[ChatMessage]:
    """The pinned messages of a chat, of which there are few."""
    async with hub.database.read() as connection:
        await find_chat(hub, connection, caller.person_id, chat_id)
        rows = await chat_records.list_pins(connection, caller.person_id, chat_id)
        items = await chat_records.to_messages(connection, rows)
        return StatePage(items=items, as_of=await read_cursor(connection))


async def search_messages(
    hub: HubServices,
    caller: HubCaller,
    query: str,
    chat_id: str | None,
    *,
    cursor: str | None,
    limit: int,
) -> StatePage[MessageHit]:
    """Messages of the caller's chats that have all words of a query, newest first; raises
    `Problem`.
    """
    terms = parse_search(query)
    if not terms:
        raise Problem(400, "search_empty", "a search must have at least one letter or digit")
    place = parse_place(cursor)
    async with hub.database.read() as connection:
        own = select(chat_members.c.session_id)
        own = own.where(chat_members.c.member_id == caller.person_id)
        if chat_id is not None:
            own = own.where(chat_members.c.session_id == chat_id)
        chat_ids = list((await connection.execute(own)).scalars())
        wanted = chat_records.select_messages(caller.person_id)
        before = None if place is None else place.at
        rows = await find_messages(
            connection, wanted, terms, chat_ids, before=before, limit=limit + 1
        )
        found = await chat_records.to_messages(connection, rows[:limit])
        as_of = await read_cursor(connection)
    more = len(rows) > limit
    following = format_place(Place(rows[limit - 1]["number"], "")) if more else None
    hits = [
        MessageHit(message=each, snippet=build_snippet(each.content.get("text", ""), terms))
        for each in found
    ]
    return StatePage(items=hits, as_of=as_of, next=following)


async def sync_events(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> SyncPage:
    """The caller's events about chats and friends after a cursor; without one, only where the log
    is now. Raises `Problem`, and `CursorError` for a cursor of another log or one that has expired.
    """
    async with hub.database.read() as connection:
        bounds = await read_bounds(connection)
        if cursor is None:
            return SyncPage(events=[], cursor=str(Cursor(bounds.epoch, bounds.head)))
        at, found = check_cursor(Cursor.parse(cursor), bounds), list[HubEvent]()
        for _ in range(_READS):
            events = await read_events(connection, caller.person_id, at, limit)
            found += [event for event in events if event.type.startswith(_CHAT_EVENTS)]
            if len(events) < limit:
                # There is nothing else for them up to the newest.
                at = bounds.head
                break
            at = events[-1].seq
            if len(found) >= limit:
                break
    return SyncPage(
        events=[_to_synced(event) for event in found],
        cursor=str(Cursor(bounds.epoch, at)),
        more=at < bounds.head,
    )


def _to_synced(event: HubEvent) -> SyncedEvent:
    return SyncedEvent(
        type=event.type,
        payload=msgspec.json.decode(event.payload),
        created_at=format_time(event.created_at),
    )

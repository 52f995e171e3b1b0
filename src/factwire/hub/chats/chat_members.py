"""Chats and who is in them.

A private chat is that of two friends, and its id follows from them; so does that of a thread from
the thread. A group has an owner, who adds friends of theirs, removes people and dissolves it; when
the owner leaves, whoever has been in it the longest is the owner. An agent is added by a member who
may operate its device, and leaves when the device is revoked, unless another one of the same Edge
replaces it. Somebody's events of a chat begin when they join and end when they leave; what was said
before, they read by REST. Whatever changes a chat holds its row until the commit.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.chat_resources import (
    AgentBody,
    Chat,
    ChatBody,
    ChatChange,
    ChatParticipant,
    GroupChatBody,
    PrivateChatBody,
    ThreadChatBody,
)
from factwire.hub.chats.chat_links import ThreadRight
from factwire.hub.chats.contacts import are_friends, unknown_person
from factwire.hub.device_resources import StatePage
from factwire.hub.frames.event_log import HubChange, audience_of, read_cursor
from factwire.hub.frames.frame_types import (
    SessionDissolved,
    SessionInfoUpdated,
    SessionMemberLeft,
)
from factwire.hub.limits import CHAT_AGENTS, CHAT_PEOPLE, CHATS_PER_PERSON
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.passwords import name_key, normalize_name
from factwire.hub.records import chat_records
from factwire.hub.records.chat_tables import chat_members, chats
from factwire.hub.records.hub_tables import people
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.people_records import Place, format_place, parse_place
from factwire.serving.asgi import Problem
from factwire.serving.idempotency import derive_id

CHAT: Final = "chat"
"""The kind of audience that the people of a chat are."""


def audience_of_chat(chat_id: str) -> str:
    return audience_of(CHAT, chat_id)


def unknown_chat() -> Problem:
    return Problem(404, "unknown_chat", "none of your chats has this id")


async def find_chat(
    hub: HubServices,
    connection: AsyncConnection,
    person_id: str,
    chat_id: str,
    needed: ThreadRight = "viewer",
) -> RowMapping:
    """A chat that somebody is in and may still see; raises `Problem`."""
    row = await chat_records.find_chat(connection, person_id, chat_id)
    return await _ensure_access(hub, connection, row, person_id, needed)


async def lock_chat(
    hub: HubServices,
    connection: AsyncConnection,
    person_id: str,
    chat_id: str,
    needed: ThreadRight = "viewer",
) -> RowMapping:
    """The same, and nobody else changes the chat until the transaction ends."""
    row = await chat_records.lock_chat(connection, person_id, chat_id)
    return await _ensure_access(hub, connection, row, person_id, needed)


async def _ensure_access(
    hub: HubServices,
    connection: AsyncConnection,
    row: RowMapping | None,
    person_id: str,
    needed: ThreadRight,
) -> RowMapping:
    if row is None:
        raise unknown_chat()
    if row["type"] == "thread":
        thread = row["edge_id"], row["thread_id"]
        if not await _may_access_thread(hub, connection, person_id, thread):
            raise unknown_chat()
        if not await _may_access_thread(hub, connection, person_id, thread, needed):
            raise Problem(403, "read_only_thread", "this thread is shared with you to read only")
    return row


async def _may_access_thread(
    hub: HubServices,
    connection: AsyncConnection,
    person_id: str,
    thread: tuple[str, str],
    needed: ThreadRight = "viewer",
) -> bool:
    links = hub.chat_links
    return links is not None and await links.may_access_thread(
        connection, person_id, *thread, needed
    )


async def list_chats(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> StatePage[Chat]:
    async with hub.database.read() as connection:
        rows, following = await chat_records.list_chats(connection, caller.person_id, cursor, limit)
        as_of = await read_cursor(connection)
    return StatePage(items=[chat_records.to_chat(row) for row in rows], as_of=as_of, next=following)


async def read_chat(hub: HubServices, caller: HubCaller, chat_id: str) -> Chat:
    async with hub.database.read() as connection:
        row = await find_chat(hub, connection, caller.person_id, chat_id)
        return chat_records.to_chat(row, await read_cursor(connection))


async def list_members(
    hub: HubServices, caller: HubCaller, chat_id: str, cursor: str | None, limit: int
) -> StatePage[ChatParticipant]:
    """The members of a chat, those who joined first first."""
    place = parse_place(cursor)
    async with hub.database.read() as connection:
        await find_chat(hub, connection, caller.person_id, chat_id)
        after = 0 if place is None else place.at
        rows = await chat_records.list_members(connection, chat_id, after, limit + 1)
        as_of = await read_cursor(connection)
    more = len(rows) > limit
    following = format_place(Place(rows[limit - 1]["joined_order"], "")) if more else None
    items = [chat_records.to_member(row) for row in rows[:limit]]
    return StatePage(items=items, as_of=as_of, next=following)


async def open_chat(
    hub: HubServices,
    caller: HubCaller,
    body: ChatBody,
    origin: ActionOrigin,
    chat_id: str | None = None,
) -> Chat:
    """Create a group, or have the chat with a friend or of a thread, which may exist already.
    Raises `Problem`.
    """
    for is_last in (False, True):
        try:
            async with hub.events.change() as change:
                match body:
                    case PrivateChatBody():
                        opened = await _open_private(change, caller, body.person_id, origin)
                    case ThreadChatBody():
                        opened = await _open_thread(hub, change, caller, body, origin)
                    case GroupChatBody():
                        group_id = chat_id or new_id("ses")
                        opened = await _create_group(change, caller, body, origin, group_id)
                row = await chat_records.find_chat(change.connection, caller.person_id, opened)
                if row is None:
                    raise unknown_chat()
                return chat_records.to_chat(row)
        except IntegrityError:
            # Somebody else made the same chat at the same time; then it is there now.
            if is_last:
                raise
    raise AssertionError("unreachable")


async def _open_private(
    change: HubChange, caller: HubCaller, person_id: str, origin: ActionOrigin
) -> str:
    pair = sorted((caller.person_id, person_id))
    chat_id = derive_id("ses", "\0".join(("private", *pair)))
    if await chat_records.find_chat(change.connection, caller.person_id, chat_id) is None:
        if not await are_friends(change.connection, caller.person_id, {person_id}):
            raise unknown_person()
        await _create_chat(change, caller, origin, chat_id, pair, type="private", name="")
    return chat_id


async def _open_thread(
    hub: HubServices,
    change: HubChange,
    caller: HubCaller,
    body: ThreadChatBody,
    origin: ActionOrigin,
) -> str:
    thread = body.edge_id, body.thread_id
    if not await _may_access_thread(hub, change.connection, caller.person_id, thread):
        raise Problem(404, "unknown_thread", "no thread that you may see has this id")
    chat_id = derive_id("ses", f"thread\0{body.edge_id}\0{body.thread_id}")
    if await chat_records.lock_chat_row(change.connection, chat_id) is None:
        ids = {"edge_id": body.edge_id, "thread_id": body.thread_id}
        await _create_chat(
            change, caller, origin, chat_id, [caller.person_id], type="thread", name="", **ids
        )
    elif await chat_records.find_chat(change.connection, caller.person_id, chat_id) is None:
        await _add_people(change, chat_id, [caller.person_id], caller, origin)
    return chat_id


async def _create_group(
    change: HubChange,
    caller: HubCaller,
    body: GroupChatBody,
    origin: ActionOrigin,
    chat_id: str,
) -> str:
    if await chat_records.find_chat(change.connection, caller.person_id, chat_id) is not None:
        return chat_id
    others = set(body.person_ids) - {caller.person_id}
    if not await are_friends(change.connection, caller.person_id, others):
        raise unknown_person()
    people_of_it = [caller.person_id, *sorted(others)]
    await _create_chat(
        change,
        caller,
        origin,
        chat_id,
        people_of_it,
        type="group",
        name=_clean_line(body.name),
        description=body.description,
    )
    return chat_id


async def _create_chat(
    change: HubChange,
    caller: HubCaller,
    origin: ActionOrigin,
    chat_id: str,
    person_ids: list[str],
    **values: Any,
) -> None:
    await change.connection.execute(
        insert(chats).values(
            session_id=chat_id,
            owner_id=caller.person_id,
            last_seq=0,
            created_at=change.now,
            **{"description": "", **values},
        )
    )
    await add_audit_entry(change.connection, change.now, "chat.created", origin, chat_id)
    for person_id in person_ids:
        await _insert_person(change, chat_id, person_id, caller.person_id)
        change.join(audience_of_chat(chat_id), person_id)
        if person_id != caller.person_id:
            await add_audit_entry(
                change.connection, change.now, "chat.joined", origin, person_id, chatId=chat_id
            )
    created = await chat_records.build_created_frame(change.connection, chat_id)
    change.emit(audience_of_chat(chat_id), "session.created", created)


async def _insert_person(
    change: HubChange, chat_id: str, person_id: str, added_by: str
) -> RowMapping:
    if await chat_records.count_chats(change.connection, person_id) >= CHATS_PER_PERSON:
        raise Problem(409, "too_many_chats", f"somebody is in {CHATS_PER_PERSON} chats already")
    name = select(people.c.name).where(people.c.person_id == person_id)
    newest = select(chats.c.last_seq).where(chats.c.session_id == chat_id)
    return await chat_records.add_member(
        change.connection,
        chat_id,
        member_id=person_id,
        member_type="user",
        name=(await change.connection.execute(name)).scalar_one(),
        added_by=added_by,
        joined_at=change.now,
        # What was said before is history, and not news.
        last_read_seq=(await change.connection.execute(newest)).scalar_one(),
    )


async def add_people(
    hub: HubServices,
    caller: HubCaller,
    chat_id: str,
    person_ids: Iterable[str],
    origin: ActionOrigin,
) -> Chat:
    """Add friends of its owner to a group; who is in it stays. Raises `Problem`."""
    async with hub.events.change() as change:
        await _lock_own_group(hub, change, caller, chat_id)
        wanted = set(person_ids) - {caller.person_id}
        if not await are_friends(change.connection, caller.person_id, wanted):
            raise unknown_person()
        await _add_people(change, chat_id, sorted(wanted), caller, origin)
        row = await find_chat(hub, change.connection, caller.person_id, chat_id)
    return chat_records.to_chat(row)


async def _add_people(
    change: HubChange, chat_id: str, person_ids: list[str], caller: HubCaller, origin: ActionOrigin
) -> None:
    present = select(chat_members.c.member_id).where(
        chat_members.c.session_id == chat_id, chat_members.c.member_type == "user"
    )
    members = set((await change.connection.execute(present)).scalars())
    added = [person_id for person_id in person_ids if person_id not in members]
    if len(members) + len(added) > CHAT_PEOPLE:
        raise Problem(409, "chat_full", f"a chat has at most {CHAT_PEOPLE} people")
    rows = [await _insert_person(change, chat_id, each, caller.person_id) for each in added]
    if not rows:
        return
    created = await chat_records.build_created_frame(change.connection, chat_id)
    for row in rows:
        # Those who were there are told who came; who came is told of the chat as it is by then.
        change.emit(
            audience_of_chat(chat_id), "session.member_joined", chat_records.to_joined_frame(row)
        )
    for row in rows:
        change.tell(row["member_id"], "session.created", created)
        change.join(audience_of_chat(chat_id), row["member_id"])
        await add_audit_entry(
            change.connection, change.now, "chat.joined", origin, row["member_id"], chatId=chat_id
        )


async def add_agent(
    hub: HubServices, caller: HubCaller, chat_id: str, body: AgentBody, origin: ActionOrigin
) -> ChatParticipant:
    """Add an agent that the caller may operate; raises `Problem`."""
    name = normalize_name(body.name)
    try:
        async with hub.events.change() as change:
            await lock_chat(hub, change.connection, caller.person_id, chat_id, "commenter")
            if hub.chat_links is None:
                raise Problem(404, "unknown_device", "no device that you may use has this id")
            await hub.chat_links.ensure_operator(
                change.connection,
                person_id=caller.person_id,
                device_id=body.device_id,
                agent_type=body.agent_type,
                target_id=body.target_id,
            )
            await _ensure_room_for_agent(change.connection, chat_id)
            row = await chat_records.add_member(
                change.connection,
                chat_id,
                member_id=new_id("agt"),
                member_type="agent",
                name=name,
                name_key=name_key(name),
                added_by=caller.person_id,
                joined_at=change.now,
                last_read_seq=0,
                device_id=body.device_id,
                agent_type=body.agent_type,
                target_id=body.target_id,
            )
            change.emit(
                audience_of_chat(chat_id),
                "session.member_joined",
                chat_records.to_joined_frame(row),
            )
            await add_audit_entry(
                change.connection,
                change.now,
                "chat.agent_added",
                origin,
                row["member_id"],
                chatId=chat_id,
                deviceId=body.device_id,
            )
    except IntegrityError:
        raise Problem(409, "name_taken", "another agent of this chat has this name") from None
    return chat_records.to_member(row)


async def _ensure_room_for_agent(connection: AsyncConnection, chat_id: str) -> None:
    query = select(func.count()).where(
        chat_members.c.session_id == chat_id, chat_members.c.member_type == "agent"
    )
    if (await connection.execute(query)).scalar_one() >= CHAT_AGENTS:
        raise Problem(409, "chat_full", f"a chat has at most {CHAT_AGENTS} agents")


async def _lock_own_group(
    hub: HubServices, change: HubChange, caller: HubCaller, chat_id: str
) -> RowMapping:
    """A group of the caller's own; raises `Problem`."""
    row = await lock_chat(hub, change.connection, caller.person_id, chat_id)
    if row["type"] != "group":
        raise Problem(409, "not_a_group", "only a group can be changed like this")
    if row["owner_id"] != caller.person_id:
        raise Problem(403, "owner_only", "only the owner of the group may do this")
    return row


async def change_chat(
    hub: HubServices, caller: HubCaller, chat_id: str, body: ChatChange, origin: ActionOrigin
) -> Chat:
    """Rename a group, describe it, or hand it over to another member; raises `Problem`."""
    async with hub.events.change() as change:
        row = await _lock_own_group(hub, change, caller, chat_id)
        wanted = {
            name: value
            for name, value in msgspec.structs.asdict(body).items()
            if value is not msgspec.UNSET
        }
        if "name" in wanted:
            wanted["name"] = _clean_line(wanted["name"])
        changes = {name: value for name, value in wanted.items() if row[name] != value}
        if "owner_id" in changes:
            owner = await chat_records.find_member(change.connection, chat_id, changes["owner_id"])
            if owner is None or owner["member_type"] != "user":
                raise _unknown_member()
        await _write_info(change, chat_id, changes, origin)
        row = await find_chat(hub, change.connection, caller.person_id, chat_id)
    return chat_records.to_chat(row)


async def _write_info(
    change: HubChange, chat_id: str, changes: dict[str, Any], origin: ActionOrigin
) -> None:
    if not changes:
        return
    await change.connection.execute(
        update(chats).where(chats.c.session_id == chat_id).values(**changes)
    )
    change.emit(
        audience_of_chat(chat_id),
        "session.info_updated",
        SessionInfoUpdated(session_id=chat_id, changes=changes),
    )
    if "owner_id" in changes:
        await add_audit_entry(
            change.connection,
            change.now,
            "chat.owner_changed",
            origin,
            changes["owner_id"],
            chatId=chat_id,
        )


def _clean_line(text: str) -> str:
    """A name of one line; raises `Problem`."""
    line = text.strip()
    if not line or not line.isprintable():
        raise Problem(400, "name_unusable", "a name must have printable characters on one line")
    return line


async def remove_member(
    hub: HubServices, caller: HubCaller, chat_id: str, member_id: str, origin: ActionOrigin
) -> None:
    """Remove a person from a group of one's own, or an agent from it or that one added oneself.
    Raises `Problem`.
    """
    async with hub.events.change() as change:
        chat = await lock_chat(hub, change.connection, caller.person_id, chat_id)
        member = await chat_records.find_member(change.connection, chat_id, member_id)
        if member is None:
            raise _unknown_member()
        if member["member_type"] == "agent" and member["added_by"] == caller.person_id:
            await _end_membership(change, chat, member, origin)
            return
        await _lock_own_group(hub, change, caller, chat_id)
        await _end_membership(change, chat, member, origin)


async def leave_chat(
    hub: HubServices, caller: HubCaller, chat_id: str, origin: ActionOrigin
) -> None:
    """Leave a group, or the chat of a thread; raises `Problem`."""
    async with hub.events.change() as change:
        # Also a chat of a thread that somebody may no longer see can be left.
        chat = await chat_records.lock_chat(change.connection, caller.person_id, chat_id)
        if chat is None:
            raise unknown_chat()
        if chat["type"] == "private":
            raise Problem(409, "not_a_group", "a private chat cannot be left; remove the friend")
        member = await chat_records.find_member(change.connection, chat_id, caller.person_id)
        if member is not None:
            await _end_membership(change, chat, member, origin)


async def _end_membership(
    change: HubChange, chat: RowMapping, member: RowMapping, origin: ActionOrigin
) -> None:
    chat_id, member_id = chat["session_id"], member["member_id"]
    await change.connection.execute(
        delete(chat_members).where(
            chat_members.c.session_id == chat_id, chat_members.c.member_id == member_id
        )
    )
    # Whoever leaves is told it as the last thing of this chat.
    left = SessionMemberLeft(session_id=chat_id, member_id=member_id)
    change.emit(audience_of_chat(chat_id), "session.member_left", left)
    await add_audit_entry(
        change.connection, change.now, "chat.left", origin, member_id, chatId=chat_id
    )
    if member["member_type"] == "agent":
        return
    change.leave(audience_of_chat(chat_id), member_id)
    if chat["type"] == "group" and chat["owner_id"] == member_id:
        await _pass_ownership(change, chat_id, origin)


async def _pass_ownership(change: HubChange, chat_id: str, origin: ActionOrigin) -> None:
    """Make the person who joined first the owner; dissolve a group that has nobody left."""
    longest = (
        select(chat_members.c.member_id)
        .where(chat_members.c.session_id == chat_id, chat_members.c.member_type == "user")
        .order_by(chat_members.c.joined_order)
        .limit(1)
    )
    owner = (await change.connection.execute(longest)).scalar_one_or_none()
    if owner is None:
        await _dissolve(change, chat_id, origin)
    else:
        await _write_info(change, chat_id, {"owner_id": owner}, origin)


async def dissolve_chat(
    hub: HubServices, caller: HubCaller, chat_id: str, origin: ActionOrigin
) -> None:
    """End a group; nobody can read it from then on. Raises `Problem`."""
    async with hub.events.change() as change:
        await _lock_own_group(hub, change, caller, chat_id)
        await _dissolve(change, chat_id, origin)


async def _dissolve(change: HubChange, chat_id: str, origin: ActionOrigin) -> None:
    change.emit(
        audience_of_chat(chat_id), "session.dissolved", SessionDissolved(session_id=chat_id)
    )
    gone = await change.connection.execute(
        delete(chat_members)
        .where(chat_members.c.session_id == chat_id)
        .returning(chat_members.c.member_id, chat_members.c.member_type)
    )
    for member_id, member_type in gone.all():
        if member_type == "user":
            change.leave(audience_of_chat(chat_id), member_id)
    await change.connection.execute(
        update(chats).where(chats.c.session_id == chat_id).values(dissolved_at=change.now)
    )
    await add_audit_entry(change.connection, change.now, "chat.dissolved", origin, chat_id)


async def end_thread_access(
    hub: HubServices, change: HubChange, person_id: str, edge_id: str, origin: ActionOrigin
) -> None:
    """Take somebody out of the chats of threads of an Edge that they may no longer see; for
    whoever revokes a grant or a device, in the same transaction.
    """
    query = (
        select(chats)
        .join(chat_members, chat_members.c.session_id == chats.c.session_id)
        .where(chat_members.c.member_id == person_id, chats.c.edge_id == edge_id)
        .order_by(chats.c.session_id)
    )
    for chat in list((await change.connection.execute(query)).mappings()):
        thread = edge_id, chat["thread_id"]
        if await _may_access_thread(hub, change.connection, person_id, thread):
            continue
        member = await chat_records.find_member(change.connection, chat["session_id"], person_id)
        if member is not None:
            await _end_membership(change, chat, member, origin)


async def move_agents(change: HubChange, device_id: str, new_device_id: str) -> None:
    """Have the agents of a device be those of the one that has replaced it; for whoever does so, in
    the same transaction.
    """
    moved = (
        update(chat_members)
        .where(chat_members.c.device_id == device_id)
        .values(device_id=new_device_id)
        .returning(chat_members)
    )
    for row in (await change.connection.execute(moved)).mappings().all():
        joined = chat_records.to_joined_frame(row)
        change.emit(audience_of_chat(row["session_id"]), "session.member_joined", joined)


async def end_agents_of(change: HubChange, device_id: str, origin: ActionOrigin) -> None:
    """Take the agents of a device out of their chats; for whoever revokes it, in the same
    transaction.
    """
    query = (
        select(chats, chat_members.c.member_id)
        .join(chat_members, chat_members.c.session_id == chats.c.session_id)
        .where(chat_members.c.device_id == device_id)
        .order_by(chats.c.session_id)
    )
    for chat in list((await change.connection.execute(query)).mappings()):
        member = await chat_records.find_member(
            change.connection, chat["session_id"], chat["member_id"]
        )
        if member is not None:
            await _end_membership(change, chat, member, origin)


def _unknown_member() -> Problem:
    return Problem(404, "unknown_member", "no member of this chat has this id")

"""Queries about chats, members and messages. Each names the person who asks, and finds nothing of a
chat that this person is not in.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Select, and_, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.chat_resources import Chat, ChatMessage, ChatParticipant, Reaction
from factwire.hub.frames.frame_types import (
    UNSET,
    ChatMember,
    MessageNew,
    SessionCreated,
    SessionMemberJoined,
)
from factwire.hub.limits import MEMBERS_AT_ONCE
from factwire.hub.records.chat_tables import (
    chat_attachments,
    chat_members,
    chat_messages,
    chat_reactions,
    chats,
)
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time

_member_count = (
    select(func.count())
    .where(chat_members.c.session_id == chats.c.session_id)
    .correlate(chats)
    .scalar_subquery()
)


def select_chats(person_id: str) -> Select[Any]:
    """The chats that a person is in, with how far they have read."""
    return (
        select(
            chats,
            _member_count.label("member_count"),
            chat_members.c.last_read_seq,
            chat_members.c.joined_at,
        )
        .join(chat_members, chat_members.c.session_id == chats.c.session_id)
        .where(chat_members.c.member_id == person_id, chats.c.dissolved_at.is_(None))
    )


async def find_chat(connection: AsyncConnection, person_id: str, chat_id: str) -> RowMapping | None:
    query = select_chats(person_id).where(chats.c.session_id == chat_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def lock_chat(connection: AsyncConnection, person_id: str, chat_id: str) -> RowMapping | None:
    """A chat that a person is in; nobody else changes it until the transaction ends."""
    await lock_chat_row(connection, chat_id)
    # Asked only now: whoever held the row may have removed this person.
    return await find_chat(connection, person_id, chat_id)


async def lock_chat_row(connection: AsyncConnection, chat_id: str) -> RowMapping | None:
    """A chat, whoever is in it, that nobody else changes until the transaction ends."""
    query = select(chats).where(chats.c.session_id == chat_id).with_for_update()
    return (await connection.execute(query)).mappings().one_or_none()


async def list_chats(
    connection: AsyncConnection, person_id: str, cursor: str | None, limit: int
) -> tuple[list[RowMapping], str | None]:
    """A person's chats, those they joined last first."""
    by = (chat_members.c.joined_at, chat_members.c.session_id)
    return await fetch_page(connection, select_chats(person_id), by, cursor, limit)


async def count_chats(connection: AsyncConnection, person_id: str) -> int:
    query = select(func.count()).where(chat_members.c.member_id == person_id)
    return (await connection.execute(query)).scalar_one()


async def list_members(
    connection: AsyncConnection, chat_id: str, after: int = 0, limit: int | None = None
) -> list[RowMapping]:
    """The members of a chat in the order in which they joined."""
    query = (
        select(chat_members)
        .where(chat_members.c.session_id == chat_id, chat_members.c.joined_order > after)
        .order_by(chat_members.c.joined_order)
        .limit(limit)
    )
    return list((await connection.execute(query)).mappings())


async def find_member(
    connection: AsyncConnection, chat_id: str, member_id: str
) -> RowMapping | None:
    query = select(chat_members).where(
        chat_members.c.session_id == chat_id, chat_members.c.member_id == member_id
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def add_member(connection: AsyncConnection, chat_id: str, **values: Any) -> RowMapping:
    """Add a member to a chat whose row is locked."""
    newest = select(func.coalesce(func.max(chat_members.c.joined_order), 0)).where(
        chat_members.c.session_id == chat_id
    )
    order = (await connection.execute(newest)).scalar_one() + 1
    change = (
        insert(chat_members)
        .values(session_id=chat_id, joined_order=order, **values)
        .returning(chat_members)
    )
    return (await connection.execute(change)).mappings().one()


async def next_seq(connection: AsyncConnection, chat_id: str) -> int:
    """The number of the next message; whoever has it holds the chat until the commit."""
    change = (
        update(chats)
        .where(chats.c.session_id == chat_id)
        .values(last_seq=chats.c.last_seq + 1)
        .returning(chats.c.last_seq)
    )
    return (await connection.execute(change)).scalar_one()


def select_messages(person_id: str) -> Select[Any]:
    """The messages of the chats that a person is in."""
    is_member = and_(
        chat_members.c.session_id == chat_messages.c.session_id,
        chat_members.c.member_id == person_id,
    )
    return select(chat_messages).join(chat_members, is_member)


async def find_message(
    connection: AsyncConnection, person_id: str, chat_id: str, message_id: str
) -> RowMapping | None:
    query = select_messages(person_id).where(
        chat_messages.c.session_id == chat_id, chat_messages.c.message_id == message_id
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def find_sent_message(
    connection: AsyncConnection, chat_id: str, client_msg_id: str
) -> RowMapping | None:
    query = select(chat_messages).where(
        chat_messages.c.session_id == chat_id, chat_messages.c.client_msg_id == client_msg_id
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def list_messages(
    connection: AsyncConnection, person_id: str, chat_id: str, after: int, limit: int
) -> list[RowMapping]:
    """Messages of a chat after a number, oldest first."""
    query = (
        select_messages(person_id)
        .where(chat_messages.c.session_id == chat_id, chat_messages.c.seq_id > after)
        .order_by(chat_messages.c.seq_id)
        .limit(limit)
    )
    return list((await connection.execute(query)).mappings())


async def list_pins(connection: AsyncConnection, person_id: str, chat_id: str) -> list[RowMapping]:
    """The pinned messages of a chat, the one that was pinned last first."""
    query = (
        select_messages(person_id)
        .where(chat_messages.c.session_id == chat_id, chat_messages.c.pinned_at.is_not(None))
        .order_by(chat_messages.c.pinned_at.desc(), chat_messages.c.seq_id.desc())
    )
    return list((await connection.execute(query)).mappings())


async def update_message(connection: AsyncConnection, message_id: str, **values: Any) -> None:
    change = update(chat_messages).where(chat_messages.c.message_id == message_id)
    await connection.execute(change.values(**values))


async def find_attachment(
    connection: AsyncConnection, person_id: str, chat_id: str, attachment_id: str
) -> RowMapping | None:
    """An attachment of a chat that a person is in; one that was not sent is its uploader's."""
    is_member = and_(
        chat_members.c.session_id == chat_attachments.c.session_id,
        chat_members.c.member_id == person_id,
    )
    query = (
        select(chat_attachments)
        .join(chat_members, is_member)
        .where(
            chat_attachments.c.session_id == chat_id,
            chat_attachments.c.attachment_id == attachment_id,
            chat_attachments.c.message_id.is_not(None)
            | (chat_attachments.c.uploaded_by == person_id),
        )
    )
    return (await connection.execute(query)).mappings().one_or_none()


def to_chat(row: RowMapping, as_of: str | None = None) -> Chat:
    return Chat(
        chat_id=row["session_id"],
        type=row["type"],
        name=row["name"],
        description=row["description"],
        owner_id=row["owner_id"],
        created_at=format_time(row["created_at"]),
        member_count=row["member_count"],
        last_seq=row["last_seq"],
        last_read_seq=row["last_read_seq"],
        edge_id=row["edge_id"],
        thread_id=row["thread_id"],
        as_of=as_of,
    )


def to_member(row: RowMapping) -> ChatParticipant:
    return ChatParticipant(
        member_id=row["member_id"],
        member_type=row["member_type"],
        name=row["name"],
        joined_at=format_time(row["joined_at"]),
        last_read_seq=row["last_read_seq"],
        device_id=row["device_id"],
        agent_type=row["agent_type"],
        target_id=row["target_id"],
    )


def _frame_fields(row: RowMapping) -> dict[str, Any]:
    return {
        "member_id": row["member_id"],
        "member_type": row["member_type"],
        "name": row["name"],
        "joined_at": format_time(row["joined_at"]),
        "last_read_seq": row["last_read_seq"],
        "device_id": row["device_id"] or UNSET,
        "agent_type": row["agent_type"] or UNSET,
        "target_id": row["target_id"] or UNSET,
    }


def to_joined_frame(row: RowMapping) -> SessionMemberJoined:
    return SessionMemberJoined(session_id=row["session_id"], **_frame_fields(row))


async def build_created_frame(connection: AsyncConnection, chat_id: str) -> SessionCreated:
    """A chat as somebody is told about it who has just joined."""
    query = select(chats, _member_count.label("member_count")).where(chats.c.session_id == chat_id)
    row = (await connection.execute(query)).mappings().one()
    first = await list_members(connection, chat_id, limit=MEMBERS_AT_ONCE)
    return SessionCreated(
        session_id=row["session_id"],
        type=row["type"],
        name=row["name"],
        owner_id=row["owner_id"],
        members=[ChatMember(**_frame_fields(each)) for each in first],
        member_count=row["member_count"],
        description=row["description"],
        created_at=format_time(row["created_at"]),
        last_seq=row["last_seq"],
        edge_id=row["edge_id"] or UNSET,
        thread_id=row["thread_id"] or UNSET,
    )


def to_message_frame(row: RowMapping) -> MessageNew:
    return MessageNew(
        message_id=row["message_id"],
        session_id=row["session_id"],
        sender_id=row["sender_id"],
        sender_type=row["sender_type"],
        content=msgspec.json.decode(row["content"]),
        content_type=row["content_type"],
        seq_id=row["seq_id"],
        created_at=format_time(row["created_at"]),
        client_msg_id=row["client_msg_id"],
        reply_to_message_id=row["reply_to_message_id"],
    )


async def to_messages(
    connection: AsyncConnection, rows: Sequence[RowMapping], as_of: str | None = None
) -> list[ChatMessage]:
    """Messages with the reactions to them."""
    found = [row["message_id"] for row in rows]
    query = (
        select(chat_reactions)
        .where(chat_reactions.c.message_id.in_(found))
        .order_by(chat_reactions.c.emoji, chat_reactions.c.person_id)
    )
    reactions: dict[str, dict[str, list[str]]] = {}
    for each in (await connection.execute(query)).mappings() if found else ():
        of_message = reactions.setdefault(each["message_id"], {})
        of_message.setdefault(each["emoji"], []).append(each["person_id"])
    return [_to_message(row, reactions.get(row["message_id"], {}), as_of) for row in rows]


def _to_message(row: RowMapping, reactions: dict[str, list[str]], as_of: str | None) -> ChatMessage:
    return ChatMessage(
        message_id=row["message_id"],
        chat_id=row["session_id"],
        seq_id=row["seq_id"],
        client_msg_id=row["client_msg_id"],
        sender_id=row["sender_id"],
        sender_type=row["sender_type"],
        content=msgspec.json.decode(row["content"]),
        content_type=row["content_type"],
        created_at=format_time(row["created_at"]),
        reply_to_message_id=row["reply_to_message_id"],
        edited_at=format_optional_time(row["edited_at"]),
        recalled_at=format_optional_time(row["recalled_at"]),
        recalled_by=row["recalled_by"],
        pinned_at=format_optional_time(row["pinned_at"]),
        pinned_by=row["pinned_by"],
        # Sorted here: databases compare texts in their own ways.
        reactions=[
            Reaction(emoji=emoji, person_ids=sorted(who))
            for emoji, who in sorted(reactions.items())
        ],
        as_of=as_of,
    )

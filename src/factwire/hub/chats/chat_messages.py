"""Messages: sent once, numbered without gaps, edited and recalled for a while, found and read.

The same `client_msg_id` in a chat is the same message: a repeat gets the first one, anything else
under that id is refused. What people write is kept as they wrote it, secrets included; it is theirs
to recall. A message that was recalled is gone from lists, from search and from the log of events,
where whoever reads it later finds its number with an empty content. An edit takes the place of the
edit before it in the log. Everything up to a message counts as read by its sender.
"""

from hashlib import sha256
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import RowMapping

from factwire.hub.chat_resources import Chat, ChatMessage, ChatMessageBody, EditBody
from factwire.hub.chats.attachments import drop_attachments, take_attachments
from factwire.hub.chats.chat_members import audience_of_chat, lock_chat
from factwire.hub.chats.contacts import are_friends
from factwire.hub.chats.mentions import create_tasks, find_mentions
from factwire.hub.chats.message_search import index_message, remove_from_index
from factwire.hub.frames.event_log import HubChange
from factwire.hub.frames.frame_types import (
    MessageEdited,
    MessagePin,
    MessageReaction,
    MessageRead,
    MessageRecall,
    MessageUnpin,
)
from factwire.hub.limits import (
    AGENT_EDIT_SECONDS,
    CHANGES_PER_MINUTE,
    EDIT_SECONDS,
    EMOJI_CHARACTERS,
    MESSAGE_CHARACTERS,
    MESSAGES_PER_MINUTE,
    PINS,
    REACTIONS,
    RECALL_SECONDS,
)
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records import chat_records
from factwire.hub.records.chat_tables import chat_members, chat_messages, chat_reactions
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.records.people_records import format_time
from factwire.hub.request_rates import Rate
from factwire.serving.asgi import Problem

_MILLISECONDS: Final = 1_000
_SENDING: Final = Rate("message", MESSAGES_PER_MINUTE)


def unknown_message() -> Problem:
    return Problem(404, "unknown_message", "no message of this chat has this id")


def spend_change(hub: HubServices, caller: HubCaller, kind: str) -> None:
    """Count a change by somebody; raises `Problem` for too many."""
    hub.rates.spend(Rate(f"chat {kind}", CHANGES_PER_MINUTE), caller.person_id)


async def send_message(
    hub: HubServices,
    caller: HubCaller,
    chat_id: str,
    body: ChatMessageBody,
    origin: ActionOrigin,
) -> ChatMessage:
    """Send a message, and give the agents that it mentions their task; raises `Problem`."""
    digest = sha256(msgspec.json.encode(body)).hexdigest()
    async with hub.events.change() as change:
        chat = await lock_chat(hub, change.connection, caller.person_id, chat_id, "commenter")
        _ensure_content(body)
        sent = await chat_records.find_sent_message(change.connection, chat_id, body.client_msg_id)
        if sent is None:
            hub.rates.spend(_SENDING, caller.person_id)
            sent = await _add_message(hub, change, caller, chat, body, origin=origin, digest=digest)
        elif (sent["sender_id"], sent["request_digest"]) != (caller.person_id, digest):
            raise Problem(
                409, "client_msg_id_reused", "another message of this chat has this clientMsgId"
            )
        [message] = await chat_records.to_messages(change.connection, [sent])
    return message


def _ensure_content(body: ChatMessageBody) -> None:
    content = body.content
    if (body.content_type == "attachment") != bool(content.attachments):
        raise Problem(
            400,
            "content_mismatch",
            "attachments belong to the content type attachment, and to no other",
        )
    if not content.attachments and not content.text.strip():
        raise Problem(400, "message_empty", "a message must have a text or an attachment")


async def _add_message(
    hub: HubServices,
    change: HubChange,
    caller: HubCaller,
    chat: RowMapping,
    body: ChatMessageBody,
    *,
    origin: ActionOrigin,
    digest: str,
) -> RowMapping:
    chat_id: str = chat["session_id"]
    await _ensure_still_friends(change, caller, chat)
    if body.reply_to_message_id is not None:
        await _find_message(change, caller, chat_id, body.reply_to_message_id)
    content_body = body.content
    mentioned = await find_mentions(
        change.connection, chat_id, content_body.text, content_body.mentions
    )
    content: dict[str, Any] = {"text": content_body.text}
    if mentioned:
        content["mentions"] = [each["member_id"] for each in mentioned]
    message_id = new_id("msg")
    row = await _insert_message(
        change,
        chat_id,
        message_id=message_id,
        client_msg_id=body.client_msg_id,
        request_digest=digest,
        sender_id=caller.person_id,
        sender_type="user",
        content=content,
        content_type=body.content_type,
        reply_to_message_id=body.reply_to_message_id,
    )
    if content_body.attachments:
        content["attachments"] = await take_attachments(
            change, caller.person_id, chat_id, message_id, content_body.attachments
        )
    agents = [each for each in mentioned if each["member_type"] == "agent"]
    if agents:
        content["tasks"] = await create_tasks(
            hub,
            change,
            caller,
            chat,
            agents,
            message_id=message_id,
            prompt=content_body.text,
            origin=origin,
        )
    if content_body.attachments or agents:
        row = await _write_content(change, message_id, content)
    await _write_read_mark(change, chat_id, caller.person_id, row["seq_id"])
    _emit_message(change, row)
    return row


async def _ensure_still_friends(change: HubChange, caller: HubCaller, chat: RowMapping) -> None:
    if chat["type"] != "private":
        return
    others = select(chat_members.c.member_id).where(
        chat_members.c.session_id == chat["session_id"],
        chat_members.c.member_type == "user",
        chat_members.c.member_id != caller.person_id,
    )
    friends = set((await change.connection.execute(others)).scalars())
    if not await are_friends(change.connection, caller.person_id, friends):
        raise Problem(403, "not_friends", "you are friends no more; nothing can be added here")


async def _insert_message(
    change: HubChange, chat_id: str, *, content: dict[str, Any], **values: Any
) -> RowMapping:
    """Give a message its number and its row, and have it found; the chat is held until the
    commit.
    """
    added = (
        insert(chat_messages)
        .values(
            session_id=chat_id,
            seq_id=await chat_records.next_seq(change.connection, chat_id),
            content=msgspec.json.encode(content).decode(),
            created_at=change.now,
            **values,
        )
        .returning(chat_messages)
    )
    row = (await change.connection.execute(added)).mappings().one()
    await index_message(change.connection, row["number"], chat_id, content["text"])
    return row


async def _write_content(
    change: HubChange, message_id: str, content: dict[str, Any], **values: Any
) -> RowMapping:
    """Store what a message says now, and have it found by that."""
    written = (
        update(chat_messages)
        .where(chat_messages.c.message_id == message_id)
        .values(content=msgspec.json.encode(content).decode(), **values)
        .returning(chat_messages)
    )
    row = (await change.connection.execute(written)).mappings().one()
    await remove_from_index(change.connection, row["number"])
    await index_message(change.connection, row["number"], row["session_id"], content["text"])
    return row


def _emit_message(change: HubChange, row: RowMapping) -> None:
    change.emit(
        audience_of_chat(row["session_id"]),
        "message.new",
        chat_records.to_message_frame(row),
        subject=row["message_id"],
    )


async def _emit_edit(change: HubChange, row: RowMapping) -> None:
    message_id: str = row["message_id"]
    # The newest content is all that a reader needs, however late they read.
    await change.drop_events(message_id, "message.edited")
    edited = MessageEdited(
        message_id=message_id,
        session_id=row["session_id"],
        content=msgspec.json.decode(row["content"]),
        edited_at=format_time(row["edited_at"]),
    )
    change.emit(audience_of_chat(row["session_id"]), "message.edited", edited, subject=message_id)


async def _find_message(
    change: HubChange, caller: HubCaller, chat_id: str, message_id: str
) -> RowMapping:
    row = await chat_records.find_message(change.connection, caller.person_id, chat_id, message_id)
    if row is None:
        raise unknown_message()
    return row


async def _find_standing_message(
    change: HubChange, caller: HubCaller, chat_id: str, message_id: str
) -> RowMapping:
    """A message that was not recalled; raises `Problem`."""
    row = await _find_message(change, caller, chat_id, message_id)
    if row["recalled_at"] is not None:
        raise Problem(409, "message_recalled", "this message was recalled")
    return row


async def _read_message(
    change: HubChange, caller: HubCaller, chat_id: str, message_id: str
) -> ChatMessage:
    row = await _find_message(change, caller, chat_id, message_id)
    [message] = await chat_records.to_messages(change.connection, [row])
    return message


async def edit_message(
    hub: HubServices, caller: HubCaller, chat_id: str, message_id: str, body: EditBody
) -> ChatMessage:
    """Change the text of a message that the caller sent a while ago; agents that it mentions now
    get no task. Raises `Problem`.
    """
    spend_change(hub, caller, "edit")
    async with hub.events.change() as change:
        chat = await lock_chat(hub, change.connection, caller.person_id, chat_id, "commenter")
        row = await _find_standing_message(change, caller, chat_id, message_id)
        if row["sender_id"] != caller.person_id:
            raise Problem(403, "not_the_sender", "only its sender may edit a message")
        if change.now - row["created_at"] > EDIT_SECONDS * _MILLISECONDS:
            raise Problem(
                409, "edit_too_late", f"a message can be edited for {EDIT_SECONDS // 60} minutes"
            )
        await _ensure_still_friends(change, caller, chat)
        content: dict[str, Any] = msgspec.json.decode(row["content"])
        if not body.text.strip() and "attachments" not in content:
            raise Problem(400, "message_empty", "a message must have a text or an attachment")
        mentioned = await find_mentions(change.connection, chat_id, body.text, body.mentions)
        content.pop("mentions", None)
        content["text"] = body.text
        if mentioned:
            content["mentions"] = [each["member_id"] for each in mentioned]
        row = await _write_content(change, message_id, content, edited_at=change.now)
        await _emit_edit(change, row)
        return await _read_message(change, caller, chat_id, message_id)


async def recall_message(
    hub: HubServices, caller: HubCaller, chat_id: str, message_id: str
) -> ChatMessage:
    """Take a message back, everywhere; twice is once. Raises `Problem`."""
    spend_change(hub, caller, "recall")
    async with hub.events.change() as change:
        chat = await lock_chat(hub, change.connection, caller.person_id, chat_id)
        row = await _find_message(change, caller, chat_id, message_id)
        if row["recalled_at"] is None:
            _ensure_may_recall(caller, chat, row, change.now)
            await _recall(change, row, caller.person_id)
        return await _read_message(change, caller, chat_id, message_id)


def _ensure_may_recall(caller: HubCaller, chat: RowMapping, row: RowMapping, now: int) -> None:
    if chat["type"] == "group" and chat["owner_id"] == caller.person_id:
        return
    if row["sender_id"] != caller.person_id:
        raise Problem(
            403, "not_the_sender", "only its sender or the owner of a group may recall a message"
        )
    if now - row["created_at"] > RECALL_SECONDS * _MILLISECONDS:
        raise Problem(
            409, "recall_too_late", f"a message can be recalled for {RECALL_SECONDS // 60} minutes"
        )


async def _recall(change: HubChange, row: RowMapping, person_id: str) -> None:
    message_id, connection = row["message_id"], change.connection
    # That it was edited goes with the edit, which is gone from the log, too.
    forgotten = {"edited_at": None, "pinned_at": None, "pinned_by": None}
    recalled = {"recalled_at": change.now, "recalled_by": person_id}
    await chat_records.update_message(connection, message_id, content="{}", **recalled, **forgotten)
    reactions = delete(chat_reactions).where(chat_reactions.c.message_id == message_id)
    await connection.execute(reactions)
    await remove_from_index(connection, row["number"])
    await drop_attachments(connection, message_id)
    emptied = msgspec.structs.replace(chat_records.to_message_frame(row), content={})
    await change.replace_events(message_id, "message.new", emptied)
    await change.drop_events(message_id, "message.edited")
    frame = MessageRecall(
        message_id=message_id,
        session_id=row["session_id"],
        recalled_by=person_id,
        recalled_at=format_time(change.now),
    )
    change.emit(audience_of_chat(row["session_id"]), "message.recall", frame)


async def pin_message(
    hub: HubServices, caller: HubCaller, chat_id: str, message_id: str
) -> ChatMessage:
    """Pin a message for everybody in its chat; twice is once. Raises `Problem`."""
    spend_change(hub, caller, "pin")
    async with hub.events.change() as change:
        await lock_chat(hub, change.connection, caller.person_id, chat_id, "commenter")
        row = await _find_standing_message(change, caller, chat_id, message_id)
        if row["pinned_at"] is None:
            pinned = await chat_records.list_pins(change.connection, caller.person_id, chat_id)
            if len(pinned) >= PINS:
                raise Problem(409, "too_many_pins", f"a chat has at most {PINS} pins; unpin one")
            await chat_records.update_message(
                change.connection, message_id, pinned_at=change.now, pinned_by=caller.person_id
            )
            frame = MessagePin(
                message_id=message_id,
                session_id=chat_id,
                pinned_by=caller.person_id,
                pinned_at=format_time(change.now),
            )
            change.emit(audience_of_chat(chat_id), "message.pin", frame)
        return await _read_message(change, caller, chat_id, message_id)


async def unpin_message(hub: HubServices, caller: HubCaller, chat_id: str, message_id: str) -> None:
    """Take a pin away, whoever set it; raises `Problem`."""
    spend_change(hub, caller, "pin")
    async with hub.events.change() as change:
        await lock_chat(hub, change.connection, caller.person_id, chat_id, "commenter")
        row = await _find_message(change, caller, chat_id, message_id)
        if row["pinned_at"] is not None:
            await chat_records.update_message(
                change.connection, message_id, pinned_at=None, pinned_by=None
            )
            frame = MessageUnpin(message_id=message_id, session_id=chat_id)
            change.emit(audience_of_chat(chat_id), "message.unpin", frame)


async def set_reaction(
    hub: HubServices,
    caller: HubCaller,
    chat_id: str,
    message_id: str,
    emoji: str,
    *,
    present: bool,
) -> ChatMessage:
    """React to a message, or take a reaction back; twice is once. Raises `Problem`."""
    spend_change(hub, caller, "reaction")
    async with hub.events.change() as change:
        connection = change.connection
        await lock_chat(hub, connection, caller.person_id, chat_id, "commenter")
        await _find_standing_message(change, caller, chat_id, message_id)
        if not _is_emoji(emoji):
            raise Problem(
                400, "reaction_unusable", "a reaction must be a few characters, and no white space"
            )
        own = (
            chat_reactions.c.message_id == message_id,
            chat_reactions.c.emoji == emoji,
            chat_reactions.c.person_id == caller.person_id,
        )
        existing = (await connection.execute(select(chat_reactions).where(*own))).first()
        if present is (existing is None):
            if present:
                await _add_reaction(change, caller, message_id, emoji)
            else:
                await connection.execute(delete(chat_reactions).where(*own))
            frame = MessageReaction(
                message_id=message_id,
                session_id=chat_id,
                user_id=caller.person_id,
                emoji=emoji,
                removed=not present,
            )
            change.emit(audience_of_chat(chat_id), "message.reaction", frame)
        return await _read_message(change, caller, chat_id, message_id)


def _is_emoji(text: str) -> bool:
    """Pictures can have joiners in them, which are not printable."""
    shown = text.replace("\u200d", "")
    return (
        0 < len(text) <= EMOJI_CHARACTERS
        and shown.isprintable()
        and not any(map(str.isspace, text))
    )


async def _add_reaction(change: HubChange, caller: HubCaller, message_id: str, emoji: str) -> None:
    kinds = select(func.count(chat_reactions.c.emoji.distinct())).where(
        chat_reactions.c.message_id == message_id, chat_reactions.c.emoji != emoji
    )
    if (await change.connection.execute(kinds)).scalar_one() >= REACTIONS:
        raise Problem(
            409, "too_many_reactions", f"a message has at most {REACTIONS} different reactions"
        )
    await change.connection.execute(
        insert(chat_reactions).values(
            message_id=message_id,
            emoji=emoji,
            person_id=caller.person_id,
            created_at=change.now,
        )
    )


async def mark_read(hub: HubServices, caller: HubCaller, chat_id: str, seq_id: int) -> Chat:
    """Note how far the caller has read; a mark never goes back, nor past the newest message.
    Raises `Problem`.
    """
    async with hub.events.change() as change:
        chat = await lock_chat(hub, change.connection, caller.person_id, chat_id)
        reached = min(seq_id, chat["last_seq"])
        if reached > chat["last_read_seq"]:
            await _write_read_mark(change, chat_id, caller.person_id, reached)
            at = select(chat_messages.c.message_id).where(
                chat_messages.c.session_id == chat_id, chat_messages.c.seq_id == reached
            )
            frame = MessageRead(
                message_id=(await change.connection.execute(at)).scalar_one(),
                session_id=chat_id,
                read_by=caller.person_id,
                last_read_seq=reached,
            )
            change.emit(audience_of_chat(chat_id), "message.read", frame)
        row = await lock_chat(hub, change.connection, caller.person_id, chat_id)
    return chat_records.to_chat(row)


async def _write_read_mark(change: HubChange, chat_id: str, person_id: str, seq_id: int) -> None:
    await change.connection.execute(
        update(chat_members)
        .where(chat_members.c.session_id == chat_id, chat_members.c.member_id == person_id)
        .values(last_read_seq=seq_id)
    )


async def upsert_agent_message(
    change: HubChange, task_id: str, session_id: str, agent_member: str, text: str, *, final: bool
) -> str | None:
    """Have the chat show what an agent has said so far for a task: one message, kept current. It
    changes once in a while only, and in any case when it is `final`. Returns the id of the message,
    None where there is none: nothing was said, the chat or the agent's place in it is gone, or
    somebody recalled it.
    """
    connection = change.connection
    chat = await chat_records.lock_chat_row(connection, session_id)
    if chat is None or chat["dissolved_at"] is not None:
        return None
    if await chat_records.find_member(connection, session_id, agent_member) is None:
        return None
    shown = text[:MESSAGE_CHARACTERS]
    content: dict[str, Any] = {"text": shown, "task": task_id, "final": final}
    if len(shown) < len(text):
        content["truncated"] = True
    # No id that a person may choose has a space in it.
    client_msg_id = f"task {task_id}"
    sent = await chat_records.find_sent_message(connection, session_id, client_msg_id)
    if sent is None:
        return await _begin_agent_message(change, session_id, agent_member, client_msg_id, content)
    if sent["recalled_at"] is not None:
        return None
    since = abs(change.now - (sent["edited_at"] or sent["created_at"]))
    is_due = final or since >= AGENT_EDIT_SECONDS * _MILLISECONDS
    if is_due and msgspec.json.decode(sent["content"]) != content:
        row = await _write_content(change, sent["message_id"], content, edited_at=change.now)
        await _emit_edit(change, row)
    return sent["message_id"]


async def _begin_agent_message(
    change: HubChange,
    chat_id: str,
    agent_member: str,
    client_msg_id: str,
    content: dict[str, Any],
) -> str | None:
    if not content["text"]:
        return None
    message_id = new_id("msg")
    row = await _insert_message(
        change,
        chat_id,
        message_id=message_id,
        client_msg_id=client_msg_id,
        request_digest="",
        sender_id=agent_member,
        sender_type="agent",
        content=content,
        content_type="markdown",
    )
    _emit_message(change, row)
    return message_id

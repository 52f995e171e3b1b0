"""Files of messages: stored under their own hash, read by members of the chat alone.

An upload is nobody's but its uploader's until a message names it; then it goes with the message,
also when that is recalled. Content that no row names any more is removed once a day. A name is text
to show, never a path, and what is downloaded is to be saved, never to be shown.
"""

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.chat_resources import Attachment, AttachmentBody
from factwire.hub.chats.chat_members import find_chat
from factwire.hub.frames.event_log import HubChange
from factwire.hub.limits import ATTACHMENT_NAME_CHARACTERS, ATTACHMENTS_PER_MINUTE, UNSENT_SECONDS
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records import chat_records
from factwire.hub.records.chat_tables import chat_attachments
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.people_records import format_time
from factwire.hub.request_rates import Rate
from factwire.journal.blobs import BlobError
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger

_UPLOADING: Final = Rate("attachment", ATTACHMENTS_PER_MINUTE)
_MILLISECONDS: Final = 1_000
_COLLECT_SECONDS: Final = 24 * 3_600.0
_KIND: Final = "artifact"
_log: Final = logger("factwire.hub")


async def upload_attachment(
    hub: HubServices,
    caller: HubCaller,
    chat_id: str,
    body: AttachmentBody,
    attachment_id: str | None = None,
) -> Attachment:
    """Store a file for a message of a chat; an id that exists already is a repeat. Raises
    `Problem`.
    """
    hub.rates.spend(_UPLOADING, caller.person_id)
    name = clean_name(body.name)
    async with hub.database.read() as connection:
        await find_chat(hub, connection, caller.person_id, chat_id, "commenter")
    # Before the transaction, in which nothing but the database is waited for.
    stored = await hub.attachments.put(body.content, kind=_KIND)
    chosen = attachment_id or new_id("att")
    async with hub.database.write() as connection:
        await find_chat(hub, connection, caller.person_id, chat_id, "commenter")
        row = await chat_records.find_attachment(connection, caller.person_id, chat_id, chosen)
        if row is None:
            added = (
                insert(chat_attachments)
                .values(
                    attachment_id=chosen,
                    session_id=chat_id,
                    uploaded_by=caller.person_id,
                    name=name,
                    media_type=body.media_type,
                    bytes=stored.bytes,
                    ref=stored.ref,
                    created_at=hub.now(),
                )
                .returning(chat_attachments)
            )
            row = (await connection.execute(added)).mappings().one()
    return Attachment(
        attachment_id=row["attachment_id"],
        name=row["name"],
        media_type=row["media_type"],
        bytes=row["bytes"],
        created_at=format_time(row["created_at"]),
    )


def clean_name(name: str) -> str:
    """The last part of a file's name, without what no reader can see; raises `Problem`."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    # Unprintable are also the marks that turn the direction of writing, and with it an extension.
    shown = "".join(filter(str.isprintable, last)).strip(" .")[:ATTACHMENT_NAME_CHARACTERS]
    if not shown:
        raise Problem(400, "name_unusable", "a file must have a name of printable characters")
    return shown


def to_disposition(name: str) -> str:
    """The header that has a browser save a file under its name (RFC 6266)."""
    plain = "".join(
        each if each.isascii() and (each.isalnum() or each in "-._") else "_" for each in name
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


async def find_attachment(
    hub: HubServices, caller: HubCaller, chat_id: str, attachment_id: str
) -> RowMapping:
    """An attachment that the caller may read; raises `Problem`."""
    async with hub.database.read() as connection:
        await find_chat(hub, connection, caller.person_id, chat_id)
        row = await chat_records.find_attachment(
            connection, caller.person_id, chat_id, attachment_id
        )
    if row is None:
        raise _unknown_attachment()
    return row


def read_content(hub: HubServices, row: RowMapping) -> AsyncIterator[bytes]:
    return hub.attachments.get(row["ref"])


async def take_attachments(
    change: HubChange, person_id: str, chat_id: str, message_id: str, attachment_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Make uploads of a person those of a message, and describe them; raises `Problem`."""
    described: list[dict[str, Any]] = []
    for attachment_id in dict.fromkeys(attachment_ids):
        taken = (
            update(chat_attachments)
            .where(
                chat_attachments.c.attachment_id == attachment_id,
                chat_attachments.c.session_id == chat_id,
                chat_attachments.c.uploaded_by == person_id,
                chat_attachments.c.message_id.is_(None),
            )
            .values(message_id=message_id)
            .returning(chat_attachments)
        )
        row = (await change.connection.execute(taken)).mappings().one_or_none()
        if row is None:
            raise _unknown_attachment()
        described.append(
            {
                "id": row["attachment_id"],
                "name": row["name"],
                "type": row["media_type"],
                "bytes": row["bytes"],
            }
        )
    return described


async def drop_attachments(connection: AsyncConnection, message_id: str) -> None:
    """Let nobody read the files of a message any more."""
    await connection.execute(
        delete(chat_attachments).where(chat_attachments.c.message_id == message_id)
    )


def _unknown_attachment() -> Problem:
    return Problem(404, "unknown_attachment", "no attachment that you may use has this id")


async def collect_attachments(hub: HubServices) -> int:
    """Remove uploads that were never sent, and content that nothing names; returns how many blobs
    are gone.
    """
    before = hub.now() - UNSENT_SECONDS * _MILLISECONDS
    async with hub.database.write() as connection:
        await connection.execute(
            delete(chat_attachments).where(
                chat_attachments.c.message_id.is_(None), chat_attachments.c.created_at < before
            )
        )

    async def list_used() -> AsyncIterator[str]:
        async with hub.database.read() as connection:
            used = (await connection.execute(select(chat_attachments.c.ref).distinct())).scalars()
            for ref in list(used):
                yield ref

    return len((await hub.attachments.collect_garbage(list_used)).removed)


@asynccontextmanager
async def run_daily_collection(hub: HubServices) -> AsyncGenerator[None]:
    """Remove files that no message has any more, for as long as the block lasts."""
    collecting = asyncio.create_task(_collect_daily(hub), name="factwire-attachments")
    try:
        yield
    finally:
        collecting.cancel()
        await asyncio.wait((collecting,))


async def _collect_daily(hub: HubServices) -> None:
    """Do that now and once a day, until it is cancelled; what cannot be done today can tomorrow."""
    while True:
        try:
            removed = await collect_attachments(hub)
            if removed:
                _log.info("attachments_removed", blobs=removed)
        except (RecordsUnavailable, BlobError) as error:
            _log.warning("attachments_not_removed", detail=str(error))
        await asyncio.sleep(_COLLECT_SECONDS)

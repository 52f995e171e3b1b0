"""Mentions: who a message names, and the tasks that agents get by it.

A member is named by its id in `content.mentions`; an agent also by `@` and its exact name in this
chat, of several names the longest that stands there. Nothing is guessed: what is no member's name
is text. A task is created in the transaction of its message, by the rights of whoever sends it:
where they may not use the agent, neither of the two is written.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from sqlalchemy import or_, select
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.frames.event_log import HubChange
from factwire.hub.limits import MENTIONS
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.chat_tables import chat_members
from factwire.hub.records.device_tables import devices
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.serving.asgi import Problem


async def find_mentions(
    connection: AsyncConnection, chat_id: str, text: str, member_ids: Sequence[str]
) -> list[RowMapping]:
    """The members that a message mentions, in the order of their joining; raises `Problem` for an
    id that is no member's.
    """
    if "@" not in text and not member_ids:
        return []
    query = (
        select(chat_members)
        .where(
            chat_members.c.session_id == chat_id,
            or_(chat_members.c.member_id.in_(member_ids), chat_members.c.member_type == "agent"),
        )
        .order_by(chat_members.c.joined_order)
    )
    rows = list((await connection.execute(query)).mappings())
    missing = set(member_ids) - {row["member_id"] for row in rows}
    if missing:
        raise Problem(400, "mention_unknown", "a mention must be the id of a member of this chat")
    agents = {row["name"]: row["member_id"] for row in rows if row["member_type"] == "agent"}
    named = {agents[name] for name in find_names(text, list(agents))} | set(member_ids)
    if len(named) > MENTIONS:
        raise Problem(400, "too_many_mentions", f"a message mentions at most {MENTIONS} members")
    return [row for row in rows if row["member_id"] in named]


def find_names(text: str, names: Sequence[str]) -> Iterator[str]:
    """Which of these names stand in a text behind an `@`."""
    if not names:
        return
    longest_first = sorted(names, key=len, reverse=True)
    options = "|".join(re.escape(name) for name in longest_first)
    for match in re.finditer(rf"(?<!\w)@({options})(?!\w)", unicodedata.normalize("NFC", text)):
        yield match[1]


async def create_tasks(
    hub: HubServices,
    change: HubChange,
    caller: HubCaller,
    chat: RowMapping,
    agents: Sequence[RowMapping],
    *,
    message_id: str,
    prompt: str,
    origin: ActionOrigin,
) -> list[dict[str, str]]:
    """Give agents of a chat what a message says as their task; raises `Problem`."""
    if hub.chat_links is None:
        raise Problem(409, "agents_unavailable", "this Hub cannot give tasks to agents")
    created: list[dict[str, str]] = []
    for agent in agents:
        try:
            task_id = await hub.chat_links.create_task(
                change,
                person_id=caller.person_id,
                device_id=agent["device_id"],
                agent_type=agent["agent_type"],
                prompt=prompt,
                target_id=agent["target_id"],
                thread_id=await _find_thread(change.connection, chat, agent),
                screen_id=caller.session_id,
                session_id=chat["session_id"],
                agent_instance_id=agent["member_id"],
                trigger_message_id=message_id,
                display_name=agent["name"],
                origin=origin,
            )
        except Problem as problem:
            if problem.code not in ("unknown_device", "unknown_target"):
                raise
            raise _not_operator(agent["name"]) from problem
        created.append({"member": agent["member_id"], "task": task_id})
    return created


def _not_operator(name: str) -> Problem:
    # The agent is a member of the chat, so that there is nothing to hide.
    detail = f"you may not give tasks to {name}; the message was not sent. Write without @{name}"
    return Problem(403, "agent_not_operated", detail)


async def _find_thread(
    connection: AsyncConnection, chat: RowMapping, agent: RowMapping
) -> str | None:
    """The thread that a task goes on with: that of the chat, if the agent is on its machine."""
    if chat["type"] != "thread":
        return None
    query = select(devices.c.edge_id).where(devices.c.device_id == agent["device_id"])
    edge_id = (await connection.execute(query)).scalar_one_or_none()
    return chat["thread_id"] if edge_id == chat["edge_id"] else None

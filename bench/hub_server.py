"""The Hub that the benchmark of its sockets reads from, as `python -m bench.edge_servers hub`.

Sockets come in as somebody who is signed in, each as another person; `?n=` says who. Ticks go to
the members of a chat as live events do, without a database, as those of the Edge beside it come
without a journal. Messages are sent to that chat, committed to SQLite and read from there.
"""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from sqlalchemy import insert

from bench.edge_servers import Answer, Publisher, Ticks, list_transports, serve_application
from factwire.hub.chat_resources import ChatMessageBody, ContentBody
from factwire.hub.chats import chat_messages
from factwire.hub.frames.event_log import HubEvent
from factwire.hub.frames.hub_socket import HubSocket
from factwire.hub.hub_guard import CALLER
from factwire.hub.hub_startup import OpenHub, open_hub
from factwire.hub.people.accounts import HubCaller
from factwire.hub.records.chat_tables import chat_members, chats
from factwire.hub.records.hub_tables import audit_log, people
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.runtime.configuration import HubSettings
from factwire.serving.streams import FactwireHttpProtocol, socket_settings

CHAT = "ses_bench"
AUDIENCE = f"chat:{CHAT}"
PEOPLE = 1_000


async def hub(stack: AsyncExitStack) -> tuple[int, Answer]:
    """A Hub whose sockets are read; those of the first people are in the chat."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    minutes = count(0, 60)
    # Limits of a minute are no part of what is measured.
    opened = await stack.enter_async_context(
        open_hub(folder, HubSettings(), url="http://bench", timer=lambda: float(next(minutes)))
    )
    await _add_people(opened)
    sockets = HubSocket(opened.services, asyncio.get_running_loop().time)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        number = int(parse_qs(scope["query_string"].decode()).get("n", ["0"])[0])
        scope.setdefault("state", {})[CALLER] = _caller(number)
        await sockets(scope, receive, send)

    server, port = await serve_application(
        application, http=FactwireHttpProtocol, **socket_settings()
    )
    publisher, ticks = Publisher(lambda: list_transports(server)), Ticks()
    connections, live = opened.services.connections, opened.services.connections.live

    async def publish() -> None:
        live.pass_on(_to_events(ticks))
        await asyncio.sleep(0)

    async def answer(words: list[str]) -> dict[str, Any]:
        if words[0] == "publish":
            await publisher.run(int(words[1]), publish)
        elif words[0] == "join":
            await _join(opened, int(words[1]))
        elif words[0] == "message":
            start = time.perf_counter()
            await _send_message(opened, words[1])
            return {"seconds": time.perf_counter() - start}
        elif words[0] == "commit":
            start = time.perf_counter()
            await _commit(opened, words[1])
            return {"seconds": time.perf_counter() - start}
        return {"readers": connections.screen_count}

    return port, answer


def _caller(number: int) -> HubCaller:
    person = f"usr_{number}"
    return HubCaller(person_id=person, session_id=f"ses_{person}", name=person, role="member")


async def _add_people(opened: OpenHub) -> None:
    rows = [
        {
            "person_id": f"usr_{number}",
            "name": f"{number}",
            "name_key": f"{number}",
            "role": "member",
            "password_hash": "",
            "created_at": 0,
        }
        for number in range(PEOPLE)
    ]
    async with opened.services.database.write() as connection:
        await connection.execute(insert(people), rows)


async def _join(opened: OpenHub, number: int) -> None:
    """Make a group of the first people."""
    chat = {
        "session_id": CHAT,
        "type": "group",
        "name": "Everybody",
        "description": "",
        "owner_id": "usr_0",
        "last_seq": 0,
        "created_at": 0,
    }
    members = [
        {
            "session_id": CHAT,
            "member_id": f"usr_{each}",
            "member_type": "user",
            "name": f"{each}",
            "added_by": "usr_0",
            "joined_at": 0,
            "joined_order": each,
            "last_read_seq": 0,
        }
        for each in range(number)
    ]
    async with opened.services.events.change() as change:
        await change.connection.execute(insert(chats), [chat])
        await change.connection.execute(insert(chat_members), members)
        for each in range(number):
            change.join(AUDIENCE, f"usr_{each}")


async def _send_message(opened: OpenHub, number: str) -> None:
    body = ChatMessageBody(client_msg_id=number, content=ContentBody(text=f"hello {number}"))
    origin = ActionOrigin(via="bench", address="")
    await chat_messages.send_message(opened.services, _caller(0), CHAT, body, origin)


async def _commit(opened: OpenHub, number: str) -> None:
    """The least that is durable: a row, and a commit."""
    async with opened.services.database.write() as connection:
        entry = {"at": 0, "action": "bench", "via": "bench", "address": "", "details": number}
        await connection.execute(insert(audit_log), [entry])


def _to_events(ticks: Ticks) -> list[HubEvent]:
    """A tick; the last event is of another chat."""
    first = ticks.seq + 1_000_000_000
    ticks.seq += len(ticks.lines)
    last = len(ticks.lines) - 1
    return [
        HubEvent(
            seq=first + at,
            audience=AUDIENCE if at < last else "chat:other",
            type="agent.stream",
            payload=line,
            created_at=0,
        )
        for at, line in enumerate(ticks.lines)
    ]

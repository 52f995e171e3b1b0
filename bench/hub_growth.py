"""What ten times as much of everything costs somebody who uses a Hub.

Two Hubs differ in one thing: one has ten times the people, sign-in sessions, devices, chats,
messages, tasks and approvals. Most of these are other people's; of the messages, tasks and
approvals, the person who asks has ten times as many too. Each request goes through the whole
application, in both Hubs by turns.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
from sqlalchemy import Table, insert

from bench.measure import Row
from factwire.hub.chats.message_search import index_message
from factwire.hub.hub_startup import OpenHub, open_hub
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.records.approval_tables import approvals
from factwire.hub.records.chat_tables import chat_members, chat_messages, chats
from factwire.hub.records.device_tables import devices, edges
from factwire.hub.records.event_tables import audience_members
from factwire.hub.records.hub_tables import people, sessions
from factwire.hub.records.link_tables import agent_tasks
from factwire.runtime.action_cards import shown_hash
from factwire.runtime.configuration import HubSettings

TIMES: Final = 10
_ROUNDS: Final = 40
_PEOPLE: Final = 100
_OWN_CHATS: Final = 20
_OWN_DEVICES: Final = 5
_MESSAGES: Final = 30
"""Messages of each chat."""

_TASKS: Final = 20
"""Tasks of each device; the newest approvals of the person who asks are as many as rounds."""

_AT_ONCE: Final = 50
"""Chats that are filled in one transaction."""

_URL: Final = "http://127.0.0.1"
_DAY: Final = 24 * 3_600_000

_Rows = list[dict[str, Any]]


class FilledHub:
    """A Hub and somebody who is signed in; `usr_0` has the same chats and devices in every Hub."""

    def __init__(self, hub: OpenHub, http: httpx.AsyncClient) -> None:
        self.hub = hub
        self._http = http
        self._now = hub.services.now()
        self.access_token = hub.services.tokens.issue_access("usr_0", "ses_0_0")
        self._headers = {"authorization": f"Bearer {self.access_token}"}

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._http.request(method, path, json=body, headers=self._headers)
        assert answer.is_success, answer.text
        return answer.json()

    async def fill(self, times: int) -> None:
        """Write what many people would have left in a while."""
        everybody = range(_PEOPLE * times)
        await self._insert(people, [self._person(each) for each in everybody])
        await self._insert(
            sessions, [self._session(each, place) for each in everybody for place in range(3)]
        )
        owners = [0] * (_OWN_DEVICES - 1) + list(everybody)
        await self._insert(devices, [self._device(*each) for each in enumerate(owners)])
        await self._insert(edges, [self._edge(*each) for each in enumerate(owners)])
        members = [(0, chat) for chat in range(_OWN_CHATS)]
        members += [(person, _OWN_CHATS + person) for person in everybody]
        await self._insert(chats, [self._chat(chat, owner, times) for owner, chat in members])
        # In each of those there is also the person before.
        members += [(person, _OWN_CHATS + person + 1) for person in everybody[:-1]]
        await self._insert(chat_members, [self._member(*each) for each in members])
        audiences = [(f"chat:{_chat_id(chat)}", person) for person, chat in members]
        audiences += [(f"device:dev_{number}", owner) for number, owner in enumerate(owners)]
        await self._insert(
            audience_members,
            [
                {"audience": name, "person_id": f"usr_{person}", "from_seq": 0}
                for name, person in audiences
            ],
        )
        await self._fill_chats(_OWN_CHATS + len(everybody), times)
        own = [owners[number] == 0 for number in range(len(owners))]
        numbers = [
            (number, place)
            for number, is_own in enumerate(own)
            for place in range(_TASKS * (times if is_own else 1))
        ]
        await self._insert(agent_tasks, [self._task(*each, owners[each[0]]) for each in numbers])
        rows = [self._approval(*each, "applied") for each in numbers]
        rows += [
            self._approval(place % _OWN_DEVICES, 10**6 + place, "asked") for place in range(_ROUNDS)
        ]
        await self._insert(approvals, rows)

    async def _fill_chats(self, number: int, times: int) -> None:
        numbers = count(1)
        for first in range(0, number, _AT_ONCE):
            async with self.hub.services.database.write() as connection:
                for chat in range(first, min(number, first + _AT_ONCE)):
                    size = _MESSAGES * (times if chat < _OWN_CHATS else 1)
                    added = [self._message(next(numbers), chat, seq) for seq in range(1, size + 1)]
                    await connection.execute(insert(chat_messages), added)
                    for row in added:
                        words = f"a common word and w{row['number']}"
                        await index_message(connection, row["number"], row["session_id"], words)

    async def _insert(self, table: Table, rows: _Rows) -> None:
        async with self.hub.services.database.write() as connection:
            await connection.execute(insert(table), rows)

    def _person(self, number: int) -> dict[str, Any]:
        name = f"usr_{number}"
        return {
            "person_id": name,
            "name": name,
            "name_key": name,
            "role": "member",
            "password_hash": "-",
            "created_at": self._now + number,
        }

    def _session(self, person: int, place: int) -> dict[str, Any]:
        return {
            "session_id": f"ses_{person}_{place}",
            "person_id": f"usr_{person}",
            "created_at": self._now,
            "last_used_at": self._now,
            "expires_at": self._now + 90 * _DAY,
            "token_digest": digest_of(f"{person} {place}"),
            "rotated_at": self._now,
            "address": "",
            "user_agent": "",
        }

    def _device(self, number: int, owner: int) -> dict[str, Any]:
        return {
            "device_id": f"dev_{number}",
            "person_id": f"usr_{owner}",
            "session_id": f"ses_dev_{number}",
            "kind": "edge",
            "name": "laptop",
            "edge_id": f"edge_{number}",
            "platform": "linux",
            "version": "1",
            "agents": '["demo"]',
            "created_at": self._now + number,
            "last_seen_at": self._now,
            "online": False,
        }

    def _edge(self, number: int, owner: int) -> dict[str, Any]:
        return {
            "edge_id": f"edge_{number}",
            "person_id": f"usr_{owner}",
            "device_id": f"dev_{number}",
            "created_at": self._now + number,
        }

    def _chat(self, number: int, owner: int, times: int) -> dict[str, Any]:
        return {
            "session_id": _chat_id(number),
            "type": "group",
            "name": f"Chat {number}",
            "description": "",
            "owner_id": f"usr_{owner}",
            "last_seq": _MESSAGES * (times if number < _OWN_CHATS else 1),
            "created_at": self._now + number,
        }

    def _member(self, person: int, chat: int) -> dict[str, Any]:
        return {
            "session_id": _chat_id(chat),
            "member_id": f"usr_{person}",
            "member_type": "user",
            "name": f"usr_{person}",
            "added_by": f"usr_{person}",
            "joined_at": self._now + chat,
            "joined_order": person,
            "last_read_seq": 0,
        }

    def _message(self, number: int, chat: int, seq: int) -> dict[str, Any]:
        return {
            "number": number,
            "message_id": f"msg_{number}",
            "session_id": _chat_id(chat),
            "seq_id": seq,
            "client_msg_id": f"m{number}",
            "request_digest": "",
            "sender_id": "usr_0",
            "sender_type": "user",
            "content": f'{{"text":"a common word and w{number}"}}',
            "content_type": "text",
            "created_at": self._now + number,
        }

    def _task(self, device: int, place: int, owner: int) -> dict[str, Any]:
        at = self._now + place
        return {
            "task_id": f"tsk_{device}_{place}",
            "person_id": f"usr_{owner}",
            "device_id": f"dev_{device}",
            "agent_instance_id": f"dev_{device} demo",
            "agent_type": "demo",
            "prompt": "help",
            "status": "done",
            "stream_seq": 0,
            "timeout_seconds": 60,
            "created_at": at,
            "updated_at": at,
            "expires_at": at + _DAY,
            "ended_at": at,
        }

    def _approval(self, device: int, place: int, state: str) -> dict[str, Any]:
        shown, args_hash = shown_hash("Run it?", place)
        return {
            "approval_id": f"apr_{device}_{place}",
            "device_id": f"dev_{device}",
            "edge_id": f"edge_{device}",
            "thread_id": "thr_1",
            "action_id": f"act_{device}_{place}",
            "request_id": f"act_{device}_{place}",
            "run_id": "run_1",
            "fact_id": f"fact_{device}_{place}",
            "state": state,
            "kind": "command",
            "risk_level": "low",
            "summary": "Run it?",
            "shown": shown,
            "args_hash": args_hash,
            "required": 1,
            "asked_at": self._now + place,
        }


def _chat_id(number: int) -> str:
    return f"ses_{number:016d}"


@asynccontextmanager
async def open_filled_hub(folder: Path, times: int) -> AsyncGenerator[FilledHub]:
    """A Hub without a socket to listen on, so that only the Hub itself is measured."""
    ticks = count()

    def timer() -> float:
        # Limits of a minute are no part of what is measured.
        return float(next(ticks)) * 60

    async with open_hub(folder, HubSettings(), url=_URL, timer=timer) as hub:
        transport = httpx.ASGITransport(app=hub.application)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url=_URL) as http:
            filled = FilledHub(hub, http)
            await filled.fill(times)
            yield filled


async def _send(hub: FilledHub, number: int) -> None:
    body = {"clientMsgId": f"new{number}", "content": {"text": f"hello {number}"}}
    await hub.request("POST", f"/v1/chats/{_chat_id(3)}/messages", body)


async def _create_task(hub: FilledHub, number: int) -> None:
    device = f"dev_{number % _OWN_DEVICES}"
    body = {"deviceId": device, "agentType": "demo", "prompt": "help"}
    await hub.request("POST", "/v1/agent-tasks", body)


async def _decide(hub: FilledHub, number: int) -> None:
    place = 10**6 + number % _ROUNDS
    body = {"decision": "allow", "argsHash": shown_hash("Run it?", place)[1]}
    path = f"/v1/approvals/apr_{place % _OWN_DEVICES}_{place}/decide"
    await hub.request("POST", path, body)


def _read(path: str) -> Callable[[FilledHub, int], Awaitable[None]]:
    async def read(hub: FilledHub, number: int) -> None:
        del number
        await hub.request("GET", path)

    return read


_REQUESTS: Final[dict[str, Callable[[FilledHub, int], Awaitable[None]]]] = {
    "who I am": _read("/v1/me"),
    "my sign-in sessions": _read("/v1/me/sessions"),
    "my devices": _read("/v1/devices"),
    "a task for a device": _create_task,
    "the newest tasks": _read("/v1/agent-tasks"),
    "the newest approvals": _read("/v1/approvals"),
    "a decision": _decide,
    "my chats": _read("/v1/chats"),
    "the newest messages of a chat": _read(f"/v1/chats/{_chat_id(3)}/messages"),
    "messages around one": _read(f"/v1/chats/{_chat_id(3)}/messages?around=25"),
    "a message to a chat": _send,
    "a search for a word of every message": _read("/v1/messages/search?q=common"),
    "a search for a word of one message": _read("/v1/messages/search?q=w77"),
}


async def _compare(small: FilledHub, large: FilledHub) -> list[Row]:
    rows: list[Row] = []
    for name, request in _REQUESTS.items():
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(_ROUNDS):
            turns = list(zip((small, large), times, strict=True))
            for hub, taken in turns if number % 2 else reversed(turns):
                start = time.perf_counter()
                await request(hub, number)
                taken.append(time.perf_counter() - start)
        medians = [statistics.median(each) * 1_000 for each in times]
        rows.append(
            Row(
                name=f"{name}, with {TIMES} times of everything",
                value=medians[1],
                unit="ms",
                ratio=medians[1] / medians[0],
                baseline="a tenth of it",
                goal="≤ 1.3",
            )
        )
    return rows


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        async with (
            open_filled_hub(Path(name, "small"), 1) as small,
            open_filled_hub(Path(name, "large"), TIMES) as large,
        ):
            return await _compare(small, large)


def rows() -> list[Row]:
    """All rows of the group."""
    return asyncio.run(_measure())

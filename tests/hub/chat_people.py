"""People of a Hub who are friends and talk, and the other parts of the Hub that chats use."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.chats.chat_links import ThreadRight
from factwire.hub.frames.event_log import HubChange
from factwire.hub.records.device_tables import devices
from factwire.serving.asgi import Problem
from tests.hub.hubs import HubPerson, RunningHub


class OwnersLinks:
    """Devices are their owners', threads are those of `threads`, and tasks are written down."""

    def __init__(self) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.threads: dict[tuple[str, str], dict[str, ThreadRight]] = {}

    async def create_task(self, change: HubChange, **fields: Any) -> str:
        names = ("person_id", "device_id", "agent_type", "target_id")
        await self.ensure_operator(change.connection, **{name: fields[name] for name in names})
        self.tasks.append(fields)
        return f"tsk_{len(self.tasks)}"

    async def ensure_operator(
        self,
        connection: AsyncConnection,
        *,
        person_id: str,
        device_id: str,
        agent_type: str,
        target_id: str | None,
    ) -> None:
        assert agent_type
        query = select(devices).where(
            devices.c.device_id == device_id, devices.c.person_id == person_id
        )
        if target_id is not None or (await connection.execute(query)).first() is None:
            raise Problem(404, "unknown_device", "no device that you may use has this id")

    async def may_access_thread(
        self,
        connection: AsyncConnection,
        person_id: str,
        edge_id: str,
        thread_id: str,
        needed: ThreadRight,
    ) -> bool:
        assert connection.in_transaction()
        right = self.threads.get((edge_id, thread_id), {}).get(person_id)
        return right is not None and needed in ("viewer", right)


async def add_device(hub: RunningHub, owner: HubPerson, device_id: str = "dev_1") -> str:
    async with hub.hub.services.database.write() as connection:
        await connection.execute(
            insert(devices).values(
                device_id=device_id,
                person_id=owner.person_id,
                session_id=f"ses_{device_id}",
                kind="edge",
                name="laptop",
                edge_id=f"edge_{device_id}",
                platform="linux",
                version="1",
                agents='["claude"]',
                created_at=1,
                last_seen_at=1,
                online=False,
            )
        )
    return device_id


def name_of(person: HubPerson) -> str:
    return person.signed_in["person"]["name"]


async def befriend(one: HubPerson, other: HubPerson) -> str:
    friend_request = await one.post(
        "/v1/friend-requests", {"personId": other.person_id, "message": "hi"}
    )
    path = f"/v1/friend-requests/{friend_request['requestId']}/accept"
    return (await other.post(path, status=200))["friendshipId"]


async def create_group(
    owner: HubPerson, others: Iterable[HubPerson] = (), name: str = "Team"
) -> str:
    body = {"type": "group", "name": name, "personIds": [each.person_id for each in others]}
    return (await owner.post("/v1/chats", body))["chatId"]


async def say(person: HubPerson, chat_id: str, text: str, status: int = 201, **more: Any) -> Any:
    content = {"text": text, **{name: more.pop(name) for name in ("mentions",) if name in more}}
    body = {"clientMsgId": more.pop("client_msg_id", uuid4().hex), "content": content, **more}
    return await person.post(f"/v1/chats/{chat_id}/messages", body, status=status)


async def texts(person: HubPerson, chat_id: str) -> list[str | None]:
    page = await person.get(f"/v1/chats/{chat_id}/messages")
    return [each["content"].get("text") for each in page["items"]]


async def code_of(person: HubPerson, method: str, path: str, body: Any = None) -> tuple[int, str]:
    answer = await person.request(method, path, body)
    return answer.status_code, answer.json()["code"] if answer.content else ""


async def read_all(person: HubPerson, path: str) -> list[Any]:
    page = await person.get(path)
    rows: list[Any] = page["items"]
    while "next" in page:
        mark = "&" if "?" in path else "?"
        page = await person.get(f"{path}{mark}cursor={page['next']}")
        rows += page["items"]
    return rows


async def sync(person: HubPerson, cursor: str) -> tuple[list[tuple[str, Any]], str]:
    """A person's events about chats after a cursor, and the cursor after them."""
    found: list[tuple[str, Any]] = []
    more = True
    while more:
        page = await person.get(f"/v1/messages/sync?cursor={cursor}&limit=50")
        found += [(each["type"], each["payload"]) for each in page["events"]]
        cursor, more = page["cursor"], page.get("more", False)
    return found, cursor

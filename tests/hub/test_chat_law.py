"""R17 for chats: an old screen and the events since then show what a new screen shows."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from factwire.hub.chats import chat_members, chat_messages
from factwire.hub.frames.frame_types import FRAMES
from factwire.hub.records.invitation_records import ActionOrigin
from tests.hub.chat_people import OwnersLinks, add_device, befriend, create_group, say, sync
from tests.hub.chat_screen import ChatScreen, load_screen
from tests.hub.hubs import HubPerson, RunningHub, running_hub
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer
from tests.trials import TRIAL_SECONDS, count_trials

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio

NAMES: Final = ("Ada", "Bo", "Cy")
EMOJI: Final = ("👍", "❤️", "🎉")
THREAD: Final = ("edge_dev_1", "t1")
CHAT_EVENTS: Final = frozenset(
    name for name in FRAMES if name.startswith(("message.", "session.", "friend."))
)
MESSAGES_AT_MOST: Final = 150
_SIGN_IN_SECONDS: Final = 600
"""Tokens are valid for longer than this and what one schedule takes."""


class Talk:
    """A few people who do at random whatever can be done, and whose answers nobody minds: what is
    refused changes nothing.
    """

    def __init__(self, hub: RunningHub, links: OwnersLinks, seed: int) -> None:
        self.hub = hub
        self.links = links
        self.random = random.Random(seed)
        self.people: list[HubPerson] = []
        self.count = 0
        self.seen: Counter[str] = Counter()
        self.signed_in_at = 0.0
        self.dissolved = ""

    async def sign_in(self) -> None:
        """Have tokens that are valid for what comes next."""
        if not self.people or self.hub.clock.now > self.signed_in_at + _SIGN_IN_SECONDS:
            self.signed_in_at = self.hub.clock.now
            self.people = [await self.hub.sign_in(name) for name in NAMES]

    async def tour(self) -> None:
        """One deed of every kind that chance would seldom do."""
        ada, bo, _ = self.people
        chat = await create_group(ada, [bo])
        sent = await say(ada, chat, "to be pinned")
        path = f"/v1/chats/{chat}/messages/{sent['messageId']}"
        for person, method, where, body in (
            (bo, "POST", f"{path}/pin", None),
            (bo, "DELETE", f"{path}/pin", None),
            (bo, "POST", f"{path}/reactions", {"emoji": EMOJI[0]}),
            (ada, "PATCH", path, {"text": "edited"}),
            (ada, "DELETE", path, None),
            (ada, "PATCH", f"/v1/chats/{chat}", {"name": "Other"}),
            (bo, "POST", f"/v1/chats/{chat}/read", {"seqId": 1}),
            (bo, "POST", f"/v1/chats/{chat}/leave", None),
            (ada, "POST", f"/v1/chats/{chat}/members", {"personIds": [bo.person_id]}),
            (ada, "DELETE", f"/v1/contacts/{bo.person_id}", None),
        ):
            assert (await person.request(method, where, body)).is_success
        friend_request = await bo.post("/v1/friend-requests", {"personId": ada.person_id})
        await bo.request("DELETE", f"/v1/friend-requests/{friend_request['requestId']}")
        await befriend(bo, ada)
        sent = await say(ada, chat, "to be edited")
        path = f"/v1/chats/{chat}/messages/{sent['messageId']}"
        assert (await ada.request("PATCH", path, {"text": "edited"})).is_success
        gone = await create_group(ada, [bo])
        self.dissolved = gone

    async def dissolve(self) -> None:
        """End what the tour began, once every screen has it."""
        path = f"/v1/chats/{self.dissolved}"
        assert (await self.people[0].request("DELETE", path)).is_success

    async def step(self) -> None:
        """One deed of somebody."""
        deeds: list[tuple[Callable[[HubPerson], Awaitable[Any]], int]] = [
            (self.send, 8),
            (self.change_message, 8),
            (self.read, 3),
            (self.change_chat, 4),
            (self.change_friends, 4),
            (self.open_chat, 3),
            (self.speak_as_agent, 3),
        ]
        chosen = self.random.choices([deed for deed, _ in deeds], [often for _, often in deeds])
        self.hub.clock.advance(self.random.choice((0, 1, 1, 30)))
        await chosen[0](self.random.choice(self.people))

    async def _chat_of(self, person: HubPerson) -> dict[str, Any] | None:
        rows = (await person.get("/v1/chats"))["items"]
        return self.random.choice(rows) if rows else None

    async def _message_of(self, person: HubPerson, chat: dict[str, Any]) -> str | None:
        page = await person.get(f"/v1/chats/{chat['chatId']}/messages?limit=6")
        ids = [each["messageId"] for each in page["items"]]
        return self.random.choice(ids) if ids else None

    def _other(self, person: HubPerson) -> HubPerson:
        return self.random.choice([each for each in self.people if each is not person])

    async def send(self, person: HubPerson) -> None:
        chat = await self._chat_of(person)
        if chat is None or chat["lastSeq"] >= MESSAGES_AT_MOST:
            return
        self.count += 1
        text = self.random.choice(("hello", "@Claude go", "a longer text"))
        body: dict[str, Any] = {
            "clientMsgId": f"m{self.count}",
            "content": {"text": f"{text} {self.count}"},
            "replyToMessageId": await self._message_of(person, chat),
        }
        path = f"/v1/chats/{chat['chatId']}/messages"
        for _ in range(self.random.choice((1, 1, 2))):
            await person.request("POST", path, body)

    async def change_message(self, person: HubPerson) -> None:
        chat = await self._chat_of(person)
        message = chat and await self._message_of(person, chat)
        if chat is None or message is None:
            return
        path = f"/v1/chats/{chat['chatId']}/messages/{message}"
        emoji = self.random.choice(EMOJI)
        method, where, body = self.random.choice(
            [
                ("PATCH", path, {"text": f"edited {self.count}"}),
                ("DELETE", path, None),
                ("POST", f"{path}/pin", None),
                ("DELETE", f"{path}/pin", None),
                ("POST", f"{path}/reactions", {"emoji": emoji}),
                ("POST", f"{path}/reactions", {"emoji": emoji}),
                ("DELETE", f"{path}/reactions/{emoji}", None),
            ]
        )
        await person.request(method, where, body)

    async def read(self, person: HubPerson) -> None:
        chat = await self._chat_of(person)
        if chat is not None:
            seq = self.random.randint(0, chat["lastSeq"] + 1)
            await person.request("POST", f"/v1/chats/{chat['chatId']}/read", {"seqId": seq})

    async def change_chat(self, person: HubPerson) -> None:
        chat = await self._chat_of(person)
        if chat is None:
            return
        path, other = f"/v1/chats/{chat['chatId']}", self._other(person).person_id
        members = (await person.get(f"{path}/members"))["items"]
        member = self.random.choice(members)["memberId"]
        agent = {"deviceId": "dev_1", "agentType": "claude", "name": "Claude"}
        method, where, body = self.random.choice(
            [
                ("PATCH", path, {"name": f"Team {self.count}"}),
                ("PATCH", path, {"description": f"About {self.count}"}),
                ("PATCH", path, {"ownerId": other}),
                ("POST", f"{path}/members", {"personIds": [other]}),
                ("POST", f"{path}/members", {"personIds": [other]}),
                ("DELETE", f"{path}/members/{member}", None),
                ("POST", f"{path}/agents", agent),
                ("POST", f"{path}/agents", agent),
                ("POST", f"{path}/leave", None),
                *([("DELETE", path, None)] if self.random.random() < 0.3 else []),
            ]
        )
        await person.request(method, where, body)

    async def open_chat(self, person: HubPerson) -> None:
        self.count += 1
        other = self._other(person).person_id
        edge, thread = THREAD
        body = self.random.choice(
            [
                {"type": "private", "personId": other},
                {"type": "group", "name": f"Team {self.count}", "personIds": [other]},
                {"type": "thread", "edgeId": edge, "threadId": thread},
            ]
        )
        if len((await person.get("/v1/chats"))["items"]) < 5:
            await person.request("POST", "/v1/chats", body)
        elif body["type"] == "thread":
            await self.change_grant(person)

    async def change_grant(self, person: HubPerson) -> None:
        """Give the right to see the thread, or take it away as whoever revokes a grant does."""
        rights, hub = self.links.threads.setdefault(THREAD, {}), self.hub.hub.services
        if person.person_id not in rights:
            rights[person.person_id] = "commenter"
            return
        del rights[person.person_id]
        async with hub.events.change() as change:
            origin = ActionOrigin(via="api", address="")
            await chat_members.end_thread_access(hub, change, person.person_id, THREAD[0], origin)

    async def change_friends(self, person: HubPerson) -> None:
        other = self._other(person)
        waiting = (await person.get("/v1/friend-requests"))["items"]
        sent = (await person.get("/v1/friend-requests?direction=out"))["items"]
        if waiting and self.random.random() < 0.7:
            path = f"/v1/friend-requests/{waiting[0]['requestId']}"
            verb = self.random.choice((("POST", f"{path}/accept"), ("DELETE", path)))
            await person.request(*verb)
        elif sent and self.random.random() < 0.3:
            await person.request("DELETE", f"/v1/friend-requests/{sent[0]['requestId']}")
        elif self.random.random() < 0.3:
            await person.request("DELETE", f"/v1/contacts/{other.person_id}")
        else:
            body = {"personId": other.person_id, "message": f"hi {self.count}"}
            await person.request("POST", "/v1/friend-requests", body)

    async def speak_as_agent(self, person: HubPerson) -> None:
        chat = await self._chat_of(person)
        if chat is None or chat["lastSeq"] >= MESSAGES_AT_MOST:
            return
        members = (await person.get(f"/v1/chats/{chat['chatId']}/members"))["items"]
        agents = [each["memberId"] for each in members if each["memberType"] == "agent"]
        if not agents:
            return
        self.count += 1
        async with self.hub.hub.services.events.change() as change:
            await chat_messages.upsert_agent_message(
                change,
                f"tsk_{self.count // 20}",
                chat["chatId"],
                agents[0],
                f"so far {self.count}",
                final=self.random.random() < 0.3,
            )


async def hold_law(hub: RunningHub, links: OwnersLinks, schedules: int, seed: int) -> Counter[str]:
    talk = Talk(hub, links, seed)
    admin = await hub.first_admin(NAMES[0])
    others = [await hub.join(admin, name) for name in NAMES[1:]]
    for other in others:
        await befriend(admin, other)
    await add_device(hub, admin)
    links.threads[THREAD] = {admin.person_id: "commenter"}
    await talk.sign_in()
    screens = [await load_screen(person) for person in talk.people]
    for schedule in range(schedules):
        if schedule == 0:
            await talk.tour()
        elif schedule == 1:
            await talk.dissolve()
        else:
            for _ in range(talk.random.randint(1, 8)):
                await talk.step()
        await talk.sign_in()
        screens = [
            await _compare(talk, old, person, f"seed {seed}, schedule {schedule}")
            for old, person in zip(screens, talk.people, strict=True)
        ]
    return talk.seen


async def _compare(talk: Talk, old: ChatScreen, person: HubPerson, where: str) -> ChatScreen:
    events, _ = await sync(person, old.as_of)
    for kind, payload in events:
        old.apply(kind, payload)
        talk.seen[kind] += 1
    fresh = await load_screen(person)
    assert old.shown(old.since) == fresh.shown(old.since), where
    return fresh


@pytest.mark.requirement("hub.chats.law")
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
async def test_an_old_screen_and_later_events_are_a_new_screen(tmp_path: Path):
    links = OwnersLinks()
    async with running_hub(tmp_path, chat_links=links) as hub:
        seen = await hold_law(hub, links, count_trials(full=1_800, share=15), 17)
    assert seen.keys() == CHAT_EVENTS
    assert sorted(seen) == [
        "friend.accepted",
        "friend.removed",
        "friend.request",
        "friend.request_ended",
        "message.edited",
        "message.new",
        "message.pin",
        "message.reaction",
        "message.read",
        "message.recall",
        "message.unpin",
        "session.created",
        "session.dissolved",
        "session.info_updated",
        "session.member_joined",
        "session.member_left",
    ]


@pytest.mark.requirement("hub.chats.law")
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
async def test_the_law_holds_on_postgres(tmp_path: Path, postgres: PostgresServer):
    links, url = OwnersLinks(), await create_postgres_database(postgres)
    async with running_hub(tmp_path, chat_links=links, database=url) as hub:
        seen = await hold_law(hub, links, count_trials(full=200, share=5), 18)
    assert seen.keys() == CHAT_EVENTS


@pytest.mark.parametrize("lost", ["message.edited", "friend.accepted"])
async def test_the_law_notices_what_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
):
    apply = ChatScreen.apply

    def forget(self: ChatScreen, kind: str, payload: dict[str, Any]) -> None:
        if kind != lost:
            apply(self, kind, payload)

    monkeypatch.setattr(ChatScreen, "apply", forget)
    links = OwnersLinks()
    async with running_hub(tmp_path, chat_links=links) as hub:
        with pytest.raises((AssertionError, KeyError)):
            await hold_law(hub, links, 1, 17)

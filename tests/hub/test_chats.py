"""Chats over REST: friends, members, messages, search, on SQLite and on a real PostgreSQL."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select

from factwire.hub import limits
from factwire.hub.chats import chat_members, chat_messages
from factwire.hub.chats.attachments import collect_attachments
from factwire.hub.records import chat_records
from factwire.hub.records.event_tables import events
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.request_rates import Rate
from tests.hub.chat_people import (
    OwnersLinks,
    add_device,
    befriend,
    code_of,
    create_group,
    name_of,
    read_all,
    say,
    sync,
    texts,
)
from tests.hub.hubs import HubPerson, RunningHub, running_hub
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Company:
    """A Hub with three people, of whom Ada is friends with both others."""

    def __init__(self, hub: RunningHub, links: OwnersLinks, people: list[HubPerson]) -> None:
        self.hub = hub
        self.links = links
        self.ada, self.bo, self.cy = people


class SharedHub:
    """A Hub for all tests of this module, each with people of its own."""

    def __init__(self, hub: RunningHub, links: OwnersLinks) -> None:
        self.hub = hub
        self.links = links
        self.companies = 0

    async def found_company(self) -> Company:
        self.companies += 1
        self.links.tasks.clear()
        # What others were counted for in the last minute is over.
        self.hub.clock.advance(60)
        root = await self.hub.sign_in("Root")
        people = [
            await self.hub.join(root, f"{name}{self.companies}", role)
            for name, role in (("Ada", "admin"), ("Bo", "member"), ("Cy", "member"))
        ]
        for other in people[1:]:
            await befriend(people[0], other)
        return Company(self.hub, self.links, people)


@asynccontextmanager
async def shared_hub(folder: Path, **settings: Any) -> AsyncGenerator[SharedHub]:
    links = OwnersLinks()
    async with running_hub(folder, chat_links=links, **settings) as hub:
        await hub.first_admin("Root")
        yield SharedHub(hub, links)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sqlite_hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SharedHub]:
    async with shared_hub(tmp_path_factory.mktemp("sqlite")) as hub:
        yield hub


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres_hub(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[SharedHub]:
    url = await create_postgres_database(postgres)
    async with shared_hub(tmp_path_factory.mktemp("postgres"), database=url) as hub:
        yield hub


@pytest_asyncio.fixture(loop_scope="module")
async def company(sqlite_hub: SharedHub) -> Company:
    return await sqlite_hub.found_company()


class ChatsContract:
    """What holds on both databases."""

    @pytest.mark.requirement("hub.chats.messages.once")
    async def test_messages_sent_at_once_are_numbered_without_gaps_and_repeats_are_one(
        self, company: Company
    ):
        chat = await create_group(company.ada, [company.bo])
        people = [company.ada, company.bo]

        async def send(number: int) -> Any:
            who = people[number % 2]
            return await say(who, chat, f"text {number}", client_msg_id=f"id-{number}")

        async with asyncio.timeout(120):
            first = await asyncio.gather(*(send(number % 12) for number in range(24)))
        assert {each["seqId"] for each in first} == set(range(1, 13))
        for number, each in enumerate(first):
            assert each == first[number % 12]
        again = await send(3)
        assert again == first[3]
        body = {"clientMsgId": "id-3", "content": {"text": "another text"}}
        path = f"/v1/chats/{chat}/messages"
        assert await code_of(company.bo, "POST", path, body) == (409, "client_msg_id_reused")
        body["content"] = {"text": "text 3"}
        assert await code_of(company.ada, "POST", path, body) == (409, "client_msg_id_reused")
        listed = await company.ada.get(path)
        assert [each["seqId"] for each in listed["items"]] == list(range(1, 13))

    @pytest.mark.requirement("hub.chats.search")
    async def test_a_search_finds_words_in_own_chats_only(self, company: Company):
        chat = await create_group(company.ada, [company.bo])
        other = await create_group(company.ada, [company.cy])
        await say(company.ada, chat, "The Crème brûlée is in foo_bar-baz.py, <b>not</b> here")
        await say(company.ada, chat, "我们明天部署新版本")
        secret = await say(company.ada, other, "creme for Cy alone")

        async def find(who: HubPerson, query: str, chat_id: str | None = None) -> list[str]:
            path = f"/v1/messages/search?q={query}" + (f"&chatId={chat_id}" if chat_id else "")
            return [
                "".join(
                    f"[{part['text']}]" if part.get("match") else part["text"]
                    for part in hit["snippet"]
                )
                for hit in (await who.get(path))["items"]
            ]

        whole = "The [Crème] brûlée is in foo_bar-baz.py, <b>not</b> here"
        assert await find(company.bo, "CREME") == [whole]
        assert await find(company.ada, "creme") == ["[creme] for Cy alone", whole]
        assert await find(company.ada, "creme", chat) == [whole]
        assert await find(company.bo, "bar-baz brul") == [
            "The Crème [brûlée] is in foo_[bar-baz].py, <b>not</b> here"
        ]
        assert await find(company.bo, "baz-bar") == []
        assert await find(company.bo, "部署") == ["我们明天[部署]新版本"]
        assert await find(company.bo, "署部") == []
        # What a search language would make of these is nobody's concern.
        for query in ('"', "a:*", "NEAR(", "' | '", "body : x", "-", "&", "%00", "()"):
            answer = await company.bo.request("GET", "/v1/messages/search?q=" + query)
            assert answer.status_code in (200, 400), answer.text
        assert await find(company.bo, "creme", other) == []
        path = f"/v1/chats/{other}/messages/{secret['messageId']}"
        assert (await company.ada.request("DELETE", path)).status_code == 200
        assert await find(company.ada, "alone") == []

    @pytest.mark.requirement("hub.chats.search")
    async def test_search_pages_and_follows_edits(self, company: Company):
        chat = await create_group(company.ada)
        sent = [await say(company.ada, chat, f"apple {number}") for number in range(5)]
        path = f"/v1/chats/{chat}/messages/{sent[-1]['messageId']}"
        edited = await company.ada.request("PATCH", path, {"text": "pear 4"})
        assert edited.json()["content"] == {"text": "pear 4"}
        found = await read_all(company.ada, "/v1/messages/search?q=appl&limit=2")
        assert [hit["message"]["seqId"] for hit in found] == [4, 3, 2, 1]
        found = await read_all(company.ada, "/v1/messages/search?q=pear")
        assert [hit["message"]["seqId"] for hit in found] == [5]

    @pytest.mark.requirement("hub.chats.recall")
    async def test_a_recalled_message_is_gone_from_lists_files_and_the_log(self, company: Company):
        ada, bo = company.ada, company.bo
        chat = await create_group(ada, [bo])
        before = (await ada.get(f"/v1/chats/{chat}"))["asOf"]
        path = f"/v1/chats/{chat}/attachments"
        content = b64encode(b"the secret file").decode()
        upload = await bo.post(path, {"name": "../../a\u202etxt.exe", "content": content})
        assert (upload["name"], upload["bytes"]) == ("atxt.exe", 15)
        file = f"{path}/{upload['attachmentId']}"
        assert (await ada.request("GET", file)).status_code == 404
        body = {
            "clientMsgId": "m",
            "contentType": "attachment",
            "content": {"text": "sesame", "attachments": [upload["attachmentId"]]},
        }
        sent = await bo.post(f"/v1/chats/{chat}/messages", body)
        served = await ada.request("GET", file)
        assert served.content == b"the secret file"
        assert served.headers["content-disposition"].startswith('attachment; filename="atxt.exe"')
        assert served.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in served.headers["content-security-policy"]
        assert (await company.cy.request("GET", file)).status_code == 404
        message = f"/v1/chats/{chat}/messages/{sent['messageId']}"
        await bo.request("PATCH", message, {"text": "open sesame"})
        await ada.post(f"{message}/pin", status=200)
        await ada.post(f"{message}/reactions", {"emoji": "👩‍💻"}, status=200)
        recalled = (await bo.request("DELETE", message)).json()
        assert recalled["content"] == {}
        assert recalled["recalledBy"] == bo.person_id
        assert (recalled.get("pinnedAt"), recalled["reactions"]) == (None, [])
        assert (await ada.request("GET", file)).status_code == 404
        assert await texts(ada, chat) == [None]
        resumed, _ = await sync(ada, before)
        kinds = [kind for kind, _ in resumed if kind.startswith("message.")]
        assert kinds == ["message.new", "message.pin", "message.reaction", "message.recall"]
        assert resumed[0][1]["content"] == {}
        async with company.hub.hub.services.database.read() as connection:
            logged = (await connection.execute(select(events.c.payload))).scalars().all()
        assert not any("sesame" in payload for payload in logged)
        edit = await code_of(bo, "PATCH", message, {"text": "again"})
        assert edit == (409, "message_recalled")

    @pytest.mark.requirement("hub.chats.members")
    async def test_a_new_member_reads_history_and_hears_only_what_comes_after(
        self, company: Company
    ):
        ada, bo, cy = company.ada, company.bo, company.cy
        chat = await create_group(ada, [bo])
        start = (await cy.get("/v1/chats"))["asOf"]
        await say(ada, chat, "before")
        body = {"personIds": [cy.person_id, cy.person_id, bo.person_id]}
        added = await ada.post(f"/v1/chats/{chat}/members", body, status=200)
        assert added["memberCount"] == 3
        await say(ada, chat, "after")
        heard, at = await sync(cy, start)
        assert [kind for kind, _ in heard] == ["session.created", "message.new"]
        assert heard[0][1]["last_seq"] == 1
        assert heard[1][1]["content"] == {"text": "after"}
        assert await texts(cy, chat) == ["before", "after"]
        assert (await cy.get(f"/v1/chats/{chat}"))["lastReadSeq"] == 1
        left = await cy.request("POST", f"/v1/chats/{chat}/leave")
        assert left.status_code == 204
        await say(ada, chat, "without Cy")
        heard, _ = await sync(cy, at)
        assert [kind for kind, _ in heard] == ["session.member_left"]
        assert (await cy.request("GET", f"/v1/chats/{chat}/messages")).status_code == 404
        found = await cy.get("/v1/messages/search?q=after")
        assert found["items"] == []

    @pytest.mark.requirement("hub.chats.friends")
    async def test_of_two_requests_at_once_one_waits(self, company: Company):
        bo, cy = company.bo, company.cy
        body = {"personId": cy.person_id}
        async with asyncio.timeout(60):
            sent = await asyncio.gather(*(bo.post("/v1/friend-requests", body) for _ in range(4)))
        assert len({each["requestId"] for each in sent}) == 1
        assert len(await read_all(cy, "/v1/friend-requests")) == 1
        async with asyncio.timeout(60):
            path = f"/v1/friend-requests/{sent[0]['requestId']}/accept"
            accepted = await asyncio.gather(*(cy.request("POST", path) for _ in range(4)))
        assert sorted(each.status_code for each in accepted) == [200, 404, 404, 404]
        async with asyncio.timeout(60):
            opened = await asyncio.gather(
                *(
                    who.post("/v1/chats", {"type": "private", "personId": other.person_id})
                    for who, other in ((bo, cy), (cy, bo), (bo, cy))
                )
            )
        assert len({each["chatId"] for each in opened}) == 1

    @pytest.mark.requirement("hub.chats.pins")
    async def test_pins_set_at_once_stay_within_their_number(
        self, company: Company, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(chat_messages, "PINS", 3)
        chat = await create_group(company.ada)
        sent = [await say(company.ada, chat, f"{number}") for number in range(6)]
        async with asyncio.timeout(60):
            pinned = await asyncio.gather(
                *(
                    company.ada.request(
                        "POST", f"/v1/chats/{chat}/messages/{each['messageId']}/pin"
                    )
                    for each in sent
                )
            )
        assert sorted(each.status_code for each in pinned) == [200] * 3 + [409] * 3
        assert len((await company.ada.get(f"/v1/chats/{chat}/pins"))["items"]) == 3


class TestOnSqlite(ChatsContract):
    pass


class TestOnPostgres(ChatsContract):
    @pytest_asyncio.fixture(loop_scope="module")
    async def company(self, postgres_hub: SharedHub) -> Company:
        return await postgres_hub.found_company()


@pytest.mark.requirement("hub.chats.friends")
async def test_people_find_each_other_by_exact_name_and_agree(company: Company):
    bo, cy = company.bo, company.cy
    found = await bo.get(f"/v1/contacts/lookup?name={name_of(cy).upper()}")
    assert found == {"items": [{"personId": cy.person_id, "name": name_of(cy)}]}
    for name in ("C", f"{name_of(cy)}x", "%25", ""):
        assert await bo.get(f"/v1/contacts/lookup?name={name}") == {"items": []}
    body = {"personId": cy.person_id, "message": "It is me, Bo"}
    friend_request = await bo.post("/v1/friend-requests", body)
    assert await read_all(bo, "/v1/friend-requests?direction=out") == [friend_request]
    assert await read_all(cy, "/v1/friend-requests?direction=in") == [friend_request]
    path = f"/v1/friend-requests/{friend_request['requestId']}"
    assert await code_of(bo, "POST", f"{path}/accept") == (404, "unknown_friend_request")
    back = {"personId": bo.person_id}
    assert await code_of(cy, "POST", "/v1/friend-requests", back) == (409, "request_waiting")
    assert (await cy.request("DELETE", path)).status_code == 204
    assert await read_all(bo, "/v1/friend-requests?direction=out") == []
    chat = {"type": "private", "personId": cy.person_id}
    assert await code_of(bo, "POST", "/v1/chats", chat) == (404, "unknown_person")
    await befriend(bo, cy)
    assert await code_of(bo, "POST", "/v1/friend-requests", body) == (409, "already_friends")
    private = (await bo.post("/v1/chats", chat))["chatId"]
    await say(bo, private, "hello")
    assert (await cy.request("DELETE", f"/v1/contacts/{bo.person_id}")).status_code == 204
    assert await texts(bo, private) == ["hello"]
    refused = await say(bo, private, "still there?", status=403)
    assert refused["code"] == "not_friends"
    assert await code_of(cy, "DELETE", f"/v1/contacts/{bo.person_id}") == (404, "unknown_friend")
    assert await code_of(bo, "POST", f"/v1/chats/{private}/leave") == (409, "not_a_group")


@pytest.mark.requirement("hub.chats.friends")
async def test_nobody_can_guess_who_is_here(company: Company):
    answers = [
        (await company.bo.request("GET", f"/v1/contacts/lookup?name=n{number}")).status_code
        for number in range(limits.LOOKUPS_PER_MINUTE + 2)
    ]
    assert answers == [200] * limits.LOOKUPS_PER_MINUTE + [429] * 2
    await company.ada.request("PATCH", f"/v1/people/{company.cy.person_id}", {"disabled": True})
    friend_request = await code_of(
        company.bo, "POST", "/v1/friend-requests", {"personId": company.cy.person_id}
    )
    nobody = await code_of(company.bo, "POST", "/v1/friend-requests", {"personId": "usr_x"})
    itself = {"personId": company.bo.person_id}
    own = await code_of(company.bo, "POST", "/v1/friend-requests", itself)
    assert friend_request == nobody == own == (404, "unknown_person")


@pytest.mark.requirement("hub.chats.members")
async def test_a_group_belongs_to_its_owner_and_passes_on(company: Company):
    ada, bo, cy = company.ada, company.bo, company.cy
    chat = await create_group(ada, [bo, cy])
    path = f"/v1/chats/{chat}"
    for method, where, body in (
        ("PATCH", path, {"name": "Mine"}),
        ("DELETE", path, None),
        ("POST", f"{path}/members", {"personIds": [ada.person_id]}),
        ("DELETE", f"{path}/members/{cy.person_id}", None),
    ):
        assert await code_of(bo, method, where, body) == (403, "owner_only")
    changed = await ada.request("PATCH", path, {"name": " New ", "description": "why"})
    assert (changed.json()["name"], changed.json()["description"]) == ("New", "why")
    unknown = await code_of(ada, "PATCH", path, {"ownerId": "usr_x"})
    assert unknown == (404, "unknown_member")
    assert (await ada.request("DELETE", f"{path}/members/{cy.person_id}")).status_code == 204
    assert (await cy.request("GET", path)).status_code == 404
    assert (await ada.request("POST", f"{path}/leave")).status_code == 204
    assert (await bo.get(path))["ownerId"] == bo.person_id
    at = (await bo.get(path))["asOf"]
    assert (await bo.request("POST", f"{path}/leave")).status_code == 204
    assert [kind for kind, _ in (await sync(bo, at))[0]] == ["session.member_left"]
    assert (await bo.get("/v1/chats"))["items"] == []
    audit = await read_all(ada, "/v1/audit")
    chat_lines = [
        row["action"]
        for row in reversed(audit)
        if chat in (row.get("subjectId"), row["details"].get("chatId"))
    ]
    assert chat_lines == [
        "chat.created",
        "chat.joined",
        "chat.joined",
        "chat.left",
        "chat.left",
        "chat.owner_changed",
        "chat.left",
        "chat.dissolved",
    ]


@pytest.mark.requirement("hub.chats.members")
async def test_strangers_cannot_be_added_and_nobody_reads_a_dissolved_group(company: Company):
    ada, bo, cy = company.ada, company.bo, company.cy
    body = {"type": "group", "name": "Team", "personIds": [cy.person_id]}
    assert await code_of(bo, "POST", "/v1/chats", body) == (404, "unknown_person")
    chat = await create_group(bo, [ada])
    people = {"personIds": [cy.person_id]}
    assert await code_of(bo, "POST", f"/v1/chats/{chat}/members", people) == (
        404,
        "unknown_person",
    )
    await say(ada, chat, "soon gone")
    at = (await ada.get("/v1/chats"))["asOf"]
    assert (await bo.request("DELETE", f"/v1/chats/{chat}")).status_code == 204
    assert [kind for kind, _ in (await sync(ada, at))[0]] == ["session.dissolved"]
    for who in (ada, bo):
        assert (await who.request("GET", f"/v1/chats/{chat}/messages")).status_code == 404
        assert (await who.get("/v1/messages/search?q=soon"))["items"] == []


async def attack_chat(company: Company) -> dict[str, int]:
    """What somebody gets who knows the ids of a chat that they are not in, for every deed."""
    ada, cy = company.ada, company.cy
    chat = await create_group(ada, [company.bo])
    path, message = f"/v1/chats/{chat}", await say(ada, chat, "between us")
    about = f"{path}/messages/{message['messageId']}"
    new = {"clientMsgId": "forged", "content": {"text": "forged"}}
    deeds: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("PATCH", path, {"name": "Mine"}),
        ("GET", f"{path}/members", None),
        ("POST", f"{path}/members", {"personIds": [cy.person_id]}),
        ("GET", f"{path}/messages", None),
        ("POST", f"{path}/messages", new),
        ("GET", about, None),
        ("PATCH", about, {"text": "forged"}),
        ("POST", f"{about}/pin", None),
        ("POST", f"{about}/reactions", {"emoji": "👍"}),
        ("GET", f"{path}/pins", None),
        ("POST", f"{path}/read", {"seqId": 1}),
        ("DELETE", f"{about}/pin", None),
        ("DELETE", about, None),
        ("DELETE", f"{path}/members/{company.bo.person_id}", None),
        ("POST", f"{path}/leave", None),
        ("DELETE", path, None),
    ]
    return {
        f"{method} {where[len(path) :]}": (await cy.request(method, where, body)).status_code
        for method, where, body in deeds
    }


@pytest.mark.requirement("hub.chats.private")
async def test_nobody_does_anything_with_a_chat_that_they_are_not_in(company: Company):
    answers = await attack_chat(company)
    assert answers == dict.fromkeys(answers, 404)


@pytest.mark.requirement("hub.chats.private")
async def test_without_its_members_in_the_query_a_chat_would_be_open(
    company: Company, monkeypatch: pytest.MonkeyPatch
):
    select_chats = chat_records.select_chats

    def select_as_ada(_: str) -> Any:
        return select_chats(company.ada.person_id)

    monkeypatch.setattr(chat_records, "select_chats", select_as_ada)
    open_to_all = {deed for deed, status in (await attack_chat(company)).items() if status != 404}
    assert len(open_to_all) >= 10


@pytest.mark.requirement("hub.chats.members")
async def test_a_chat_has_a_bound(company: Company, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chat_members, "CHAT_PEOPLE", 2)
    chat = await create_group(company.ada, [company.bo])
    people = {"personIds": [company.cy.person_id]}
    full = await code_of(company.ada, "POST", f"/v1/chats/{chat}/members", people)
    assert full == (409, "chat_full")
    monkeypatch.setattr(chat_members, "CHATS_PER_PERSON", 1)
    body = {"type": "group", "name": "Other"}
    assert await code_of(company.ada, "POST", "/v1/chats", body) == (409, "too_many_chats")


@pytest.mark.requirement("hub.chats.windows")
async def test_editing_and_recalling_have_their_times(company: Company):
    ada, bo, clock = company.ada, company.bo, company.hub.clock
    chat = await create_group(ada, [bo])
    sent = await say(bo, chat, "first", replyToMessageId=None)
    reply = await say(ada, chat, "a reply", replyToMessageId=sent["messageId"])
    assert reply["replyToMessageId"] == sent["messageId"]
    path = f"/v1/chats/{chat}/messages/{sent['messageId']}"
    assert await code_of(ada, "PATCH", path, {"text": "x"}) == (403, "not_the_sender")
    own = f"/v1/chats/{chat}/messages/{reply['messageId']}"
    assert await code_of(bo, "DELETE", own) == (403, "not_the_sender")
    clock.advance(limits.RECALL_SECONDS)
    edited = await bo.request("PATCH", path, {"text": "second"})
    assert edited.json()["editedAt"] > edited.json()["createdAt"]
    clock.advance(0.001)
    assert await code_of(bo, "DELETE", path) == (409, "recall_too_late")
    clock.advance(limits.EDIT_SECONDS - limits.RECALL_SECONDS)
    late = await company.hub.sign_in(name_of(bo))
    assert await code_of(late, "PATCH", path, {"text": "third"}) == (409, "edit_too_late")
    owner = await company.hub.sign_in(name_of(ada))
    assert (await owner.request("DELETE", path)).json()["recalledBy"] == ada.person_id
    assert (await owner.request("DELETE", path)).status_code == 200


@pytest.mark.requirement("hub.chats.reading")
async def test_messages_are_read_both_ways_around_a_number(company: Company):
    ada, bo = company.ada, company.bo
    chat = await create_group(ada, [bo])
    for number in range(1, 11):
        await say(ada, chat, f"{number}")
    path = f"/v1/chats/{chat}/messages"

    async def read(query: str) -> tuple[list[int], bool, bool]:
        page = await bo.get(f"{path}?{query}")
        seqs = [each["seqId"] for each in page["items"]]
        return seqs, page.get("hasBefore", False), page.get("hasAfter", False)

    assert await read("limit=3") == ([8, 9, 10], True, False)
    assert await read("limit=3&before=8") == ([5, 6, 7], True, True)
    assert await read("limit=3&before=3") == ([1, 2], False, True)
    assert await read("limit=3&after=0") == ([1, 2, 3], False, True)
    assert await read("limit=3&after=9") == ([10], True, False)
    assert await read("limit=3&around=5") == ([4, 5, 6], True, True)
    assert await read("limit=3&before=99") == ([8, 9, 10], True, False)
    assert await code_of(bo, "GET", f"{path}?before=1&after=1") == (400, "too_many_places")
    assert (await bo.get(f"/v1/chats/{chat}"))["lastReadSeq"] == 0
    for seq, mark in ((4, 4), (2, 4), (99, 10)):
        read_to = await bo.post(f"/v1/chats/{chat}/read", {"seqId": seq}, status=200)
        assert read_to["lastReadSeq"] == mark
    members = await read_all(ada, f"/v1/chats/{chat}/members?limit=1")
    assert [each["lastReadSeq"] for each in members] == [10, 10]


@pytest.mark.requirement("hub.chats.roles")
async def test_a_viewer_reads_and_does_not_write(company: Company):
    ada, bo = company.ada, company.bo
    chat = await create_group(ada, [bo])
    sent = await say(ada, chat, "for all")
    await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"role": "viewer"})
    assert await texts(bo, chat) == ["for all"]
    message = f"/v1/chats/{chat}/messages/{sent['messageId']}"
    body = {"clientMsgId": "x", "content": {"text": "no"}}
    for method, path, content in (
        ("POST", f"/v1/chats/{chat}/messages", body),
        ("POST", f"{message}/pin", None),
        ("POST", f"{message}/reactions", {"emoji": "x"}),
        ("POST", "/v1/friend-requests", {"personId": company.cy.person_id}),
        ("POST", "/v1/chats", {"type": "group", "name": "Mine"}),
    ):
        assert await code_of(bo, method, path, content) == (403, "insufficient_role")
    assert (await bo.post(f"/v1/chats/{chat}/read", {"seqId": 1}, status=200))["lastReadSeq"] == 1
    assert (await bo.request("POST", f"/v1/chats/{chat}/leave")).status_code == 204


@pytest.mark.requirement("hub.chats.limits")
async def test_a_person_sends_so_many_messages_a_minute(
    company: Company, monkeypatch: pytest.MonkeyPatch
):
    assert chat_messages._SENDING.per_minute == limits.MESSAGES_PER_MINUTE
    monkeypatch.setattr(chat_messages, "_SENDING", Rate("message", 6))
    chat = await create_group(company.ada)
    body: dict[str, Any] = {}
    path = f"/v1/chats/{chat}/messages"
    statuses: list[int] = []
    for number in range(7):
        body = {"clientMsgId": f"m{number}", "content": {"text": "hi"}}
        statuses.append((await company.ada.request("POST", path, body)).status_code)
    assert statuses == [201] * 6 + [429]
    other = {"clientMsgId": "of-bo", "content": {"text": "hi"}}
    theirs = await create_group(company.bo)
    assert (await company.bo.request("POST", f"/v1/chats/{theirs}/messages", other)).is_success
    repeat = {"clientMsgId": "m0", "content": {"text": "hi"}}
    assert (await company.ada.request("POST", path, repeat)).status_code == 201
    company.hub.clock.advance(61)
    assert (await company.ada.request("POST", path, body)).status_code == 201


@pytest.mark.requirement("hub.chats.content")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"content": {"text": " "}}, "message_empty"),
        ({"content": {"text": "x" * 20_001}}, "invalid_request"),
        ({"content": {"text": "x", "html": "<b>"}}, "invalid_request"),
        ({"content": {"text": "x"}, "contentType": "html"}, "invalid_request"),
        ({"content": {"text": "x"}, "contentType": "attachment"}, "content_mismatch"),
        ({"content": {"attachments": ["att_x"]}}, "content_mismatch"),
        (
            {"content": {"attachments": ["att_x"]}, "contentType": "attachment"},
            "unknown_attachment",
        ),
        ({"content": {"text": "x", "mentions": ["usr_x"]}}, "mention_unknown"),
        ({"content": {"text": "x"}, "replyToMessageId": "msg_x"}, "unknown_message"),
        ({"content": {"text": "x"}, "clientMsgId": "a b"}, "invalid_request"),
    ],
)
async def test_a_message_that_says_nothing_sound_is_refused(
    company: Company, body: dict[str, Any], code: str
):
    chat = await create_group(company.ada)
    answer = await company.ada.request(
        "POST", f"/v1/chats/{chat}/messages", {"clientMsgId": "m", **body}
    )
    assert answer.json()["code"] == code
    assert await texts(company.ada, chat) == []


@pytest.mark.requirement("hub.chats.content")
async def test_what_people_write_is_kept_as_it_is(company: Company):
    chat = await create_group(company.ada)
    text = "<script>alert(1)</script> \0 \u202e ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    sent = await say(company.ada, chat, text, contentType="markdown")
    assert sent["content"] == {"text": text}
    assert (await company.ada.get(f"/v1/chats/{chat}/messages"))["items"] == [sent]


@pytest.mark.requirement("hub.chats.pins")
async def test_reactions_are_each_once_and_bounded(
    company: Company, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(chat_messages, "REACTIONS", 2)
    ada, bo = company.ada, company.bo
    chat = await create_group(ada, [bo])
    sent = await say(ada, chat, "hi")
    path = f"/v1/chats/{chat}/messages/{sent['messageId']}/reactions"
    for who, emoji in ((bo, "👍"), (ada, "👍"), (ada, "👍"), (ada, "❤️")):
        message = await who.post(path, {"emoji": emoji}, status=200)
    both = sorted([ada.person_id, bo.person_id])
    assert message["reactions"] == [
        {"emoji": "❤️", "personIds": [ada.person_id]},
        {"emoji": "👍", "personIds": both},
    ]
    assert await code_of(bo, "POST", path, {"emoji": "🎉"}) == (409, "too_many_reactions")
    assert await code_of(bo, "POST", path, {"emoji": "a b"}) == (400, "reaction_unusable")
    await ada.request("DELETE", f"{path}/❤️")
    removed = await ada.request("DELETE", f"{path}/👍")
    assert removed.json()["reactions"] == [{"emoji": "👍", "personIds": [bo.person_id]}]


@pytest.mark.requirement("hub.chats.attachments")
async def test_uploads_that_are_never_sent_and_recalled_files_are_removed(company: Company):
    ada, clock = company.ada, company.hub.clock
    chat = await create_group(ada)
    path = f"/v1/chats/{chat}/attachments"
    files = [
        await ada.post(path, {"name": f"{name}.txt", "content": b64encode(name.encode()).decode()})
        for name in ("kept", "unsent")
    ]
    content = {"attachments": [files[0]["attachmentId"]]}
    body = {"clientMsgId": "m", "contentType": "attachment", "content": content}
    sent = await ada.post(f"/v1/chats/{chat}/messages", body)
    assert sent["content"]["attachments"] == [
        {
            "id": files[0]["attachmentId"],
            "name": "kept.txt",
            "type": "application/octet-stream",
            "bytes": 4,
        }
    ]
    again = {**body, "clientMsgId": "n"}
    taken = await code_of(ada, "POST", f"/v1/chats/{chat}/messages", again)
    assert taken == (404, "unknown_attachment")
    hub = company.hub.hub.services
    clock.advance(limits.UNSENT_SECONDS + 1)
    await collect_attachments(hub)
    ada = await company.hub.sign_in(name_of(ada))
    assert (await ada.request("GET", f"{path}/{files[1]['attachmentId']}")).status_code == 404
    served = await ada.request("GET", f"{path}/{files[0]['attachmentId']}")
    assert served.content == b"kept"
    assert (await ada.request("DELETE", f"/v1/chats/{chat}")).status_code == 204


@pytest.mark.requirement("hub.chats.limits")
async def test_an_attachment_has_a_bound(company: Company):
    chat = await create_group(company.ada)
    large = b64encode(b"x" * (limits.ATTACHMENT_BYTES + 1)).decode()
    path = f"/v1/chats/{chat}/attachments"
    assert await code_of(company.ada, "POST", path, {"name": "a", "content": large}) == (
        400,
        "invalid_request",
    )
    assert await code_of(company.ada, "POST", path, {"name": "..", "content": ""}) == (
        400,
        "name_unusable",
    )


@pytest.mark.requirement("hub.chats.agents")
async def test_an_agent_gets_a_task_by_its_exact_name(company: Company):
    ada, bo, links = company.ada, company.bo, company.links
    device = await add_device(company.hub, ada, f"dev_{ada.person_id}")
    chat = await create_group(ada, [bo])
    path = f"/v1/chats/{chat}/agents"
    body = {"deviceId": device, "agentType": "claude", "name": "Claude"}
    assert await code_of(bo, "POST", path, body) == (404, "unknown_device")
    agent = await ada.post(path, body)
    assert await code_of(ada, "POST", path, {**body, "name": "c l a u d e"}) == (409, "name_taken")
    longer = await ada.post(path, {**body, "name": "Claude Code"})
    for text in ("Claude", "@claude", "@Claud", "@Claudette", "me@Claude", "@all"):
        assert "tasks" not in (await say(ada, chat, text))["content"]
    assert links.tasks == []
    sent = await say(ada, chat, "@Claude Code, please fix it")
    assert sent["content"]["tasks"] == [{"member": longer["memberId"], "task": "tsk_1"}]
    assert links.tasks[0].pop("origin").actor_id == ada.person_id
    assert links.tasks[0] == {
        "person_id": ada.person_id,
        "device_id": device,
        "agent_type": "claude",
        "prompt": "@Claude Code, please fix it",
        "target_id": None,
        "thread_id": None,
        "screen_id": ada.session_id,
        "session_id": chat,
        "agent_instance_id": longer["memberId"],
        "trigger_message_id": sent["messageId"],
        "display_name": "Claude Code",
    }
    named = await say(ada, chat, "you too", mentions=[agent["memberId"], bo.person_id])
    assert [each["member"] for each in named["content"]["tasks"]] == [agent["memberId"]]
    assert set(named["content"]["mentions"]) == {agent["memberId"], bo.person_id}
    before = await texts(bo, chat)
    refused = await say(bo, chat, "@Claude do it for me", status=403)
    assert refused["code"] == "agent_not_operated"
    assert (await texts(bo, chat), len(links.tasks)) == (before, 2)
    removed = await code_of(bo, "DELETE", f"/v1/chats/{chat}/members/{agent['memberId']}")
    assert removed == (403, "owner_only")
    gone = await ada.request("DELETE", f"/v1/chats/{chat}/members/{agent['memberId']}")
    assert gone.status_code == 204
    assert "tasks" not in (await say(ada, chat, "@Claude?"))["content"]


@pytest.mark.requirement("hub.chats.agents")
async def test_what_an_agent_says_is_one_message_that_is_kept_current(company: Company):
    ada, hub = company.ada, company.hub.hub.services
    chat = await create_group(ada)
    device = await add_device(company.hub, ada, f"dev_{ada.person_id}")
    body = {"deviceId": device, "agentType": "claude", "name": "Claude"}
    agent = (await ada.post(f"/v1/chats/{chat}/agents", body))["memberId"]
    at = (await ada.get("/v1/chats"))["asOf"]

    async def show(text: str, *, final: bool = False) -> str | None:
        async with hub.events.change() as change:
            return await chat_messages.upsert_agent_message(
                change, "tsk_1", chat, agent, text, final=final
            )

    assert await show("") is None
    shown = await show("I ")
    assert await show("I look") == shown
    company.hub.clock.advance(limits.AGENT_EDIT_SECONDS)
    assert await show("I look at it") == shown
    assert await show("I look at it once") == shown
    assert await show("I have " + "x" * limits.MESSAGE_CHARACTERS, final=True) == shown
    heard, _ = await sync(ada, at)
    # The edit in between was replaced by the last one, which says all.
    assert [(kind, payload["content"]["text"][:8]) for kind, payload in heard] == [
        ("message.new", "I "),
        ("message.edited", "I have x"),
    ]
    [message] = (await ada.get(f"/v1/chats/{chat}/messages"))["items"]
    assert (message["senderType"], message["senderId"]) == ("agent", agent)
    assert message["content"]["final"] is message["content"]["truncated"] is True
    recalled = await ada.request("DELETE", f"/v1/chats/{chat}/messages/{shown}")
    assert recalled.status_code == 200
    assert await show("more", final=True) is None
    await ada.request("DELETE", f"/v1/chats/{chat}/members/{agent}")
    assert await show("more", final=True) is None


@pytest.mark.requirement("hub.chats.threads")
async def test_the_chat_of_a_thread_is_for_those_who_may_see_the_thread(company: Company):
    ada, bo, cy, links = company.ada, company.bo, company.cy, company.links
    edge = f"edge_dev_{ada.person_id}"
    links.threads[(edge, "t1")] = {ada.person_id: "commenter", bo.person_id: "viewer"}
    body = {"type": "thread", "edgeId": edge, "threadId": "t1"}
    chat = (await ada.post("/v1/chats", body))["chatId"]
    assert (await bo.post("/v1/chats", body))["chatId"] == chat
    assert await code_of(cy, "POST", "/v1/chats", body) == (404, "unknown_thread")
    await say(ada, chat, "look at line 3")
    assert await texts(bo, chat) == ["look at line 3"]
    assert (await say(bo, chat, "yes", status=403))["code"] == "read_only_thread"
    device = await add_device(company.hub, ada, f"dev_{ada.person_id}")
    agent = {"deviceId": device, "agentType": "claude", "name": "Claude"}
    await ada.post(f"/v1/chats/{chat}/agents", agent)
    await say(ada, chat, "@Claude go on")
    assert links.tasks[0]["thread_id"] == "t1"
    del links.threads[(edge, "t1")][bo.person_id]
    assert (await bo.request("GET", f"/v1/chats/{chat}/messages")).status_code == 404
    hub = company.hub.hub.services
    at = (await bo.get("/v1/chats"))["asOf"]
    async with hub.events.change() as change:
        origin = ActionOrigin(via="api", address="", actor_id=ada.person_id)
        await chat_members.end_thread_access(hub, change, bo.person_id, edge, origin)
    assert (await bo.get("/v1/chats"))["items"] == []
    await say(ada, chat, "now without Bo")
    assert [kind for kind, _ in (await sync(bo, at))[0]] == ["session.member_left"]


@pytest.mark.requirement("hub.chats.sync")
async def test_sync_goes_on_exactly_or_says_that_it_cannot(company: Company):
    ada = company.ada
    start = (await ada.get("/v1/messages/sync"))["cursor"]
    chat = await create_group(ada)
    for number in range(5):
        await say(ada, chat, f"{number}")
    seen: list[Any] = []
    cursor, more = start, True
    while more:
        page = await ada.get(f"/v1/messages/sync?cursor={cursor}&limit=2")
        seen += page["events"]
        cursor, more = page["cursor"], page.get("more", False)
    assert [each["type"] for each in seen] == ["session.created", *["message.new"] * 5]
    assert cursor == (await ada.get(f"/v1/messages/sync?cursor={cursor}"))["cursor"]
    assert await code_of(ada, "GET", "/v1/messages/sync?cursor=x") == (400, "cursor_invalid")
    epoch, at = cursor.split(".")[1:]
    for wrong in (f"fw1.{'0' * 16}.{at}", f"fw1.{epoch}.{'9' * 16}"):
        assert await code_of(ada, "GET", f"/v1/messages/sync?cursor={wrong}") == (
            400,
            "cursor_invalid",
        )


@pytest.mark.requirement("hub.chats.threads")
async def test_whoever_loses_a_grant_is_out_of_the_chats_of_its_threads(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        device = await hub.join_device(ada, "edge_ada")
        body = {"person": bo.person_id, "role": "commenter", "deviceId": device.device_id}
        thread = {"type": "thread", "edgeId": "edge_ada", "threadId": "t1"}
        assert await code_of(bo, "POST", "/v1/chats", thread) == (404, "unknown_thread")
        grant = await ada.post("/v1/grants", body)
        chat = (await bo.post("/v1/chats", thread))["chatId"]
        assert (await ada.post("/v1/chats", thread))["chatId"] == chat
        await say(bo, chat, "may I?")
        at = (await bo.get("/v1/chats"))["asOf"]
        revoked = await ada.request("DELETE", f"/v1/grants/{grant['grantId']}")
        assert revoked.status_code == 204
        await say(ada, chat, "no more")
        assert (await bo.get("/v1/chats"))["items"] == []
        assert [kind for kind, _ in (await sync(bo, at))[0]] == ["session.member_left"]

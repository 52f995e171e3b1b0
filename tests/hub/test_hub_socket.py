"""The socket of a client: who may open it, what it is told, and what it may say."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
import pytest_asyncio
from sqlalchemy import select, update
from websockets.exceptions import InvalidStatus

from factwire.hub.frames import hub_connections, hub_socket
from factwire.hub.frames.event_log import audience_of
from factwire.hub.frames.frame_types import AgentCancel, EdgePresence, FramePayload
from factwire.hub.frames.hub_connections import EdgeDevice, HubConnections
from factwire.hub.frames.hub_socket import FRAME_ERROR_CODES, FrameRate
from factwire.hub.hub_guard import HubGuard
from factwire.hub.limits import (
    DEVICE_LOST_SECONDS,
    FRAMES_AT_ONCE,
    SOCKET_CONNECTS_PER_MINUTE,
    SOCKET_TICKET_SECONDS,
    SOCKETS_PER_PERSON,
    TYPING_AT_ONCE,
)
from factwire.hub.people import socket_tickets
from factwire.hub.records.device_tables import devices
from factwire.hub.request_rates import RequestRates
from factwire.serving import logs
from factwire.serving.limits import ADDRESS_BYTES, CLIENT_FRAME_BYTES
from tests.edge.streaming import until
from tests.hub.hubs import PASSWORD, HubPerson
from tests.hub.served_hubs import WAIT, HubClient, ServedHub, dissolved, numbers_of, served_hub
from tests.hub.test_hub_tokens import FORGERIES, Forger

pytestmark = pytest.mark.asyncio(loop_scope="module")

TICKET = "/client/ws-ticket"
Join = Callable[[], Awaitable[HubPerson]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServedHub]:
    async with served_hub(tmp_path_factory.mktemp("hub")) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(hub: ServedHub) -> HubPerson:
    return await hub.first_admin()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def join(hub: ServedHub, admin: HubPerson) -> Join:
    async def join_somebody() -> HubPerson:
        names.append(f"Person {len(names)}")
        return await hub.join(admin, names[-1])

    names: list[str] = []
    return join_somebody


@pytest_asyncio.fixture(loop_scope="module")
async def person(join: Join) -> HubPerson:
    return await join()


@pytest_asyncio.fixture(loop_scope="module")
async def friend(join: Join) -> HubPerson:
    return await join()


async def get_ticket(person: HubPerson) -> str:
    return (await person.post(TICKET))["ticket"]


def token_of(person: HubPerson) -> str:
    return person.signed_in["accessToken"]


@pytest.mark.requirement("hub.socket.events")
async def test_a_socket_is_greeted_and_told_what_comes_after(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    live, behind = hub.hub.services.connections.live, asyncio.Event()
    read_tick = live._read_tick

    async def read_late() -> Any:
        await asyncio.wait_for(behind.wait(), WAIT)
        return await read_tick()

    # What was written before the greeting is not told after it, however far behind live events are.
    monkeypatch.setattr(live, "_read_tick", read_late)
    await hub.tell(person, 0)
    async with hub.screen(person) as screen:
        greeting = screen.frames[0]["payload"]
        assert greeting["user_id"] == person.person_id
        assert greeting["device_id"] == person.session_id
        await hub.tell(person, 1, 2)
        behind.set()
        await hub.tell(person, 3)
        assert numbers_of(await screen.take("notification.new", 3)) == [1, 2, 3]


@pytest.mark.requirement("hub.socket.resume")
async def test_a_socket_resumes_after_its_cursor(hub: ServedHub, person: HubPerson):
    async with hub.screen(person) as screen:
        greeted = screen.cursor
        await hub.tell(person, 1, 2)
        await screen.take("notification.new", 2)
        cursor = screen.cursor
    await hub.tell(person, 3)
    async with hub.screen(person, cursor=cursor) as screen:
        assert screen.frames[0]["payload"]["cursor"] == cursor
        await hub.tell(person, 4)
        assert numbers_of(await screen.take("notification.new", 2)) == [3, 4]
    async with hub.screen(person, cursor=greeted) as screen:
        assert numbers_of(await screen.take("notification.new", 4)) == [1, 2, 3, 4]


NO_CURSORS: dict[str, Callable[[str], str]] = {
    "nonsense": lambda _: "nonsense",
    "empty": lambda _: "",
    "another epoch": lambda cursor: f"fw1.{'0' * 16}{cursor[-17:]}",
    "from the future": lambda cursor: cursor[:-16] + "9" * 16,
}


@pytest.mark.requirement("hub.socket.resume")
@pytest.mark.parametrize("name", NO_CURSORS)
async def test_what_is_no_cursor_is_said_and_nothing_is_sent(
    hub: ServedHub, person: HubPerson, name: str
):
    cursor = hub.hub.services.connections.live.cursor
    async with hub.open(token_of(person), cursor=NO_CURSORS[name](cursor)) as screen:
        assert await screen.close_code() == 4400
    assert [each["type"] for each in screen.frames] == ["error"]
    payload = screen.frames[0]["payload"]
    assert payload["code"] == "cursor_invalid"
    assert payload["message"] == FRAME_ERROR_CODES["cursor_invalid"]
    assert payload["snapshotRequired"] is True


@pytest.mark.requirement("hub.socket.events")
async def test_events_of_an_audience_are_its_members_from_joining_to_leaving(
    hub: ServedHub, person: HubPerson, friend: HubPerson
):
    chat = audience_of("chat", "ses_members")
    async with hub.screen(person) as screen, hub.screen(friend) as other:
        begun = screen.cursor
        await hub.emit(chat, "session.dissolved", dissolved(1))
        await hub.join_audience(chat, person, friend)
        await hub.emit(chat, "session.dissolved", dissolved(2))
        await hub.leave_audience(chat, person)
        await hub.emit(chat, "session.dissolved", dissolved(3))
        async with hub.hub.services.events.change() as change:
            change.join(chat, person.person_id)
            change.emit(chat, "session.dissolved", dissolved(4))
            change.leave(chat, person.person_id)
            change.emit(chat, "session.dissolved", dissolved(5))
        for each in (person, friend):
            await hub.tell(each, 9)
        await screen.next("notification.new")
        await other.next("notification.new")
        live = [each for each in screen.frames if each["type"] == "session.dissolved"]
        theirs = [each for each in other.frames if each["type"] == "session.dissolved"]
    assert [each["payload"]["session_id"] for each in live] == ["ses_2", "ses_4"]
    assert [each["payload"]["session_id"][-1] for each in theirs] == ["2", "3", "4", "5"]
    async with hub.screen(person, cursor=begun) as again:
        await again.next("notification.new")
    later = [each for each in again.frames if each["type"] == "session.dissolved"]
    assert [each["cursor"] for each in later] == [each["cursor"] for each in live]


@pytest.mark.requirement("hub.socket.tickets")
async def test_a_ticket_opens_one_socket_of_many_that_try_at_once(
    hub: ServedHub, person: HubPerson
):
    ticket = await get_ticket(person)
    assert await count_uses(hub, ticket) == 1
    assert await hub.refusal(None, access_token=ticket) == (401, "ticket_invalid")


class DeleteNothing:
    """SQLAlchemy's `delete`, which only reads."""

    def __init__(self, table: Any) -> None:
        self._conditions: tuple[Any, ...] = (table.c.expires_at > 0,)

    def where(self, *conditions: Any) -> "DeleteNothing":
        self._conditions = conditions
        return self

    def returning(self, *columns: Any) -> Any:
        return select(*columns).where(*self._conditions)


async def test_a_ticket_that_stays_would_open_many(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    ticket = await get_ticket(person)
    monkeypatch.setattr(socket_tickets, "delete", DeleteNothing)
    assert await count_uses(hub, ticket) > 1


async def count_uses(hub: ServedHub, ticket: str) -> int:
    async def use() -> int:
        try:
            async with hub.open(None, access_token=ticket) as client:
                return int((await client.next())["type"] == "auth.ok")
        except InvalidStatus:
            return 0

    return sum(await asyncio.gather(*(use() for _ in range(50))))


@pytest.mark.requirement("hub.socket.tickets")
async def test_a_ticket_ends_with_its_time_and_with_its_session(hub: ServedHub, person: HubPerson):
    late = await get_ticket(person)
    hub.clock.advance(SOCKET_TICKET_SECONDS)
    assert await hub.refusal(None, access_token=late) == (401, "ticket_invalid")
    ticket = await get_ticket(person)
    await person.post("/v1/auth/logout", status=204)
    assert await hub.refusal(None, access_token=ticket) == (401, "ticket_invalid")


@pytest.mark.requirement("hub.socket.tickets")
async def test_a_ticket_opens_nothing_but_the_socket(hub: ServedHub, person: HubPerson):
    ticket = await get_ticket(person)
    answer = await hub.http.get("/v1/me", headers={"authorization": f"Bearer {ticket}"})
    assert answer.json()["code"] == "unauthenticated"
    for name, status in (("access_token", 400), ("ticket", 401)):
        assert (await hub.http.get("/v1/me", params={name: ticket})).status_code == status
    refused = await hub.refusal(None, path="/client/other", access_token=ticket)
    assert refused == (400, "token_in_url")


@pytest.mark.requirement("hub.socket.tickets")
async def test_an_access_token_in_the_address_needs_the_operators_consent(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    token = token_of(person)
    assert await hub.refusal(None, access_token=token) == (400, "token_in_url")
    assert await hub.refusal(None, access_token="tkt_unknown") == (401, "ticket_invalid")
    assert await hub.refusal(None, api_key=token) == (400, "token_in_url")
    allow_token_in_url(hub, monkeypatch)
    async with hub.open(None, access_token=token) as client:
        assert (await client.next())["type"] == "auth.ok"
    assert await hub.refusal(None, access_token=f"{token}x") == (401, "ticket_invalid")


def allow_token_in_url(hub: ServedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a Hub that is open already do what the setting says."""
    guard = cast("Any", hub.hub.application)._application._application
    assert isinstance(guard, HubGuard)
    monkeypatch.setattr(guard, "_token_in_url", True)


@pytest.mark.requirement("hub.tokens.forged")
async def test_no_forgery_opens_a_socket(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    allow_token_in_url(hub, monkeypatch)
    forger = Forger(hub, person)
    for name, forge in FORGERIES.items():
        token = forge(forger)
        if len(token) > ADDRESS_BYTES // 2:
            continue  # No request with this is read; HTTP has limits of its own.
        assert await hub.refusal(None, access_token=token) == (401, "ticket_invalid"), name
        if token.isascii() and token.isprintable():
            assert await hub.refusal(token) == (401, "unauthenticated"), name
    assert await hub.refusal(None) == (401, "unauthenticated")
    async with hub.open(forger.valid) as client:
        assert (await client.next())["type"] == "auth.ok"


async def find_logged(
    hub: ServedHub, person: HubPerson, caplog: pytest.LogCaptureFixture
) -> list[str]:
    """The credentials of sockets that are in the log."""
    caplog.set_level(logging.DEBUG, "factwire")
    ticket = await get_ticket(person)
    async with hub.open(None, access_token=ticket) as client:
        await client.next()
    async with hub.screen(person):
        pass
    await hub.refusal(None, access_token=ticket)
    assert "socket_opened" in caplog.text
    return [each for each in (ticket, token_of(person)) if each in caplog.text]


@pytest.mark.requirement("hub.secrets")
async def test_no_credential_of_a_socket_is_logged(
    hub: ServedHub, person: HubPerson, caplog: pytest.LogCaptureFixture
):
    assert await find_logged(hub, person, caplog) == []


async def test_a_ticket_that_is_logged_as_it_is_would_be_found(
    hub: ServedHub,
    person: HubPerson,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    def name_by_ticket(scope: Any) -> str:
        return scope["query_string"].decode().removeprefix("access_token=")

    def redact_nothing(value: Any) -> tuple[Any, int]:
        return value, 0

    monkeypatch.setattr(hub_socket, "scope_trace_id", name_by_ticket)
    monkeypatch.setattr(logs, "redact_value", redact_nothing)
    assert await find_logged(hub, person, caplog) != []


async def sign_out(hub: ServedHub, person: HubPerson, _: HubPerson) -> None:
    del hub
    await person.post("/v1/auth/logout", status=204)


async def be_disabled(hub: ServedHub, person: HubPerson, admin: HubPerson) -> None:
    del hub
    change = {"disabled": True}
    answer = await admin.request("PATCH", f"/v1/people/{person.person_id}", change)
    assert answer.status_code == 200


async def change_password_elsewhere(hub: ServedHub, person: HubPerson, _: HubPerson) -> None:
    elsewhere = await hub.sign_in((await person.get("/v1/me"))["name"])
    body = {"currentPassword": PASSWORD, "newPassword": "another one that is as long"}
    await elsewhere.post("/v1/me/password", body, status=204)


@pytest.mark.requirement("hub.socket.revoked")
@pytest.mark.parametrize("end", [sign_out, be_disabled, change_password_elsewhere])
async def test_a_socket_ends_with_its_session_and_resumes_no_more(
    hub: ServedHub, person: HubPerson, admin: HubPerson, end: Callable[..., Awaitable[None]]
):
    async with hub.screen(person) as screen:
        await end(hub, person, admin)
        assert await screen.close_code() == 4401
    refused = await hub.refusal(token_of(person), cursor=screen.cursor)
    assert refused == (401, "unauthenticated")


async def test_sessions_that_nobody_looks_for_would_keep_their_sockets(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    looks: list[object] = []

    async def find_none(*_: object) -> list[str]:
        looks.append(_)
        return []

    monkeypatch.setattr("factwire.hub.frames.hub_connections.find_ended_sessions", find_none)
    async with hub.screen(person) as screen:
        await sign_out(hub, person, person)
        looks.clear()
        await until(lambda: len(looks) > 1)
        await screen.send("auth")
        await screen.next("auth.fail")


@pytest.mark.requirement("hub.socket.typing")
async def test_typing_reaches_the_other_members_and_is_kept_nowhere(
    hub: ServedHub, person: HubPerson, friend: HubPerson
):
    await hub.join_audience(audience_of("chat", "ses_typed"), person, friend)
    async with AsyncExitStack() as stack:
        mine = await stack.enter_async_context(hub.screen(person))
        second = await stack.enter_async_context(hub.screen(person))
        theirs = await stack.enter_async_context(hub.screen(friend))
        begun = theirs.cursor
        await mine.send("typing", session_id="ses_typed")
        typed = {"session_id": "ses_typed", "user_id": person.person_id}
        assert (await theirs.next("typing"))["payload"] == typed
        assert (await second.next("typing"))["payload"] == typed
        for each in (person, friend):
            await hub.tell(each, 1)
        await mine.next("notification.new")
        assert "typing" not in [each["type"] for each in mine.frames]
    async with hub.screen(friend, cursor=begun) as again:
        await again.next("notification.new")
        assert "typing" not in [each["type"] for each in again.frames]


@pytest.mark.requirement("hub.socket.typing")
async def test_typing_is_told_only_so_often_and_only_by_members(
    hub: ServedHub, person: HubPerson, friend: HubPerson
):
    chat = audience_of("chat", "ses_often")
    await hub.join_audience(chat, friend)
    async with hub.screen(person) as mine, hub.screen(friend) as theirs:
        await mine.send("typing", session_id="ses_often")
        assert (await mine.next("error"))["payload"]["code"] == "unknown_chat"
        hub.clock.advance(10)
        await hub.join_audience(chat, person)
        await hub.tell(person, 1)
        await mine.next("notification.new")
        for _ in range(2 * TYPING_AT_ONCE):
            await mine.send("typing", session_id="ses_often")
        await mine.send("auth")
        await mine.next("auth.fail")
        await hub.tell(friend, 1)
        await theirs.next("notification.new")
        typed = [each for each in theirs.frames if each["type"] == "typing"]
        assert len(typed) == TYPING_AT_ONCE


@pytest.mark.requirement("hub.socket.presence")
async def test_screens_come_and_go_once_however_many_sockets_they_have(
    hub: ServedHub, person: HubPerson
):
    watching = await hub.sign_in((await person.get("/v1/me"))["name"])
    screen = {
        "user_id": person.person_id,
        "device_id": person.session_id,
        "device_type": "screen",
    }
    async with hub.screen(watching) as watcher:
        async with hub.screen(person), hub.screen(person):
            # Its own coming may be before the end of the log at which it began to read.
            while (await watcher.next("device.online"))["payload"] != screen:
                pass
        assert (await watcher.next("device.offline"))["payload"] == screen
        await hub.tell(person, 1)
        await watcher.next("notification.new")
        shown = [each["type"] for each in watcher.frames if each["payload"] == screen]
        assert shown == ["device.online", "device.offline"]


class EdgeLog:
    """What handlers of a device's socket were told; each frame is answered with one."""

    def __init__(self, connections: HubConnections, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Any] = []
        monkeypatch.setattr(connections, "on_edge_frame", [self._frame])
        monkeypatch.setattr(connections, "on_edge_connected", [self._connected])
        monkeypatch.setattr(connections, "on_edge_gone", [self._gone])
        self._connections = connections

    async def _connected(self, device: EdgeDevice) -> None:
        self.calls.append(("connected", device.device_id))

    async def _gone(self, device: EdgeDevice) -> None:
        self.calls.append(("gone", device.device_id))

    async def _frame(self, device: EdgeDevice, type_: str, payload: FramePayload) -> None:
        self.calls.append((type_, payload))
        cancel = AgentCancel(task_id="tsk_1", delivery_id="dlv_2")
        assert self._connections.send_to_device(device.device_id, "agent.cancel", cancel)


async def read_online(hub: ServedHub, device_id: str) -> bool:
    async with hub.hub.services.database.read() as connection:
        query = select(devices.c.online).where(devices.c.device_id == device_id)
        return (await connection.execute(query)).scalar_one()


@pytest.mark.requirement("hub.socket.devices")
async def test_a_device_speaks_with_its_handlers_and_gets_no_events_of_people(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    connections = hub.hub.services.connections
    log = EdgeLog(connections, monkeypatch)
    device = await hub.add_device(person)
    cancel = AgentCancel(task_id="tsk_1", delivery_id="dlv_1")
    assert not connections.send_to_device(device.device_id, "agent.cancel", cancel)
    async with hub.screen(person) as screen:
        async with hub.edge(device) as edge:
            assert edge.frames[0]["payload"]["device_id"] == device.device_id
            await hub.tell(person, 1)
            await screen.next("notification.new")
            answer = await edge.ask("delivery.ack", delivery_id="dlv_1")
            assert answer["payload"] == {"task_id": "tsk_1", "delivery_id": "dlv_2"}
            refused = await edge.ask("typing", session_id="ses_1")
            assert refused["payload"]["code"] == "frame_unknown"
            assert await read_online(hub, device.device_id)
        ids = {"edge_id": device.edge_id, "device_id": device.device_id}
        assert (await screen.next("edge.offline"))["payload"] == ids
        assert not await read_online(hub, device.device_id)
    about = [each for each in screen.frames if each["payload"].get("device_id") == device.device_id]
    names = [each["type"] for each in about]
    assert names == ["device.online", "edge.online", "device.offline", "edge.offline"]
    assert [each[0] for each in log.calls] == ["connected", "delivery.ack", "gone"]


@pytest.mark.requirement("hub.socket.devices")
async def test_a_second_socket_of_a_device_ends_the_first(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    connections = hub.hub.services.connections
    log = EdgeLog(connections, monkeypatch)
    device = await hub.add_device(person)
    async with hub.screen(person) as screen, hub.edge(device) as first:
        await screen.next("edge.online")
        async with hub.edge(device) as second:
            kicked = {"device_id": device.device_id, "reason": "replaced"}
            assert (await first.next("device.kicked"))["payload"] == kicked
            assert await first.close_code() == 4409
            assert (await screen.next("device.kicked"))["payload"] == kicked
            await screen.next("edge.online")
            assert (await second.ask("delivery.ack", delivery_id="d"))["type"] == "agent.cancel"
            assert connections.is_connected(device.device_id)
        await screen.next("edge.offline")
    assert [each["type"] for each in screen.frames].count("edge.offline") == 1
    assert [each[0] for each in log.calls] == ["connected", "connected", "delivery.ack", "gone"]


@pytest.mark.requirement("hub.socket.devices")
async def test_a_socket_of_a_device_in_another_process_ends_this_one(
    hub: ServedHub, person: HubPerson
):
    device = await hub.add_device(person)
    async with hub.screen(person) as screen, hub.edge(device) as edge:
        await screen.next("edge.online")
        async with hub.hub.services.events.change() as change:
            elsewhere = update(devices).where(devices.c.device_id == device.device_id)
            await change.connection.execute(elsewhere.values(connection_id="con_elsewhere"))
            came = EdgePresence(edge_id=device.edge_id, device_id=device.device_id)
            change.emit(audience_of("device", device.device_id), "edge.online", came)
        await edge.next("device.kicked")
        assert await edge.close_code() == 4409
    assert await read_online(hub, device.device_id)


@pytest.mark.requirement("hub.socket.devices")
async def test_a_device_whose_hub_was_killed_is_marked_as_gone_after_a_while(
    hub: ServedHub, person: HubPerson
):
    device, services = await hub.add_device(person), hub.hub.services
    async with services.database.write() as connection:
        mark = update(devices).where(devices.c.device_id == device.device_id)
        await connection.execute(mark.values(online=True, connection_id="con_of_a_dead_hub"))
    async with hub.screen(person) as screen:
        await services.connections.note_devices()
        assert await read_online(hub, device.device_id)
        hub.clock.advance(DEVICE_LOST_SECONDS + 1)
        await services.connections.note_devices()
        await screen.next("edge.offline")
    assert not await read_online(hub, device.device_id)


@pytest.mark.requirement("hub.socket.revoked")
async def test_a_device_that_was_revoked_loses_its_socket(hub: ServedHub, person: HubPerson):
    device = await hub.add_device(person)
    async with hub.edge(device) as edge:
        revoked = await person.request("DELETE", f"/v1/devices/{device.device_id}")
        assert revoked.status_code == 204
        assert await edge.close_code() == 4401
    assert await hub.refusal(device.token) == (401, "unauthenticated")


BAD_FRAMES: dict[str, tuple[str | bytes, str]] = {
    "no JSON": ("{", "frame_invalid"),
    "empty": ("", "frame_invalid"),
    "binary": (b'{"type":"auth"}', "frame_invalid"),
    "a list": ("[]", "frame_invalid"),
    "no type": ('{"payload":{}}', "frame_invalid"),
    "a type that is a number": ('{"type":1}', "frame_invalid"),
    "an unknown type": ('{"type":"nonsense"}', "frame_unknown"),
    "what the Hub sends": ('{"type":"message.new","payload":{}}', "frame_unknown"),
    "what a device sends": (
        '{"type":"delivery.ack","payload":{"delivery_id":"d"}}',
        "frame_unknown",
    ),
    "no payload": ('{"type":"typing"}', "frame_invalid"),
    "a payload of another type": ('{"type":"typing","payload":{"session_id":1}}', "frame_invalid"),
    "a payload that is null": ('{"type":"typing","payload":null}', "frame_invalid"),
    "a chat of nobody": ('{"type":"typing","payload":{"session_id":"x"}}', "unknown_chat"),
    "a lone surrogate": (r'{"type":"\ud800"}', "frame_invalid"),
    "depth": ('{"type":"typing","payload":' + "[" * 30_000 + "}", "frame_invalid"),
    "a large number": ('{"type":"typing","payload":' + "9" * 30_000 + "}", "frame_invalid"),
}


@pytest.mark.requirement("hub.socket.frames")
async def test_each_bad_frame_is_answered_with_a_documented_code(hub: ServedHub, person: HubPerson):
    async with hub.screen(person) as screen:
        for name, (sent, code) in BAD_FRAMES.items():
            hub.clock.advance(1)
            await screen.connection.send(sent)
            answer = await screen.next("error")
            assert (name, answer["payload"]["code"]) == (name, code)
        await screen.send("auth")
        await screen.next("auth.fail")
    assert {code for _, code in BAD_FRAMES.values()} <= FRAME_ERROR_CODES.keys()


def make_frame(size: int) -> str:
    text = json.dumps({"type": "nonsense", "more": ""})
    return text[:-2] + "x" * (size - len(text)) + '"}'


@pytest.mark.requirement("hub.socket.limits")
async def test_a_frame_has_a_bound(hub: ServedHub, person: HubPerson):
    async with hub.screen(person) as screen:
        await screen.connection.send(make_frame(CLIENT_FRAME_BYTES))
        assert (await screen.next("error"))["payload"]["code"] == "frame_unknown"
        await screen.connection.send(make_frame(CLIENT_FRAME_BYTES + 1))
        assert await screen.close_code() == 1009


async def test_without_the_bound_a_larger_frame_would_be_read(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub.server.config, "ws_max_size", 1 << 30)
    monkeypatch.setattr(hub_socket, "CLIENT_FRAME_BYTES", 1 << 30)
    async with hub.screen(person) as screen:
        await screen.connection.send(make_frame(CLIENT_FRAME_BYTES + 1))
        assert (await screen.next("error"))["payload"]["code"] == "frame_unknown"


async def answer_at_once(screen: HubClient) -> list[str]:
    """What one frame more than may come at once is answered with, each in turn."""
    answers: list[str] = []
    for _ in range(FRAMES_AT_ONCE + 1):
        await screen.send("auth")
        while (await screen.next())["type"] not in ("auth.fail", "error"):
            pass
        frame = screen.frames[-1]
        answers.append(frame["payload"].get("code", frame["type"]))
    return answers


@pytest.mark.requirement("hub.socket.limits")
async def test_frames_that_come_too_fast_are_refused_and_a_flood_ends_the_socket(
    hub: ServedHub, person: HubPerson
):
    async with hub.screen(person) as screen:
        answers = await answer_at_once(screen)
        assert answers == ["auth.fail"] * FRAMES_AT_ONCE + ["too_many_frames"]
        hub.clock.advance(0.11)
        await screen.send("auth")
        await screen.next("auth.fail")
        for _ in range(FRAMES_AT_ONCE + 1):
            await screen.send("auth")
        assert await screen.close_code() == 4429


async def test_without_their_rate_all_frames_would_be_taken(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    def wait_never(_: FrameRate) -> float:
        return 0.0

    monkeypatch.setattr(FrameRate, "wait_seconds", wait_never)
    async with hub.screen(person) as screen:
        assert await answer_at_once(screen) == ["auth.fail"] * (FRAMES_AT_ONCE + 1)


async def open_at_once(hub: ServedHub, person: HubPerson, stack: AsyncExitStack) -> int:
    """How many sockets of somebody open, of more than they may have."""
    opened = [hub.open(token_of(person)) for _ in range(SOCKETS_PER_PERSON + 5)]
    tried = await asyncio.gather(
        *(stack.enter_async_context(each) for each in opened), return_exceptions=True
    )
    return sum(not isinstance(each, BaseException) for each in tried)


@pytest.mark.requirement("hub.socket.limits")
async def test_a_person_has_so_many_sockets_even_if_all_come_at_once(
    hub: ServedHub, person: HubPerson
):
    async with AsyncExitStack() as stack:
        assert await open_at_once(hub, person, stack) == SOCKETS_PER_PERSON
        assert await hub.refusal(token_of(person)) == (429, "too_many_sockets")
        device = await hub.add_device(person)
        async with hub.edge(device):
            pass
    async with hub.screen(person):
        pass


async def test_without_their_limit_more_sockets_would_open(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub_connections, "SOCKETS_PER_PERSON", 1_000)
    async with AsyncExitStack() as stack:
        assert await open_at_once(hub, person, stack) > SOCKETS_PER_PERSON


async def connect_too_often(hub: ServedHub, person: HubPerson, here: dict[str, str]) -> None:
    """Of so many sockets in a minute, whoever opens them, one address opens no more."""
    for _ in range(SOCKET_CONNECTS_PER_MINUTE // 2):
        async with hub.open(token_of(person), headers=here) as client:
            await client.next()
        assert (await hub.refusal(None, headers=here))[0] == 401
    assert await hub.refusal(None, headers=here) == (429, "too_many_requests")


@pytest.mark.requirement("hub.socket.limits")
async def test_one_address_opens_so_many_sockets_in_a_minute(hub: ServedHub, person: HubPerson):
    here = {"x-forwarded-for": "192.0.2.1"}
    await connect_too_often(hub, person, here)
    assert await hub.refusal(token_of(person), headers=here) == (429, "too_many_requests")
    hub.clock.advance(61)
    async with hub.open(token_of(person), headers=here) as client:
        await client.next()


async def test_an_address_that_is_not_counted_would_open_more(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    def count_nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(RequestRates, "spend", count_nothing)
    with pytest.raises(AssertionError):
        await connect_too_often(hub, person, {"x-forwarded-for": "192.0.2.2"})


async def test_other_addresses_are_no_sockets(hub: ServedHub, admin: HubPerson):
    assert await hub.refusal(token_of(admin), path="/client/other") == (404, "not_found")

"""What a socket is told survives cuts, races, stopped readers, kills and whatever clients send."""

import asyncio
import json
import random
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from factwire.hub.frames import hub_socket, live_events
from factwire.hub.frames.event_log import (
    EventLog,
    audience_of,
    read_cursor,
    remove_old_events,
)
from factwire.hub.frames.frame_types import FRAMES, REQUESTS, NotificationNew
from factwire.hub.frames.hub_socket import FRAME_ERROR_CODES, FrameRefused, decode_client_frame
from factwire.hub.frames.live_events import FrameSender, LiveEvents
from factwire.hub.frames.socket_frames import FrameBatch
from factwire.hub.records.hub_database import RecordsUnavailable, open_database
from factwire.serving.limits import UNSENT_BYTES
from tests.edge.streaming import until
from tests.hub.hub_process import HubProcess, hub_process
from tests.hub.hubs import PASSWORD, HubPerson
from tests.hub.served_hubs import (
    WAIT,
    HubClient,
    ServedHub,
    dissolved,
    elsewhere,
    notification,
    numbers_of,
    served_hub,
)
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.asyncio(loop_scope="module")

CUTS = count_trials(full=500, share=60)
KILLS = count_trials(full=50, share=1)
DECODED = count_trials(full=200_000, share=10_000)
SENT = count_trials(full=5_000, share=300)
EVENTS_BETWEEN_KILLS = 40


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServedHub]:
    async with served_hub(tmp_path_factory.mktemp("hub")) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(hub: ServedHub) -> HubPerson:
    return await hub.first_admin()


@pytest_asyncio.fixture(loop_scope="module")
async def person(hub: ServedHub, admin: HubPerson, request: pytest.FixtureRequest) -> HubPerson:
    return await hub.join(admin, request.node.name[:60])


@pytest.mark.nightly
@pytest.mark.fault
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("hub.socket.resume")
async def test_a_reader_cut_after_every_frame_misses_and_repeats_nothing(
    hub: ServedHub, person: HubPerson
):
    chat = audience_of("chat", "ses_cut")
    await hub.join_audience(chat, person)
    cursor = hub.hub.services.connections.live.cursor

    async def write() -> None:
        for number in range(CUTS):
            async with hub.hub.services.events.change() as change:
                audience = chat if number % 2 else audience_of("person", person.person_id)
                change.emit(audience, "notification.new", notification(number))
            if number % 5 == 4:
                # Some is written while a reader is cut off, some while it catches up or is live.
                await until(lambda least=number - 10: len(seen) > least)

    seen: list[int] = []
    writing = asyncio.create_task(write())
    while len(seen) < CUTS:
        async with hub.open(person.signed_in["accessToken"], cursor=cursor) as client:
            while not (found := numbers_of(client.frames)):
                await client.next()
            client.connection.transport.abort()
        seen += found
        cursor = client.cursor
    await writing
    assert seen == list(range(CUTS))


@asynccontextmanager
async def raced_page(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch, *numbers: int
) -> AsyncGenerator[None]:
    """Events that are passed on while somebody's resume is read, each after one page."""
    read_page, waiting = LiveEvents._read_page, list(numbers)
    live = hub.hub.services.connections.live

    async def read_and_race(self: LiveEvents, *arguments: Any) -> Any:
        page = await read_page(self, *arguments)
        if waiting:
            before = live.seq
            await hub.tell(person, waiting.pop(0))
            await until(lambda: live.seq > before)
        return page

    with monkeypatch.context() as patch:
        patch.setattr(LiveEvents, "_read_page", read_and_race)
        yield


async def resume_in_a_race(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    cursor = hub.hub.services.connections.live.cursor
    await hub.tell(person, 1, 2)
    async with (
        raced_page(hub, person, monkeypatch, 3),
        hub.open(person.signed_in["accessToken"], cursor=cursor) as screen,
    ):
        await screen.next()
        await hub.tell(person, 4)
        while 4 not in numbers_of(screen.frames):
            await screen.next()
    return numbers_of(screen.frames)


@pytest.mark.requirement("hub.socket.resume")
async def test_what_comes_while_a_reader_catches_up_comes_after_it(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    assert await resume_in_a_race(hub, person, monkeypatch) == [1, 2, 3, 4]


async def test_without_holding_it_back_it_would_come_before(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    def hold_nothing(_: FrameSender) -> None:
        pass

    monkeypatch.setattr(FrameSender, "hold", hold_nothing)
    assert await resume_in_a_race(hub, person, monkeypatch) != [1, 2, 3, 4]


async def resume_ahead_of_live_events(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Read from the database what live events have not come to yet."""
    live, go_on = hub.hub.services.connections.live, asyncio.Event()
    cursor, read_tick = live.cursor, LiveEvents._read_tick

    async def wait_and_read(self: LiveEvents) -> Any:
        await go_on.wait()
        return await read_tick(self)

    with monkeypatch.context() as patch:
        patch.setattr(LiveEvents, "_read_tick", wait_and_read)
        await hub.tell(person, 1, 2)
        async with hub.screen(person, cursor=cursor) as screen:
            await screen.take("notification.new", 2)
            go_on.set()
            await hub.tell(person, 3)
            while 3 not in numbers_of(screen.frames):
                await screen.next()
    return numbers_of(screen.frames)


@pytest.mark.requirement("hub.socket.resume")
async def test_a_reader_that_is_ahead_of_live_events_gets_nothing_twice(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    assert await resume_ahead_of_live_events(hub, person, monkeypatch) == [1, 2, 3]


async def test_without_its_number_it_would_get_everything_twice(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    release = FrameSender.release

    def release_all(sender: FrameSender, _: int) -> None:
        release(sender, 0)

    monkeypatch.setattr(FrameSender, "release", release_all)
    assert await resume_ahead_of_live_events(hub, person, monkeypatch) == [1, 2, 1, 2, 3]


@pytest.mark.requirement("hub.socket.resume")
async def test_a_reader_that_cannot_keep_what_comes_reads_it_in_another_round(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    defaults = cast("dict[str, Any]", FrameSender.__init__.__kwdefaults__)
    monkeypatch.setitem(defaults, "limit", 100)
    assert await resume_in_a_race(hub, person, monkeypatch) == [1, 2, 3, 4]


@pytest.mark.requirement("hub.socket.events")
async def test_somebody_who_leaves_while_a_socket_opens_has_left(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    chat, live = audience_of("chat", "ses_left"), hub.hub.services.connections.live
    await hub.join_audience(chat, person)
    read_memberships = live_events.read_memberships

    async def read_and_leave(connection: Any, person_id: str) -> Any:
        found = await read_memberships(connection, person_id)
        leaving.append(asyncio.create_task(hub.leave_audience(chat, person)))
        return found

    async def load(self: LiveEvents, loading: Any) -> None:
        # What was read is older than what is passed on by now.
        await load_person(self, loading)
        assert leaving

    load_person, leaving = LiveEvents._load, list[asyncio.Task[None]]()
    monkeypatch.setattr(live_events, "read_memberships", read_and_leave)
    monkeypatch.setattr(LiveEvents, "_load", load)
    async with hub.screen(person) as screen:
        await asyncio.gather(*leaving)
        await hub.emit(chat, "session.dissolved", dissolved(1))
        await hub.tell(person, 1)
        await screen.next("notification.new")
    assert "session.dissolved" not in [each["type"] for each in screen.frames]
    assert chat not in live._by_audience


@pytest.mark.requirement("hub.socket.resume")
async def test_an_expired_cursor_is_said_and_nothing_is_sent(tmp_path: Path):
    async with served_hub(tmp_path) as hub:
        admin = await hub.first_admin()
        services = hub.hub.services
        old = services.connections.live.cursor
        await hub.tell(admin, 1, 2)
        hub.clock.advance(60)
        async with hub.screen(admin) as screen:
            kept = screen.cursor
            await hub.tell(admin, 3)
            await screen.next("notification.new")
        hub.clock.advance(30)
        removed = await remove_old_events(services.database, services.now() - 60_000, 100)
        assert removed == 2
        async with hub.open(admin.signed_in["accessToken"], cursor=old) as screen:
            assert await screen.close_code() == 4410
        assert [each["type"] for each in screen.frames] == ["error"]
        assert screen.frames[0]["payload"]["code"] == "cursor_expired"
        assert screen.frames[0]["payload"]["snapshotRequired"] is True
        async with hub.screen(admin, cursor=kept) as screen:
            await screen.next("notification.new")
            assert numbers_of(screen.frames) == [3]
            stopping = asyncio.create_task(services.connections.close())
            assert await screen.close_code() == 1012
            await stopping
        refused = await hub.refusal(admin.signed_in["accessToken"])
        assert refused == (503, "streams_stopping")


@pytest.mark.requirement("hub.socket.events")
async def test_events_go_on_after_the_database_or_the_reading_failed(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    failures: list[Exception] = [RecordsUnavailable("gone"), RecordsUnavailable("gone")]
    read_tick = LiveEvents._read_tick

    async def fail_first(self: LiveEvents) -> Any:
        if failures:
            raise failures.pop()
        return await read_tick(self)

    async with hub.screen(person) as screen:
        monkeypatch.setattr(LiveEvents, "_read_tick", fail_first)
        await hub.tell(person, 1)
        await screen.next("notification.new")
        failures.append(ZeroDivisionError())
        await hub.tell(person, 2)
        assert await screen.close_code() == 1011
    async with hub.screen(person, cursor=screen.cursor) as screen:
        assert numbers_of([await screen.next("notification.new")]) == [2]


STOPPED = 4
READERS = 10
PIECE = 40_000
PIECES = 60


class MostHeld:
    """The most that was ever held for one reader."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        send = FrameSender.send

        def watch(sender: FrameSender, batch: FrameBatch) -> None:
            send(sender, batch)
            self.bytes = max(self.bytes, sender._held_bytes + sender.sink.unsent)

        monkeypatch.setattr(FrameSender, "send", watch)


@asynccontextmanager
async def stopped_client(hub: ServedHub, person: HubPerson) -> AsyncGenerator[socket.socket]:
    """A reader that has shaken hands and takes nothing."""
    ticket = (await person.post("/client/ws-ticket"))["ticket"]
    reader, loop = socket.socket(), asyncio.get_running_loop()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    reader.setblocking(False)
    await loop.sock_connect(reader, ("127.0.0.1", hub.port))
    source = elsewhere()["x-forwarded-for"]
    request = (
        f"GET /client/ws?{urlencode({'access_token': ticket})} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{hub.port}\r\nX-Forwarded-For: {source}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n"
    )
    await loop.sock_sendall(reader, request.encode())
    assert (await loop.sock_recv(reader, 12)).startswith(b"HTTP/1.1 101")
    with reader:
        yield reader


async def tell_beside_stopped_readers(hub: ServedHub, person: HubPerson) -> list[HubClient]:
    """Tell more than a reader may be behind, to some that read and some that do not."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(hub.screen(person)) for _ in range(READERS - STOPPED)
        ]
        for _ in range(STOPPED):
            await stack.enter_async_context(stopped_client(hub, person))
        connections = hub.hub.services.connections
        await until(lambda: connections.screen_count >= READERS)
        for each in hub.server.server_state.connections:
            raw = cast("Any", each).transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        for number in range(PIECES):
            payload = NotificationNew(
                notification_id="ntf", type="test", payload={"n": number, "x": "x" * PIECE}
            )
            await hub.emit(audience_of("person", person.person_id), "notification.new", payload)
            for client in clients:
                await client.next("notification.new")
        await until(lambda: closed_or_held(hub, person, READERS - STOPPED))
        return clients


def closed_or_held(hub: ServedHub, person: HubPerson, left: int) -> bool:
    """Whether those that take nothing are closed, or hold what nobody may."""
    found = hub.hub.services.connections.live._people[person.person_id].senders
    gone = sum(not sender.sink.is_gone for sender in found) == left
    return gone or any(sender._held_bytes > UNSENT_BYTES for sender in found)


@pytest.mark.fault
@pytest.mark.requirement("hub.socket.slow")
async def test_stopped_readers_are_closed_at_their_limit_and_slow_no_other(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    most = MostHeld(monkeypatch)
    clients = await tell_beside_stopped_readers(hub, person)
    for client in clients:
        assert numbers_of(client.frames) == list(range(PIECES))
    assert UNSENT_BYTES / 2 < most.bytes <= UNSENT_BYTES
    cursor = clients[0].frames[0]["payload"]["cursor"]
    async with hub.screen(person, cursor=cursor) as again:
        assert numbers_of(await again.take("notification.new", PIECES)) == list(range(PIECES))


@pytest.mark.fault
async def test_without_the_limit_what_is_held_grows_past_it(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    defaults = cast("dict[str, Any]", FrameSender.__init__.__kwdefaults__)
    monkeypatch.setitem(defaults, "limit", 1 << 40)
    most = MostHeld(monkeypatch)
    await tell_beside_stopped_readers(hub, person)
    assert most.bytes > UNSENT_BYTES


async def read_through_kills(folder: Path) -> tuple[list[int], int]:
    """What a reader got that resumes after each kill of the Hub, while another process writes."""
    seen: list[int] = []
    cursor: str | None = None
    token = person_id = ""
    total = (KILLS + 1) * EVENTS_BETWEEN_KILLS
    for kill in range(KILLS + 1):
        with hub_process(folder) as hub:
            if not token:
                signed_in = register(hub)
                token, person_id = signed_in["accessToken"], signed_in["person"]["personId"]
            async with open_database(f"sqlite:{folder / 'hub' / 'hub.db'}") as database:
                log = EventLog(database, time)
                if cursor is None:
                    async with database.read() as connection:
                        cursor = await read_cursor(connection)
                first = kill * EVENTS_BETWEEN_KILLS
                writing = asyncio.create_task(
                    write_numbers(log, person_id, range(first, first + EVENTS_BETWEEN_KILLS))
                )
                wanted = total if kill == KILLS else first + EVENTS_BETWEEN_KILLS // 2
                cursor = await read_numbers(hub, token, cursor, seen, wanted)
                if kill < KILLS:
                    hub.kill()
                await writing
    return seen, total


def register(hub: HubProcess) -> dict[str, Any]:
    body = {"token": hub.first_token, "name": "Ada", "password": PASSWORD}
    answer = httpx.post(f"{hub.url}/v1/auth/register", json=body, trust_env=False, timeout=WAIT)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def write_numbers(log: EventLog, person_id: str, numbers: range) -> None:
    for number in numbers:
        async with log.change() as change:
            change.tell(person_id, "notification.new", notification(number))


async def read_numbers(
    hub: HubProcess, token: str, cursor: str, seen: list[int], wanted: int
) -> str:
    """Read on until enough was seen; returns where that is."""
    query = f"?{urlencode({'cursor': cursor})}"
    async with connect(
        f"{hub.url.replace('http', 'ws')}/client/ws{query}",
        additional_headers={"authorization": f"Bearer {token}"},
        open_timeout=WAIT,
        compression=None,
    ) as connection:
        client = HubClient(connection, "hub_to_client")
        had = list(seen)
        while len(seen) < wanted:
            await client.next()
            seen[:] = had + numbers_of(client.frames)
        return client.cursor


@pytest.mark.nightly
@pytest.mark.fault
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("hub.socket.killed")
async def test_readers_resume_exactly_after_kills_of_the_hub(tmp_path: Path):
    seen, total = await read_through_kills(tmp_path)
    assert seen == list(range(total))


def make_input(dice: random.Random, types: list[str]) -> str | bytes:
    """A frame that may be right, nearly right, or nothing of the kind."""
    frame: Any = {"type": dice.choice(types), "payload": make_value(dice, 3)}
    if dice.random() < 0.2:
        frame = make_value(dice, 4)
    text = json.dumps(frame, ensure_ascii=dice.random() < 0.5)
    for _ in range(dice.choice((0, 0, 1, 3))):
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice(('"', "{", "]", "\\ud800", "\x00", "é", "")) + text[at + 1 :]
    if dice.random() < 0.1:
        return text.encode("utf-8", "surrogatepass")
    return text.encode("utf-8", "replace").decode()


def make_value(dice: random.Random, depth: int) -> Any:
    leaf: Any = dice.choice((None, True, 0, -1, 1 << 70, 1e300, "", "ses_1", "dev_1", "\u202e"))
    if not depth or dice.random() < 0.3:
        return leaf
    if dice.random() < 0.3:
        return [make_value(dice, depth - 1) for _ in range(dice.randrange(3))]
    names = ("session_id", "task_id", "delivery_id", "type", "payload", "status", "commandId", "x")
    return {dice.choice(names): make_value(dice, depth - 1) for _ in range(dice.randrange(4))}


def decode_whatever_comes(number: int) -> None:
    """What is made of inputs is a frame of the table, or a documented refusal."""
    dice = random.Random(1)
    from_edge = {
        name: row.payload for name, row in FRAMES.items() if "edge_to_hub" in row.directions
    }
    outcomes: set[str] = set()
    for _ in range(number):
        for known in (REQUESTS, from_edge):
            sent = make_input(dice, [*known, "message.new", "nonsense"])
            message = {"bytes": sent} if isinstance(sent, bytes) else {"text": sent}
            try:
                type_, payload = decode_client_frame(message, known)
                assert isinstance(payload, known[type_])
                msgspec.json.encode(payload)
                outcomes.add("taken")
            except FrameRefused as refused:
                outcomes.add(refused.code)
    assert outcomes == {"taken", "frame_invalid", "frame_unknown"}
    assert outcomes - {"taken"} <= FRAME_ERROR_CODES.keys()


async def send_whatever_comes(hub: ServedHub, person: HubPerson, number: int) -> None:
    """Each input is answered on its own socket, if at all, and another is told as ever."""
    dice = random.Random(2)
    device = await hub.add_device(person)
    async with AsyncExitStack() as stack:
        watcher = await stack.enter_async_context(hub.screen(person))
        for open_client, types in (
            (lambda: hub.screen(person), [*REQUESTS, "nonsense"]),
            (lambda: hub.edge(device), [*FRAMES]),
        ):
            async with cast("Any", open_client)() as client:
                for sent in range(number):
                    await client.connection.send(make_input(dice, types))
                    if sent % 10 == 9:
                        await read_answers(client)
                        hub.clock.advance(1.2)
        await hub.tell(person, 1)
        await watcher.next("notification.new")


async def read_answers(client: HubClient) -> None:
    """Read until what was sent last is answered."""
    await client.send("the last one")
    while True:
        frame = await client.next("error")
        assert frame["payload"]["code"] in FRAME_ERROR_CODES
        if "'the last one'" in frame["payload"]["message"]:
            return


@pytest.mark.nightly
@pytest.mark.fuzz
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("hub.socket.frames")
async def test_whatever_comes_is_a_frame_or_refused_with_a_documented_code():
    decode_whatever_comes(DECODED)


@pytest.mark.nightly
@pytest.mark.fuzz
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("hub.socket.frames")
async def test_whatever_a_socket_sends_harms_nobody(hub: ServedHub, person: HubPerson):
    await send_whatever_comes(hub, person, SENT)


def map_no_errors(patch: pytest.MonkeyPatch) -> None:
    """Have what cannot be decoded fail as it does, and not as a refused frame."""
    other = SimpleNamespace(json=msgspec.json, DecodeError=ZeroDivisionError)
    patch.setattr(hub_socket, "msgspec", other)


async def test_without_its_mapping_a_frame_would_fail_with_another_error(
    monkeypatch: pytest.MonkeyPatch,
):
    map_no_errors(monkeypatch)
    with pytest.raises(msgspec.DecodeError):
        decode_whatever_comes(100)


async def test_without_its_type_a_payload_would_be_taken_as_it_comes(
    monkeypatch: pytest.MonkeyPatch,
):
    def decode(text: bytes, **_: object) -> Any:
        return msgspec.json.decode(text)

    untyped = SimpleNamespace(json=SimpleNamespace(decode=decode), DecodeError=msgspec.DecodeError)
    monkeypatch.setattr(hub_socket, "msgspec", untyped)
    with pytest.raises(AssertionError):
        decode_whatever_comes(100)


async def test_without_the_mapping_a_socket_would_end_by_what_it_sends(
    hub: ServedHub, person: HubPerson, monkeypatch: pytest.MonkeyPatch
):
    map_no_errors(monkeypatch)
    with pytest.raises(ConnectionClosed, match="1011"):
        await send_whatever_comes(hub, person, 30)


@pytest.mark.requirement("hub.socket.frames")
async def test_a_server_without_our_protocol_serves_the_same_socket(
    hub: ServedHub, person: HubPerson
):
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    outgoing: asyncio.Queue[Any] = asyncio.Queue()
    scope = {
        "type": "websocket",
        "path": "/client/ws",
        "query_string": b"",
        "scheme": "ws",
        "client": ("10.9.9.9", 1),
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"authorization", f"Bearer {person.signed_in['accessToken']}".encode()),
        ],
    }
    incoming.put_nowait({"type": "websocket.connect"})
    serving = asyncio.create_task(
        cast("Any", hub.hub.application(scope, incoming.get, cast("Any", outgoing.put)))
    )

    async def next_frame(type_: str) -> dict[str, Any]:
        async with asyncio.timeout(WAIT):
            while (message := await outgoing.get())["type"] != "websocket.close":
                frame = json.loads(message.get("text", "{}"))
                if frame.get("type") == type_:
                    return frame
        raise AssertionError(message)

    assert (await next_frame("auth.ok"))["seq_id"] == 1
    await hub.tell(person, 1)
    await next_frame("notification.new")
    incoming.put_nowait({"type": "websocket.receive", "text": '{"type":"auth","payload":{}}'})
    await next_frame("auth.fail")
    incoming.put_nowait({"type": "websocket.receive", "text": "x" * 70_000})
    async with asyncio.timeout(WAIT):
        while (message := await outgoing.get())["type"] != "websocket.close":
            pass
    assert message["code"] == 1009
    incoming.put_nowait({"type": "websocket.disconnect", "code": 1009})
    await asyncio.wait_for(serving, WAIT)

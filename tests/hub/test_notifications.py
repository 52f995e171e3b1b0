"""Notifications by every channel: what the ledger says is what the other side acknowledged."""

import asyncio
import json
import re
import shutil
import smtplib
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from sqlalchemy import select

from factwire.hub.limits import (
    FALLBACK_SECONDS,
    MAIL_CODE_ATTEMPTS,
    NOTIFICATION_ATTEMPTS,
    NOTIFICATION_CLAIM_SECONDS,
)
from factwire.hub.notifications import channel_senders, notification_ledger
from factwire.hub.notifications.notification_ledger import NewNotification, notify
from factwire.hub.notifications.notification_resources import QuietHours
from factwire.hub.notifications.notification_settings import find_quiet_end
from factwire.hub.records.notification_tables import (
    notification_deliveries,
    notification_targets,
    notifications,
)
from factwire.runtime.configuration import MailSettings
from tests.hub.hubs import HubPerson, RunningHub, running_hub
from tests.hub.push_services import (
    BrowserKeys,
    MailBox,
    Receiver,
    running_mail_server,
    running_receiver,
)
from tests.hub.served_hubs import served_hub
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def mail_box() -> AsyncGenerator[MailBox]:
    async with running_mail_server() as box:
        yield box


@pytest_asyncio.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with running_receiver() as found:
        yield found


@pytest_asyncio.fixture
async def hub(tmp_path: Path, receiver: Receiver, mail_box: MailBox) -> AsyncGenerator[RunningHub]:
    async with running_hub(tmp_path, **channels(receiver, mail_box)) as found:
        yield found


def channels(receiver: Receiver, box: MailBox) -> dict[str, Any]:
    mail = MailSettings(host="127.0.0.1", port=box.port, sender="hub@hub.example", security="none")
    return {
        "push_hosts": (receiver.host,),
        "webhook_hosts": (receiver.host,),
        "mail": mail,
    }


def subscription(receiver: Receiver, browser: BrowserKeys, path: str = "/push/1") -> Any:
    keys = {"p256dh": browser.p256dh, "auth": browser.auth}
    return {"endpoint": receiver.url(path), "keys": keys}


async def ledger_of(person: HubPerson, notification_id: str) -> dict[str, Any]:
    """Channel → what the ledger says of it."""
    found = await person.get(f"/v1/notifications/{notification_id}")
    return {entry["channel"]: entry for entry in found["ledger"]}


async def states_of(person: HubPerson, notification_id: str) -> dict[str, str]:
    ledger = await ledger_of(person, notification_id)
    return {channel: entry["state"] for channel, entry in ledger.items()}


async def tell(hub: RunningHub, person: HubPerson, **values: Any) -> str:
    new = NewNotification(kind="approval", title="An agent is waiting", payload={}, **values)
    async with hub.hub.services.events.change() as change:
        return await notify(change, person.person_id, new)


async def add_mail_address(person: HubPerson, box: MailBox) -> str:
    made = await person.post("/v1/me/mail-addresses", {"address": "ada@people.example"})
    code = re.search(r"this code there: (\d{8})", box.mails[-1])
    assert code is not None
    await person.post(
        f"/v1/me/mail-addresses/{made['addressId']}/confirm", {"code": code[1]}, status=200
    )
    box.mails.clear()
    return made["addressId"]


@pytest.mark.requirement("hub.push")
@pytest.mark.requirement("hub.notifications")
async def test_a_push_carries_an_id_and_a_title_that_only_the_browser_reads(
    hub: RunningHub, receiver: Receiver
):
    ada, browser = await hub.first_admin(), BrowserKeys()
    key = await ada.get("/v1/push/key")
    made = await ada.post("/v1/push/subscriptions", subscription(receiver, browser))
    again = await ada.post("/v1/push/subscriptions", subscription(receiver, browser))
    assert again == made == {**made, "host": "127.0.0.1", "current": True}
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    request = receiver.at("/push/1")[0]
    assert json.loads(browser.decrypt(request.body)) == {
        "id": notification_id,
        "type": "approval",
        "title": "An agent is waiting",
    }
    assert b"waiting" not in request.body
    assert request.headers["authorization"].endswith(f"k={key['publicKey']}")
    assert {name: request.headers[name] for name in ("ttl", "urgency", "topic")} == {
        "ttl": str(7 * 24 * 3_600),
        "urgency": "high",
        "topic": notification_id,
    }
    assert await states_of(ada, notification_id) == {"socket": "queued", "web_push": "delivered"}
    assert (await ledger_of(ada, notification_id))["web_push"]["targetId"] == made["subscriptionId"]


@pytest.mark.requirement("hub.webhooks")
async def test_a_webhook_is_signed_with_a_secret_that_is_shown_once(
    hub: RunningHub, receiver: Receiver
):
    ada = await hub.first_admin()
    made = await ada.post("/v1/webhooks", {"url": receiver.url("/hook?token=tok-in-url")})
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    request = receiver.at("/hook")[0]
    assert request.is_signed_with(made["secret"])
    assert not request.is_signed_with("whsec_" + "A" * 44)
    assert (request.headers["webhook-id"], json.loads(request.body)["id"]) == (
        notification_id,
        notification_id,
    )
    listed = await ada.request("GET", "/v1/webhooks")
    assert "tok-in-url" not in listed.text
    assert "whsec_" not in listed.text
    async with hub.hub.services.database.read() as connection:
        rows = (await connection.execute(select(notification_targets))).all()
    assert "tok-in-url" not in repr(rows)


@pytest.mark.requirement("hub.mail")
async def test_a_mail_address_is_used_once_its_code_was_entered(hub: RunningHub, mail_box: MailBox):
    ada = await hub.first_admin()
    settings = {"channels": {"approval": {"smtp": "always"}}}
    assert (await ada.request("PUT", "/v1/me/notification-settings", settings)).status_code == 200
    made = await ada.post("/v1/me/mail-addresses", {"address": "ada@people.example"})
    assert "confirmedAt" not in made
    # Asked for again, nobody gets a second mail.
    await ada.post("/v1/me/mail-addresses", {"address": "ADA@people.example"})
    assert len(mail_box.mails) == 1
    unused = await tell(hub, ada)
    await hub.hub.sender.send_due()
    assert await states_of(ada, unused) == {"socket": "queued"}
    path = f"/v1/me/mail-addresses/{made['addressId']}/confirm"
    code = re.search(r"this code there: (\d{8})", mail_box.mails[0])
    assert code is not None
    wrong = await ada.post(path, {"code": "not the code"}, status=403)
    assert wrong["code"] == "mail_code_invalid"
    confirmed = await ada.post(path, {"code": code[1]}, status=200)
    assert "confirmedAt" in confirmed
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    assert await states_of(ada, notification_id) == {"socket": "queued", "smtp": "delivered"}
    assert "Subject: An agent is waiting" in mail_box.mails[-1]
    assert f"Message-ID: <{notification_id}@hub.example>" in mail_box.mails[-1]


@pytest.mark.requirement("hub.mail")
async def test_a_code_is_guessed_a_few_times_and_no_more(hub: RunningHub, mail_box: MailBox):
    ada = await hub.first_admin()
    made = await ada.post("/v1/me/mail-addresses", {"address": "ada@people.example"})
    code = re.search(r"this code there: (\d{8})", mail_box.mails[0])
    assert code is not None
    path = f"/v1/me/mail-addresses/{made['addressId']}/confirm"
    for number in range(MAIL_CODE_ATTEMPTS):
        await ada.post(path, {"code": str(number)}, status=403)
    await ada.post(path, {"code": code[1]}, status=403)
    mail_box.answer = "554 no such user"
    failed = await ada.post("/v1/me/mail-addresses", {"address": "ada@people.example"}, status=502)
    assert failed["code"] == "mail_not_sent"
    for address in ("ada@x\r\nBcc: eve@x", "a b@x", "@x", "ada", "ada@x y", "<ada@x>", "a,b@x"):
        refused = await ada.post("/v1/me/mail-addresses", {"address": address}, status=400)
        assert refused["code"] in ("mail_address_invalid", "invalid_request"), address


@pytest.mark.requirement("hub.notifications")
async def test_nothing_claims_success_that_was_not_acknowledged(
    hub: RunningHub, receiver: Receiver
):
    """Every answer but 2xx: what may work later is tried again, up to an end; the rest is not."""
    ada, browser = await hub.first_admin(), BrowserKeys()
    await ada.post("/v1/push/subscriptions", subscription(receiver, browser))
    await ada.post("/v1/webhooks", {"url": receiver.url("/hook")})
    receiver.statuses = {"/push/1": 410, "/hook": 503}
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    ledger = await ledger_of(ada, notification_id)
    assert (ledger["web_push"]["state"], ledger["web_push"]["code"]) == ("failed", "target_gone")
    assert (ledger["webhook"]["state"], ledger["webhook"]["code"]) == ("queued", "http_503")
    # A subscription that is gone is forgotten.
    assert (await ada.get("/v1/push/subscriptions"))["items"] == []
    for attempt in range(2, NOTIFICATION_ATTEMPTS + 1):
        hub.clock.advance(4_000)
        await hub.hub.sender.send_due()
        ada = await hub.sign_in("Ada")
        assert (await ledger_of(ada, notification_id))["webhook"]["attempts"] == attempt
    hub.clock.advance(4_000)
    await hub.hub.sender.send_due()
    ada = await hub.sign_in("Ada")
    assert (await states_of(ada, notification_id))["webhook"] == "failed"
    assert len(receiver.at("/hook")) == NOTIFICATION_ATTEMPTS
    for status in (301, 400, 401, 403):
        receiver.statuses = {"/hook": status}
        other = await tell(hub, ada)
        await hub.hub.sender.send_due()
        entry = (await ledger_of(ada, other))["webhook"]
        assert (entry["state"], entry["code"]) == ("failed", f"http_{status}")
    receiver.statuses = {"/hook": 201}
    other = await tell(hub, ada)
    await hub.hub.sender.send_due()
    assert (await states_of(ada, other))["webhook"] == "delivered"


@pytest.mark.requirement("hub.notifications")
async def test_a_ledger_that_takes_sending_for_arriving_would_be_noticed(
    hub: RunningHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    def believe(_: Any) -> channel_senders.SendOutcome:
        return channel_senders.SendOutcome()

    monkeypatch.setattr(channel_senders, "judge_answer", believe)
    ada = await hub.first_admin()
    await ada.post("/v1/webhooks", {"url": receiver.url("/hook")})
    receiver.statuses = {"/hook": 503}
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    assert (await states_of(ada, notification_id))["webhook"] == "delivered"


@pytest.mark.requirement("hub.notifications.fallback")
async def test_the_next_channel_is_used_when_nobody_acknowledged(
    hub: RunningHub, receiver: Receiver, mail_box: MailBox
):
    ada, browser = await hub.first_admin(), BrowserKeys()
    await ada.post("/v1/push/subscriptions", subscription(receiver, browser))
    await add_mail_address(ada, mail_box)
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    before = {"socket": "queued", "web_push": "delivered", "smtp": "queued"}
    assert await states_of(ada, notification_id) == before
    hub.clock.advance(FALLBACK_SECONDS + 1)
    await hub.hub.sender.send_due()
    after = {"socket": "fell_back", "web_push": "delivered", "smtp": "delivered"}
    assert await states_of(ada, notification_id) == after
    assert len(mail_box.mails) == 1
    # Whoever has seen it in time gets no mail.
    seen = await tell(hub, ada)
    await hub.hub.sender.send_due()
    await ada.post(f"/v1/notifications/{seen}/seen", {}, status=200)
    hub.clock.advance(FALLBACK_SECONDS + 1)
    await hub.hub.sender.send_due()
    states = {"socket": "delivered", "web_push": "delivered", "smtp": "not_needed"}
    assert await states_of(ada, seen) == states
    # Where every channel before it has failed, it is used at once.
    receiver.statuses = {"/push/1": 404}
    failed = await tell(hub, ada)
    await hub.hub.sender.send_due()
    await hub.hub.sender.send_due()
    states = {"socket": "fell_back", "web_push": "failed", "smtp": "delivered"}
    assert await states_of(ada, failed) == states


@pytest.mark.requirement("hub.notifications.ledger")
async def test_what_an_open_screen_is_sent_counts_as_tried(tmp_path: Path):
    async with served_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")

        async def ledger_row(person: HubPerson, notification_id: str) -> tuple[str, int]:
            entry = (await ledger_of(person, notification_id))["socket"]
            assert ("triedAt" in entry) == (entry["attempts"] > 0)
            return entry["state"], entry["attempts"]

        async def send(person: HubPerson) -> str:
            new = NewNotification(kind="approval", title="waiting", payload={})
            async with hub.hub.services.events.change() as change:
                return await notify(change, person.person_id, new)

        before, other = await send(ada), await send(bo)
        await hub.hub.sender.send_due()
        assert await ledger_row(ada, before) == ("queued", 0)
        async with hub.screen(ada) as screen:
            await hub.hub.sender.send_due()
            assert await ledger_row(ada, before) == ("tried", 1)
            live, closed = await send(ada), await send(ada)
            for _ in range(2):
                await screen.next("notification.new")
            await hub.hub.sender.send_due()
            assert await ledger_row(ada, live) == ("tried", 1)
            # Opened by another channel, it needs no screen any more.
            opened = {"channel": "web_push"}
            await ada.post(f"/v1/notifications/{live}/opened", opened, status=200)
            assert await ledger_row(ada, live) == ("not_needed", 1)
            await ada.post(f"/v1/notifications/{closed}/seen", {}, status=200)
            assert await ledger_row(ada, closed) == ("delivered", 1)
        assert await ledger_row(bo, other) == ("queued", 0)
        await bo.post(f"/v1/notifications/{other}/opened", opened, status=200)
        assert await ledger_row(bo, other) == ("not_needed", 0)


@pytest.mark.requirement("hub.notifications.ledger")
async def test_a_screen_acknowledges_by_saying_what_was_seen_and_opened(
    hub: RunningHub, receiver: Receiver
):
    ada, browser = await hub.first_admin(), BrowserKeys()
    await ada.post("/v1/push/subscriptions", subscription(receiver, browser))
    phone = await hub.sign_in("Ada")
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    await phone.post(f"/v1/notifications/{notification_id}/seen", {}, status=200)
    entry = (await ledger_of(ada, notification_id))["socket"]
    assert (entry["state"], entry["targetId"]) == ("delivered", phone.session_id)
    await phone.post(f"/v1/notifications/{notification_id}/opened", {}, status=200)
    await phone.post(f"/v1/notifications/{notification_id}/opened", {}, status=200)
    assert (await ledger_of(ada, notification_id))["socket"]["state"] == "opened"
    # The phone's word is not the browser's: only the one that was pushed to can open the push.
    await phone.post(
        f"/v1/notifications/{notification_id}/opened", {"channel": "web_push"}, status=200
    )
    assert (await ledger_of(ada, notification_id))["web_push"]["state"] == "delivered"
    await ada.post(
        f"/v1/notifications/{notification_id}/opened", {"channel": "web_push"}, status=200
    )
    assert (await ledger_of(ada, notification_id))["web_push"]["state"] == "opened"
    expired = await tell(hub, ada, expires_at=int((hub.clock.now + 5) * 1_000))
    hub.clock.advance(6)
    await hub.hub.sender.send_due()
    assert await states_of(ada, expired) == {"socket": "expired", "web_push": "expired"}


@pytest.mark.requirement("hub.push")
async def test_a_browser_that_is_signed_out_gets_no_push(hub: RunningHub, receiver: Receiver):
    ada, browser = await hub.first_admin(), BrowserKeys()
    phone = await hub.sign_in("Ada")
    await phone.post("/v1/push/subscriptions", subscription(receiver, browser))
    await phone.request("POST", "/v1/auth/logout")
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    assert await states_of(ada, notification_id) == {"socket": "queued"}
    assert receiver.received == []


@pytest.mark.requirement("hub.notifications.settings")
async def test_quiet_hours_hold_pushes_and_mails_back_until_they_end(
    hub: RunningHub, receiver: Receiver
):
    ada, browser = await hub.first_admin(), BrowserKeys()
    await ada.post("/v1/push/subscriptions", subscription(receiver, browser))
    await ada.post("/v1/webhooks", {"url": receiver.url("/hook")})
    zone = ZoneInfo("Europe/Vienna")
    local = datetime.fromtimestamp(hub.clock.now, zone)
    quiet = {
        "start": f"{(local.hour - 1) % 24:02}:00",
        "end": f"{(local.hour + 1) % 24:02}:00",
        "timeZone": "Europe/Vienna",
    }
    settings = {"quietHours": quiet}
    assert (await ada.request("PUT", "/v1/me/notification-settings", settings)).status_code == 200
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    states = await states_of(ada, notification_id)
    assert states == {"socket": "queued", "web_push": "queued", "webhook": "delivered"}
    hub.clock.advance(2 * 3_600)
    await hub.hub.sender.send_due()
    ada = await hub.sign_in("Ada")
    assert (await states_of(ada, notification_id))["web_push"] == "delivered"
    for wrong in (
        {"quietHours": {**quiet, "timeZone": "Mars/Olympus"}},
        {"quietHours": {**quiet, "timeZone": "../../etc/passwd"}},
        {"quietHours": {**quiet, "start": "25:00"}},
        {"channels": {"nothing": {"smtp": "off"}}},
        {"channels": {"approval": {"socket": "off"}}},
    ):
        answer = await ada.request("PUT", "/v1/me/notification-settings", wrong)
        assert answer.status_code == 400, answer.text


@pytest.mark.requirement("hub.notifications.settings")
@pytest.mark.parametrize(
    ("start", "end", "now", "until"),
    [
        ("22:00", "07:00", "2026-03-28T23:30", "2026-03-29T07:00"),
        ("22:00", "07:00", "2026-03-29T06:59", "2026-03-29T07:00"),
        ("22:00", "07:00", "2026-10-25T01:00", "2026-10-25T07:00"),
        ("22:00", "07:00", "2026-03-29T07:00", None),
        ("12:00", "13:00", "2026-06-01T12:30", "2026-06-01T13:00"),
        ("12:00", "13:00", "2026-06-01T13:00", None),
        ("12:00", "12:00", "2026-06-01T12:00", None),
    ],
)
async def test_quiet_hours_end_by_the_clock_on_the_wall(
    start: str, end: str, now: str, until: str | None
):
    zone = ZoneInfo("Europe/Vienna")
    quiet = QuietHours(start=start, end=end, time_zone="Europe/Vienna", exceptions=("test",))
    moment = int(datetime.fromisoformat(now).replace(tzinfo=zone).timestamp() * 1_000)
    found = find_quiet_end(quiet, "approval", moment)
    wanted = until and datetime.fromisoformat(until).replace(tzinfo=zone).timestamp() * 1_000
    assert found == wanted
    assert find_quiet_end(quiet, "test", moment) is None


@pytest.mark.requirement("hub.outgoing")
async def test_targets_inside_the_network_are_refused_when_they_are_added(hub: RunningHub):
    ada, browser = await hub.first_admin(), BrowserKeys()
    keys = {"p256dh": browser.p256dh, "auth": browser.auth}
    for endpoint in ("https://evil.example/x", "http://fcm.googleapis.com/x", "https://127.0.0.1/"):
        body = {"endpoint": endpoint, "keys": keys}
        refused = await ada.post("/v1/push/subscriptions", body, status=400)
        assert refused["code"] in ("target_host", "target_scheme")
    good = {"endpoint": "https://fcm.googleapis.com/fcm/send/x", "keys": keys}
    await ada.post("/v1/push/subscriptions", good)
    weak = {**good, "keys": {**keys, "auth": "AAAA"}}
    assert (await ada.post("/v1/push/subscriptions", weak, status=400))["code"] == (
        "push_keys_invalid"
    )
    for url, code in (
        ("http://example.com/hook", "target_scheme"),
        ("https://169.254.169.254/latest", "target_address"),
        ("https://user@example.com/", "target_invalid"),
        ("https://xn--/", "target_invalid"),
        ("https://xn--zzzzzzzzz99.example/", "target_invalid"),
        ("https://example.com:22/", "target_port"),
    ):
        assert (await ada.post("/v1/webhooks", {"url": url}, status=400))["code"] == code


@pytest.mark.requirement("hub.notifications.ledger")
async def test_what_a_crash_left_in_hand_is_tried_again_and_counted(
    hub: RunningHub, receiver: Receiver
):
    ada = await hub.first_admin()
    await ada.post("/v1/webhooks", {"url": receiver.url("/hook")})
    notification_id = await tell(hub, ada)
    services = hub.hub.services
    async with services.database.write() as connection:
        # A process that claims, and dies before it settles.
        lost = await notification_ledger.claim_deliveries(connection, services.now())
    assert len(lost) == 1
    await hub.hub.sender.send_due()
    assert (await states_of(ada, notification_id))["webhook"] == "tried"
    hub.clock.advance(NOTIFICATION_CLAIM_SECONDS + 1)
    await hub.hub.sender.send_due()
    entry = (await ledger_of(ada, notification_id))["webhook"]
    assert (entry["state"], entry["attempts"]) == ("delivered", 2)
    async with services.database.write() as connection:
        late = notification_ledger.DeliveryOutcome(code="http_500", is_final=True)
        settled = await notification_ledger.settle_delivery(
            connection, lost[0], late, services.now()
        )
    assert not settled
    assert (await states_of(ada, notification_id))["webhook"] == "delivered"


@pytest.mark.requirement("hub.mail")
async def test_a_mail_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not(
    hub: RunningHub, mail_box: MailBox, monkeypatch: pytest.MonkeyPatch
):
    ada = await hub.first_admin()
    await add_mail_address(ada, mail_box)
    settings = {"channels": {"approval": {"smtp": "always"}}}
    await ada.request("PUT", "/v1/me/notification-settings", settings)
    for answer, state, code in (
        ("451 try later", "queued", "mail_failed"),
        ("554 never", "failed", "mail_refused"),
    ):
        mail_box.answer = answer
        notification_id = await tell(hub, ada)
        await hub.hub.sender.send_due()
        entry = (await ledger_of(ada, notification_id))["smtp"]
        assert (entry["state"], entry["code"]) == (state, code)

    def refuse(*_: Any, **__: Any) -> smtplib.SMTP:
        raise OSError("no route")

    monkeypatch.setattr(smtplib, "SMTP", refuse)
    notification_id = await tell(hub, ada)
    await hub.hub.sender.send_due()
    assert (await ledger_of(ada, notification_id))["smtp"]["code"] == "mail_failed"


class LedgerContract:
    """What holds on both databases: two senders share one queue, and nothing is sent twice."""

    @pytest.mark.requirement("hub.notifications.ledger")
    async def test_two_senders_at_once_send_each_delivery_once(
        self, url: str, tmp_path: Path, receiver: Receiver, mail_box: MailBox
    ):
        settings: dict[str, Any] = {**channels(receiver, mail_box), "database": url}
        async with running_hub(tmp_path, **settings) as hub:
            ada = await hub.first_admin()
            await ada.post("/v1/webhooks", {"url": receiver.url("/hook")})
            notification_id = [await tell(hub, ada) for _ in range(6)]
            # A folder is one Hub's on SQLite; with its key, the other reads the same targets.
            shutil.copytree(tmp_path / "hub", tmp_path / "other" / "hub")
            async with running_hub(tmp_path / "other", hub.clock, **settings) as other:
                async with asyncio.timeout(120):
                    await asyncio.gather(hub.hub.sender.send_due(), other.hub.sender.send_due())
            page = await ada.get("/v1/notifications?limit=4")
            rest = await ada.get(f"/v1/notifications?cursor={page['next']}")
            assert page["asOf"]
            ids = [row["notificationId"] for row in page["items"] + rest["items"]]
            assert sorted(ids) == sorted(notification_id)
            sent = [request.headers["webhook-id"] for request in receiver.at("/hook")]
            assert sorted(sent) == sorted(notification_id)
            async with hub.hub.services.database.read() as connection:
                deliveries = notification_deliveries.c
                query = select(deliveries.state).where(deliveries.channel == "webhook")
                states = (await connection.execute(query)).scalars().all()
                count = (await connection.execute(select(notifications))).all()
            assert (set(states), len(count)) == ({"delivered"}, 6)


class TestLedgerOnSqlite(LedgerContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'hub.db'}"


class TestLedgerOnPostgres(LedgerContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)

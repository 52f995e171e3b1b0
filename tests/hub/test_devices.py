"""Joining, devices and grants over REST, on both databases."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from sqlalchemy import select

from factwire.hub.frames.event_log import read_events
from factwire.hub.limits import AUTHORIZATION_SECONDS, DEVICE_SESSION_SECONDS, POLL_SECONDS
from factwire.hub.records.device_tables import edges
from factwire.hub.records.grant_records import may_access
from factwire.journal import Cursor
from tests.hub.hubs import PASSWORD, HubPerson, RunningHub, running_hub
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio


async def read_told(hub: RunningHub, person: HubPerson, as_of: str) -> list[tuple[str, Any]]:
    """What somebody was told after a cursor."""
    async with hub.hub.services.database.read() as connection:
        found = await read_events(connection, person.person_id, Cursor.parse(as_of).seq, 100)
    return [(each.type, each.audience.partition(":")[0]) for each in found]


async def list_ids(person: HubPerson) -> list[str]:
    return [row["deviceId"] for row in (await person.get("/v1/devices"))["items"]]


class DevicesContract:
    @pytest_asyncio.fixture
    async def hub(self, tmp_path: Path, database: str | None) -> AsyncGenerator[RunningHub]:
        settings: dict[str, Any] = {} if database is None else {"database": database}
        async with running_hub(tmp_path, **settings) as hub:
            yield hub

    @pytest.mark.requirement("hub.joining")
    @pytest.mark.requirement("hub.devices")
    async def test_a_device_joins_is_seen_renamed_and_revoked(self, hub: RunningHub):
        ada = await hub.first_admin()
        codes = await hub.ask_to_join(platform="Linux", version="1.2")
        assert codes["expires_in"] == AUTHORIZATION_SECONDS
        assert codes["verification_uri_complete"] == (
            f"{codes['verification_uri']}#{codes['user_code']}"
        )
        pending = await hub.collect(codes["device_code"])
        assert (pending.status_code, pending.json()["error"]) == (400, "authorization_pending")
        early = (await hub.collect(codes["device_code"])).json()
        assert (early["error"], early["interval"]) == ("slow_down", POLL_SECONDS + 5)
        path = f"/v1/device-authorizations/{codes['user_code'].replace('-', '').lower()}"
        asks = await ada.get(path)
        assert {name: asks[name] for name in ("kind", "name", "platform", "agents")} == {
            "kind": "edge",
            "name": "laptop",
            "platform": "Linux",
            "agents": ["demo"],
        }
        assert asks["address"].startswith("10.")
        await ada.post(f"{path}/decision", {"decision": "confirm"}, status=200)
        await ada.post(f"{path}/decision", {"decision": "confirm"}, status=200)
        opposite = await ada.post(f"{path}/decision", {"decision": "refuse"}, status=409)
        assert opposite["code"] == "already_decided"
        before = (await ada.get("/v1/devices"))["asOf"]
        joined = (await hub.collect(codes["device_code"])).json()
        assert joined["personName"] == "Ada"
        assert await read_told(hub, ada, before) == [
            ("device.registered", "device"),
            ("edge.registered", "device"),
        ]
        device_path = f"/v1/devices/{joined['deviceId']}"
        device = await ada.get(device_path)
        assert (device["name"], device["version"], device["online"]) == ("laptop", "1.2", False)
        renamed = await ada.request("PATCH", device_path, {"name": "desk"})
        assert renamed.json()["name"] == "desk"
        listed = await ada.get("/v1/edges")
        assert [(row["edgeId"], row["deviceName"]) for row in listed["items"]] == [
            ("edge_1", "desk")
        ]
        assert (await ada.request("DELETE", device_path)).status_code == 204
        assert await list_ids(ada) == []
        assert (await read_told(hub, ada, listed["asOf"])) == [("device.kicked", "device")]
        actions = [row["action"] for row in (await ada.get("/v1/audit"))["items"]]
        assert actions[:4] == [
            "device.revoked",
            "device.renamed",
            "device.registered",
            "authorization.confirmed",
        ]

    @pytest.mark.requirement("hub.joining")
    async def test_joining_again_replaces_the_device_and_keeps_what_is_shared(
        self, hub: RunningHub
    ):
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        first = await hub.join_device(ada)
        body = {"person": "Bo", "role": "viewer", "deviceId": first.device_id}
        await ada.post("/v1/grants", body)
        codes = await hub.ask_to_join()
        path = f"/v1/device-authorizations/{codes['user_code']}"
        assert (await ada.get(path))["replaces"] == first.device_id
        assert (await bo.get(path, status=409))["code"] == "edge_taken"
        await bo.post(f"{path}/decision", {"decision": "confirm"}, status=409)
        second = await hub.join_device(ada)
        assert (await first.exchange()).json()["code"] == "device_token_invalid"
        assert await list_ids(ada) == await list_ids(bo) == [second.device_id]
        assert (await second.begin_upload()).status_code == 200
        assert (await second.begin_upload("edge_2")).status_code == 404

    @pytest.mark.requirement("hub.joining")
    @pytest.mark.requirement("hub.devices")
    async def test_a_device_may_do_what_is_its_own_until_it_leaves(self, hub: RunningHub):
        ada = await hub.first_admin()
        device = await hub.join_device(ada)
        assert (await device.request("GET", "/v1/me")).json()["code"] == "people_only"
        assert (await ada.request("POST", "/v1/device/leave")).json()["code"] == "device_only"
        hub.clock.advance(DEVICE_SESSION_SECONDS - 1)
        access = (await device.exchange()).json()
        hub.clock.advance(DEVICE_SESSION_SECONDS - 1)
        assert (await device.exchange()).status_code == 200
        late = {"authorization": f"Bearer {access['accessToken']}"}
        assert (await hub.http.post("/v1/device/leave", headers=late)).status_code == 401
        assert (await device.request("POST", "/v1/device/leave")).status_code == 204
        assert (await device.exchange()).status_code == 401

    @pytest.mark.requirement("hub.joining")
    async def test_a_terminal_is_signed_in_once_it_is_confirmed(self, hub: RunningHub):
        ada = await hub.first_admin()
        codes = await hub.ask_to_join(None, name="terminal")
        path = f"/v1/device-authorizations/{codes['user_code']}/decision"
        await ada.post(path, {"decision": "confirm"}, status=200)
        assert (await hub.collect(codes["device_code"])).json()["error"] == "expired_token"
        person = hub.person(await hub.collect(codes["device_code"], "session"))
        sessions = (await person.get("/v1/me/sessions"))["items"]
        assert {row.get("name") for row in sessions} == {"terminal", None}
        own = f"/v1/me/sessions/{person.session_id}"
        renamed = await person.request("PATCH", own, {"name": "desk"})
        assert (renamed.json()["name"], renamed.json()["current"]) == ("desk", True)
        refused = await hub.ask_to_join(None)
        path = f"/v1/device-authorizations/{refused['user_code']}/decision"
        await ada.post(path, {"decision": "refuse"}, status=200)
        answer = await hub.collect(refused["device_code"], "session")
        assert answer.json()["error"] == "access_denied"

    @pytest.mark.requirement("hub.joining")
    async def test_a_poll_is_json_or_the_form_of_the_rfc(self, hub: RunningHub):
        ada = await hub.first_admin()
        codes = await hub.ask_to_join()
        grant = "urn:ietf:params:oauth:grant-type:device_code"
        form = {"grant_type": grant, "device_code": codes["device_code"], "client_id": "edge"}

        async def poll(content: str | bytes, **headers: str) -> tuple[int, Any, Any]:
            kind = {"content-type": "application/x-www-form-urlencoded"}
            answer = await hub.http.post(
                "/v1/auth/device-token", content=content, headers=kind | headers
            )
            return answer.status_code, answer.json().get("code"), answer.json().get("error")

        refused = (400, "invalid_request", "invalid_request")
        assert await poll("") == refused
        assert await poll(urlencode({**form, "device_code": ""})) == refused
        assert await poll(f"{urlencode(form)}&device_code=other") == refused
        assert await poll("&".join(f"a{number}=1" for number in range(99))) == refused
        assert await poll(b"device_code=%ff&grant_type=\xff") == refused
        other = "unsupported_grant_type"
        assert await poll(urlencode({**form, "grant_type": "password"})) == (400, other, other)
        waiting = "authorization_pending"
        assert await poll(urlencode(form)) == (400, waiting, waiting)
        json_poll = {"device_code": codes["device_code"]}
        answer = await hub.post("/v1/auth/device-token", json_poll)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        answer = await hub.http.post("/v1/auth/refresh", data=form)
        assert (answer.status_code, answer.json()["code"]) == (415, "json_only")
        path = f"/v1/device-authorizations/{codes['user_code']}/decision"
        await ada.post(path, {"decision": "confirm"}, status=200)
        joined = await hub.http.post("/v1/auth/device-token", data=form)
        assert (joined.status_code, joined.json()["edgeId"]) == (200, "edge_1")
        codes = await hub.ask_to_join(None)
        path = f"/v1/device-authorizations/{codes['user_code']}/decision"
        await ada.post(path, {"decision": "confirm"}, status=200)
        form["device_code"] = codes["device_code"]
        person = hub.person(await hub.http.post("/v1/auth/session-token", data=form))
        assert (await person.get("/v1/me"))["name"] == "Ada"

    @pytest.mark.requirement("hub.pairing")
    async def test_a_phone_is_signed_in_by_a_code_that_is_confirmed_on_the_screen(
        self, hub: RunningHub
    ):
        ada = await hub.first_admin()
        made = await ada.post("/v1/me/pairings")
        assert made["link"].endswith(f"/pair#{made['code']}")
        assert made["qr"].startswith("<svg")
        path = f"/v1/me/pairings/{made['pairingId']}"
        await ada.post(f"{path}/decision", {"decision": "confirm"}, status=409)
        claimed = await hub.post("/v1/auth/pairing", {"code": made["code"]}, user_agent="phone")
        code = claimed.json()["deviceCode"]
        assert (await hub.collect(code, "session")).json()["error"] == "authorization_pending"
        shown = await ada.get(path)
        assert (shown["state"], shown["claim"]["userAgent"]) == ("claimed", "phone")
        await ada.post(f"{path}/decision", {"decision": "confirm"}, status=200)
        phone = hub.person(await hub.collect(code, "session"))
        assert (await phone.get("/v1/me"))["name"] == "Ada"
        assert (await ada.get(path))["state"] == "collected"

    @pytest.mark.requirement("hub.grants")
    async def test_what_is_shared_is_seen_until_the_grant_ends(self, hub: RunningHub):
        ada = await hub.first_admin()
        bo, eve = await hub.join(ada, "Bo"), await hub.join(ada, "Eve")
        device = await hub.join_device(ada)
        assert (await device.begin_upload()).status_code == 200
        since = (await bo.get("/v1/devices"))["asOf"]
        body = {"person": bo.person_id, "role": "viewer", "deviceId": device.device_id}
        grant = await ada.post("/v1/grants", body)
        assert await ada.post("/v1/grants", body) == grant
        raised = await ada.post("/v1/grants", {**body, "role": "operator"})
        assert (raised["grantId"], raised["role"]) == (grant["grantId"], "operator")
        assert [kind for kind, _ in await read_told(hub, bo, since)] == [
            "device.registered",
            "edge.registered",
            "grant.created",
            "grant.created",
        ]
        seen = await bo.get(f"/v1/devices/{device.device_id}")
        assert (seen["ownerId"], seen["role"]) == (ada.person_id, "operator")
        assert (await bo.get("/v1/edges/edge_1/threads"))["items"] == []
        assert (await bo.get("/v1/grants?received=true"))["items"] == [raised]
        assert (await ada.get("/v1/grants?received=false"))["items"] == [raised]
        assert (await eve.get("/v1/grants"))["items"] == []
        # What is shared cannot be passed on, renamed or revoked by who has it.
        share = {"person": "Eve", "role": "viewer", "deviceId": device.device_id}
        assert (await bo.post("/v1/grants", share, status=404))["code"] == "unknown_device"
        for method, change in (("PATCH", {"name": "mine"}), ("DELETE", None)):
            answer = await bo.request(method, f"/v1/devices/{device.device_id}", change)
            assert answer.status_code == 404
        thread = {**share, "threadId": "thr_none"}
        assert (await ada.post("/v1/grants", thread, status=404))["code"] == "unknown_thread"
        own = {**share, "person": "Ada"}
        assert (await ada.post("/v1/grants", own, status=409))["code"] == "grant_to_self"
        before = (await bo.get("/v1/devices"))["asOf"]
        path = f"/v1/grants/{grant['grantId']}"
        assert (await eve.request("DELETE", path)).status_code == 404
        assert (await ada.request("DELETE", path)).status_code == 204
        assert await list_ids(bo) == []
        assert await read_told(hub, bo, before) == [
            ("device.kicked", "person"),
            ("grant.revoked", "person"),
        ]
        for path in ("/v1/edges/edge_1/threads", f"/v1/devices/{device.device_id}"):
            assert (await bo.request("GET", path)).status_code == 404

    @pytest.mark.requirement("hub.grants")
    async def test_one_condition_says_who_may_do_what(self, hub: RunningHub):
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        device = await hub.join_device(ada)
        body = {"person": "Bo", "role": "approver", "deviceId": device.device_id}
        await ada.post("/v1/grants", body)

        async def may(person: HubPerson, needed: Any) -> bool:
            query = select(edges).where(may_access(person.person_id, needed, edges.c.edge_id))
            async with hub.hub.services.database.read() as connection:
                return (await connection.execute(query)).first() is not None

        roles = ("viewer", "commenter", "approver", "operator")
        assert [await may(bo, role) for role in roles] == [True, True, True, False]
        assert [await may(ada, role) for role in roles] == [True] * 4

    @pytest.mark.requirement("hub.devices")
    async def test_who_is_disabled_has_no_devices_left(self, hub: RunningHub):
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        device = await hub.join_device(bo)
        password = {"currentPassword": PASSWORD, "newPassword": "another horse entirely"}
        await bo.post("/v1/me/password", password, status=204)
        assert (await device.exchange()).status_code == 200
        await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"disabled": True})
        assert (await device.exchange()).status_code == 401
        await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"disabled": False})
        again = hub.person(await hub.login("Bo", "another horse entirely"))
        assert await list_ids(again) == []

    async def test_a_viewer_of_the_hub_joins_no_machine(self, hub: RunningHub):
        ada = await hub.first_admin()
        eve = await hub.join(ada, "Eve", "viewer")
        codes = await hub.ask_to_join()
        path = f"/v1/device-authorizations/{codes['user_code']}/decision"
        answer = await eve.post(path, {"decision": "confirm"}, status=403)
        assert answer["code"] == "insufficient_role"


class TestDevicesOnSqlite(DevicesContract):
    @pytest.fixture
    def database(self) -> str | None:
        return None


class TestDevicesOnPostgres(DevicesContract):
    @pytest_asyncio.fixture
    async def database(self, postgres: PostgresServer) -> str | None:
        return await create_postgres_database(postgres)

"""S16 and S20: codes that are guessed, replayed, stolen or old, a QR code taken for a key, and what
is left of a grant or a device that was revoked. Each is refused, and succeeds once its protection
is switched off.
"""

from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from factwire.hub.mirror.hub_mirrors import HubMirrors
from factwire.hub.people import devices, joining
from factwire.hub.people.hub_tokens import device_in
from factwire.hub.records import device_records, grant_records, people_records
from factwire.hub.records.device_tables import edges, grants, pairings
from factwire.hub.request_rates import RequestRates
from tests.hub.hubs import RunningHub, running_hub
from tests.hub.test_hub_attacks import Attack, Patch
from tests.trials import count_trials

pytestmark = pytest.mark.asyncio

GUESSES = count_trials(full=10_000, share=100)


async def confirm(hub: RunningHub) -> dict[str, Any]:
    """The codes of a machine that the first admin has confirmed."""
    ada, codes = await hub.first_admin(), await hub.ask_to_join()
    path = f"/v1/device-authorizations/{codes['user_code']}/decision"
    await ada.post(path, {"decision": "confirm"}, status=200)
    return codes


async def replay_a_collected_code(hub: RunningHub) -> None:
    codes = await confirm(hub)
    assert (await hub.collect(codes["device_code"])).status_code == 200
    again = await hub.collect(codes["device_code"])
    assert (again.status_code, again.json().get("error")) == (400, "expired_token")


async def collect_late(hub: RunningHub) -> None:
    codes = await confirm(hub)
    hub.clock.advance(300)
    assert (await hub.collect(codes["device_code"])).json().get("error") == "expired_token"


async def collect_without_confirmation(hub: RunningHub) -> None:
    await hub.first_admin()
    codes = await hub.ask_to_join()
    answer = await hub.collect(codes["device_code"])
    assert answer.json().get("error") == "authorization_pending"


async def guess_codes(hub: RunningHub) -> None:
    """Somebody who is signed in tries codes, each from another address."""
    ada = await hub.first_admin()
    eve = await hub.join(ada, "Eve")
    for _ in range(8):
        await hub.ask_to_join(None)
    codes = product(joining.USER_CODE_LETTERS, repeat=joining.USER_CODE_CHARACTERS)
    hits = 0
    for code in islice(codes, GUESSES):
        answer = await eve.request("GET", f"/v1/device-authorizations/{''.join(code)}")
        hits += answer.status_code == 200
    assert hits == 0


async def decide_what_somebody_else_decided(hub: RunningHub) -> None:
    codes = await confirm(hub)
    eve = await hub.join(await hub.sign_in("Ada"), "Eve")
    path = f"/v1/device-authorizations/{codes['user_code']}"
    assert (await eve.request("GET", path)).status_code == 404
    answer = await eve.request("POST", f"{path}/decision", {"decision": "refuse"})
    assert answer.status_code == 404


async def use_a_qr_code_as_a_key(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made = await ada.post("/v1/me/pairings")
    bearer = {"authorization": f"Bearer {made['code']}"}
    assert (await hub.http.get("/v1/me", headers=bearer)).status_code == 401
    assert (await hub.refresh(made["code"])).status_code == 401
    assert (await hub.collect(made["code"], "session")).status_code == 400
    claimed = (await hub.post("/v1/auth/pairing", {"code": made["code"]})).json()
    answer = await hub.collect(claimed["deviceCode"], "session")
    assert answer.json().get("error") == "authorization_pending"


async def scan_a_code_twice(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made = await ada.post("/v1/me/pairings")
    body = {"code": made["code"]}
    assert (await hub.post("/v1/auth/pairing", body)).status_code == 200
    assert (await hub.post("/v1/auth/pairing", body)).status_code == 404


async def scan_a_code_of_a_screen_that_signed_out(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made = await ada.post("/v1/me/pairings")
    await ada.request("POST", "/v1/auth/logout")
    answer = await hub.post("/v1/auth/pairing", {"code": made["code"]})
    assert answer.status_code == 404


async def join_as_somebody_elses_edge(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    await hub.join_device(ada)
    eve = await hub.join(ada, "Eve")
    codes = await hub.ask_to_join()
    path = f"/v1/device-authorizations/{codes['user_code']}/decision"
    answer = await eve.request("POST", path, {"decision": "confirm"})
    assert answer.json().get("code") == "edge_taken"
    assert (await hub.collect(codes["device_code"])).status_code == 400


async def upload_for_another_edge(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    eve = await hub.join(ada, "Eve")
    await hub.join_device(ada, "edge_1")
    stranger = await hub.join_device(eve, "edge_2")
    assert (await stranger.begin_upload("edge_1")).status_code == 404


async def use_the_token_of_a_revoked_device(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    device = await hub.join_device(ada)
    access = (await device.exchange()).json()["accessToken"]
    await ada.request("DELETE", f"/v1/devices/{device.device_id}")
    assert (await device.exchange()).status_code == 401
    bearer = {"authorization": f"Bearer {access}"}
    answer = await hub.http.post("/v1/device/leave", headers=bearer)
    assert answer.status_code == 401


async def forge_the_token_of_a_device(hub: RunningHub) -> None:
    device = await hub.join_device(await hub.first_admin())
    token = device.joined["deviceToken"]
    assert device_in(token) == device.device_id
    forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    answer = await hub.post("/v1/auth/device", {"deviceToken": forged})
    assert answer.json().get("code") == "device_token_invalid"


async def read_after_the_grant_was_revoked(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo, device = await hub.join(ada, "Bo"), await hub.join_device(ada)
    await device.begin_upload()
    body = {"person": "Bo", "role": "operator", "deviceId": device.device_id}
    grant = await ada.post("/v1/grants", body)
    await bo.get("/v1/edges/edge_1/threads")
    await ada.request("DELETE", f"/v1/grants/{grant['grantId']}")
    for path in ("/v1/edges/edge_1/threads", f"/v1/devices/{device.device_id}"):
        assert (await bo.request("GET", path)).status_code == 404
    assert (await bo.get("/v1/devices"))["items"] == []


def _keep_uncollected(patch: Patch) -> None:
    change = device_records.change_authorization

    async def leave_uncollected(connection: Any, digest: str, **values: Any) -> None:
        if "collected_at" not in values:
            await change(connection, digest, **values)

    patch.setattr(device_records, "change_authorization", leave_uncollected)


def _never_expire(patch: Patch) -> None:
    patch.setattr(joining, "AUTHORIZATION_SECONDS", 10**6)


def _confirm_at_once(patch: Patch) -> None:
    add = device_records.add_authorization

    async def add_confirmed(connection: Any, *rest: Any, **values: Any) -> bool:
        person = values.get("person_id")
        if person is None:
            found = await connection.execute(select(people_records.people.c.person_id))
            person = found.scalars().first()
        return await add(
            connection, *rest, **{**values, "decision": "confirm", "person_id": person}
        )

    patch.setattr(device_records, "add_authorization", add_confirmed)


def _count_nothing(*_: object) -> None:
    """In the place of a limit."""


def _allow_short_codes(patch: Patch) -> None:
    patch.setattr(joining, "USER_CODE_LETTERS", "BCDF")
    patch.setattr(joining, "USER_CODE_CHARACTERS", 3)
    patch.setattr(joining, "_HALF", 1)
    patch.setattr(RequestRates, "spend", _count_nothing)


def _find_any_asking(patch: Patch) -> None:
    async def find(connection: Any, digest: str, *_: Any, **__: Any) -> Any:
        table = device_records.device_authorizations
        query = select(table).where(table.c.user_code_digest == digest)
        return (await connection.execute(query)).mappings().one_or_none()

    patch.setattr(device_records, "find_asking", find)


def _forget_claims(patch: Patch) -> None:
    add = joining._add_asking

    async def add_and_forget(hub: Any, connection: Any, *rest: Any, **values: Any) -> None:
        await add(hub, connection, *rest, **values)
        await connection.execute(update(pairings).values(device_code_digest=None))

    patch.setattr(joining, "_add_asking", add_and_forget)


def _find_any_session(patch: Patch) -> None:
    async def find(connection: Any, person_id: str, *_: Any) -> Any:
        return await people_records.find_person(connection, person_id)

    patch.setattr(people_records, "find_session_person", find)


def _let_edges_be_taken(patch: Patch) -> None:
    async def free(*_: Any) -> None:
        return None

    async def take(connection: Any, edge_id: str, owner: str, device_id: str, _: int) -> None:
        change = update(edges).where(edges.c.edge_id == edge_id)
        await connection.execute(change.values(person_id=owner, device_id=device_id))

    patch.setattr(devices, "ensure_edge_free", free)
    patch.setattr(device_records, "bind_edge", take)


def _let_anybody_upload(patch: Patch) -> None:
    async def ensure(*_: Any) -> None:
        return None

    patch.setattr(HubMirrors, "_ensure_uploader", ensure)


def _end_no_device(patch: Patch) -> None:
    async def end(*_: Any) -> None:
        return None

    patch.setattr(device_records, "end_device", end)


def _trust_device_ids(patch: Patch) -> None:
    async def find(connection: Any, device_id: str, *_: Any) -> Any:
        table = device_records.devices
        query = select(table).where(table.c.device_id == device_id)
        return (await connection.execute(query)).mappings().one_or_none()

    patch.setattr(device_records, "find_device_session", find)


def _revoke_nothing(patch: Patch) -> None:
    async def find(connection: Any, _: int, *conditions: Any) -> Any:
        return list((await connection.execute(select(grants).where(*conditions))).mappings())

    patch.setattr(grant_records, "revoke_grants", find)


ATTACKS = {
    "code collected twice": Attack(replay_a_collected_code, _keep_uncollected),
    "code collected late": Attack(collect_late, _never_expire),
    "code nobody confirmed": Attack(collect_without_confirmation, _confirm_at_once),
    "guessed codes": Attack(guess_codes, _allow_short_codes),
    "decision of somebody else": Attack(decide_what_somebody_else_decided, _find_any_asking),
    "QR code as a key": Attack(use_a_qr_code_as_a_key, _confirm_at_once),
    "QR code scanned twice": Attack(scan_a_code_twice, _forget_claims),
    "QR code after signing out": Attack(scan_a_code_of_a_screen_that_signed_out, _find_any_session),
    "Edge of somebody else": Attack(join_as_somebody_elses_edge, _let_edges_be_taken),
    "upload for another Edge": Attack(upload_for_another_edge, _let_anybody_upload),
    "revoked device": Attack(use_the_token_of_a_revoked_device, _end_no_device),
    "forged device token": Attack(forge_the_token_of_a_device, _trust_device_ids),
    "revoked grant": Attack(read_after_the_grant_was_revoked, _revoke_nothing),
}

REFUSED = [
    pytest.mark.requirement("hub.joining"),
    pytest.mark.requirement("hub.pairing"),
    pytest.mark.requirement("hub.grants"),
    pytest.mark.requirement("hub.devices"),
]


@pytest.mark.nightly
@pytest.mark.parametrize("name", [pytest.param(name, marks=REFUSED) for name in ATTACKS])
async def test_an_attack_on_joining_is_refused(tmp_path: Path, name: str):
    async with running_hub(tmp_path) as hub:
        await ATTACKS[name].run(hub)


@pytest.mark.parametrize("name", ATTACKS)
async def test_it_succeeds_without_its_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    ATTACKS[name].switch_off(monkeypatch)
    async with running_hub(tmp_path) as hub:
        with pytest.raises(AssertionError):
            await ATTACKS[name].run(hub)

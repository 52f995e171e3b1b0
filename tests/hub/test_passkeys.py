"""Passkeys over HTTP, with real keys: adding, using, removing, and attacks on each."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from factwire.hub.people import accounts, passkeys, sign_in_methods
from factwire.hub.records import sign_in_records
from factwire.hub.records.hub_tables import people
from factwire.hub.records.sign_in_tables import finished_ceremonies
from tests.hub.authenticators import ORIGIN, PRESENT, SoftwarePasskey, encode
from tests.hub.hubs import PASSWORD, HubPerson, RunningHub, running_hub

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.passkeys")]

Patch = pytest.MonkeyPatch


@asynccontextmanager
async def named_hub(folder: Path, **settings: Any) -> AsyncGenerator[RunningHub]:
    async with running_hub(folder, url=ORIGIN, **settings) as hub:
        yield hub


async def add_passkey(
    person: HubPerson, passkey: SoftwarePasskey | None = None, status: int = 201
) -> tuple[SoftwarePasskey, Any]:
    chosen = passkey or SoftwarePasskey()
    begun = await person.post("/v1/me/passkeys/start", status=200)
    body = {"ceremony": begun["ceremony"], "credential": chosen.create(begun["publicKey"])}
    return chosen, await person.post("/v1/me/passkeys", {**body, "passkeyName": "Key"}, status)


async def begin(hub: RunningHub, name: str | None = None) -> Any:
    answer = await hub.post("/v1/auth/passkeys/login/start", {"name": name} if name else {})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def use(hub: RunningHub, passkey: SoftwarePasskey, begun: Any = None) -> httpx.Response:
    started = begun or await begin(hub)
    body = {"ceremony": started["ceremony"], "credential": passkey.get(started["publicKey"])}
    return await hub.post("/v1/auth/passkeys/login", body)


async def register(hub: RunningHub, token: str, name: str, passkey: SoftwarePasskey) -> HubPerson:
    begun = await hub.post("/v1/auth/passkeys/register/start", {"token": token, "name": name})
    assert begun.status_code == 200, begun.text
    fields = begun.json()
    body = {"ceremony": fields["ceremony"], "credential": passkey.create(fields["publicKey"])}
    return hub.person(await hub.post("/v1/auth/passkeys/register", body))


async def test_a_passkey_is_added_named_used_and_removed(tmp_path: Path):
    async with named_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        passkey, row = await add_passkey(ada)
        assert row == {
            "passkeyId": row["passkeyId"],
            "name": "Key",
            "synced": False,
            "createdAt": "2026-09-21T14:13:20.000Z",
        }
        renamed = await ada.request(
            "PATCH", f"/v1/me/passkeys/{row['passkeyId']}", {"name": "\u202eBlue\n key"}
        )
        assert renamed.json()["name"] == "Blue key"
        by_key = hub.person(await use(hub, passkey))
        assert by_key.person_id == ada.person_id
        named = hub.person(await use(hub, passkey, await begin(hub, "ADA")))
        sessions = (await named.get("/v1/me/sessions"))["items"]
        assert [each["method"] for each in sessions].count("passkey") == 2
        methods = await ada.get("/v1/me/methods")
        assert methods["password"] is True
        assert methods["passkeys"][0]["lastUsedAt"] == "2026-09-21T14:13:20.000Z"
        removed = await ada.request("DELETE", f"/v1/me/methods/{row['passkeyId']}")
        assert removed.status_code == 204
        # What was opened with it is over, and it opens nothing more.
        assert (await by_key.request("GET", "/v1/me")).status_code == 401
        assert (await ada.request("GET", "/v1/me")).status_code == 200
        assert (await use(hub, passkey)).json()["code"] == "sign_in_failed"
        actions = [row["action"] for row in (await ada.get("/v1/audit"))["items"]]
        assert actions == [
            "session.refused",
            "method.removed",
            "session.opened",
            "session.opened",
            "method.renamed",
            "method.added",
            "person.registered",
            "invitation.created",
        ]


@pytest.mark.requirement("hub.methods")
async def test_an_account_without_a_password_keeps_its_last_passkey(tmp_path: Path):
    async with named_hub(tmp_path) as hub:
        passkey = SoftwarePasskey()
        ada = await register(hub, hub.first_token, "Ada", passkey)
        assert ada.signed_in["person"]["role"] == "admin"
        [row] = (await ada.get("/v1/me/methods"))["passkeys"]
        path = f"/v1/me/methods/{row['passkeyId']}"
        assert (await ada.request("DELETE", path)).json()["code"] == "last_method"
        assert len((await ada.get("/v1/me/methods"))["passkeys"]) == 1
        # No password is one that nobody has.
        for guess in ("-", " ", "None", PASSWORD):
            assert (await hub.login("Ada", guess)).json()["code"] == "sign_in_failed"
        change = {"newPassword": PASSWORD}
        assert (await ada.request("POST", "/v1/me/password", change)).status_code == 204
        assert (await hub.login("Ada")).status_code == 200
        wrong = await ada.request("POST", "/v1/me/password", change)
        assert wrong.json()["code"] == "password_wrong"
        assert (await ada.request("DELETE", path)).status_code == 204
        used = await hub.post("/v1/auth/passkeys/register/start", {"token": "x", "name": "Eve"})
        assert used.json()["code"] == "invitation_invalid"


@pytest.mark.requirement("hub.methods")
async def test_an_old_session_changes_no_way_to_sign_in(tmp_path: Path):
    async with named_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        _, row = await add_passkey(ada)
        begun = await ada.post("/v1/me/passkeys/start", status=200)
        hub.clock.advance(299)
        body: Any = {"ceremony": begun["ceremony"], "credential": {}}
        assert (await ada.request("POST", "/v1/me/passkeys", body)).json()["code"] == (
            "passkey_refused"
        )
        hub.clock.advance(302)
        ada = hub.person(await hub.refresh(ada.signed_in["refreshToken"]))
        answers = [
            await ada.request("POST", "/v1/me/passkeys/start"),
            await ada.request("DELETE", f"/v1/me/methods/{row['passkeyId']}"),
        ]
        assert [each.json()["code"] for each in answers] == ["sign_in_again"] * 2


async def test_the_number_of_an_address_has_no_passkeys(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        offered = (await hub.http.get("/v1/auth/methods")).json()
        assert offered == {"passkeys": False, "providers": []}
        answer = await ada.request("POST", "/v1/me/passkeys/start")
        assert (answer.status_code, answer.json()["code"]) == (409, "passkeys_unavailable")


@pytest.mark.requirement("hub.secrets")
async def test_challenges_are_in_no_row_and_ceremonies_are_forgotten_in_time(tmp_path: Path):
    async with named_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        passkey, _ = await add_passkey(ada)
        for _ in range(3):
            hub.person(await use(hub, passkey))
        hub.clock.advance(301)
        hub.person(await use(hub, passkey))
        async with hub.hub.services.database.read() as connection:
            rows = (await connection.execute(select(finished_ceremonies))).all()
            hashes = (await connection.execute(select(people.c.password_hash))).scalars().all()
        assert len(rows) == 1
        assert all(hashes)


class Attacked:
    """A Hub with Ada, who has a passkey, and Bo."""

    def __init__(
        self, hub: RunningHub, ada: HubPerson, bo: HubPerson, passkey: SoftwarePasskey
    ) -> None:
        self.hub = hub
        self.ada = ada
        self.bo = bo
        self.passkey = passkey

    async def use(self, change: Callable[[Any], None] | None = None, begun: Any = None) -> str:
        started = begun or await begin(self.hub)
        credential = self.passkey.get(started["publicKey"], change)
        body = {"ceremony": started["ceremony"], "credential": credential}
        return (await self.hub.post("/v1/auth/passkeys/login", body)).json().get("code", "in")

    async def add(self, passkey: SoftwarePasskey) -> str:
        begun = await self.ada.post("/v1/me/passkeys/start", status=200)
        body = {"ceremony": begun["ceremony"], "credential": passkey.create(begun["publicKey"])}
        answer = await self.ada.request("POST", "/v1/me/passkeys", body)
        return answer.json().get("code", "in")


async def repeat_an_answer(at: Attacked) -> str:
    begun = await begin(at.hub)
    assert await at.use(begun=begun) == "in"
    return await at.use(begun=begun)


async def repeat_after_a_failure(at: Attacked) -> str:
    begun = await begin(at.hub)
    assert await at.use(lambda response: response.pop("signature"), begun) == "sign_in_failed"
    return await at.use(begun=begun)


async def answer_late(at: Attacked) -> str:
    begun = await begin(at.hub)
    at.hub.clock.advance(301)
    return await at.use(begun=begun)


async def use_another_challenge(at: Attacked) -> str:
    one, two = await begin(at.hub), await begin(at.hub)
    return await at.use(begun={**two, "publicKey": one["publicKey"]})


async def use_ceremony_of_another_kind(at: Attacked) -> str:
    begun = await at.ada.post("/v1/me/passkeys/start", status=200)
    return await at.use(begun=begun)


async def finish_in_another_session(at: Attacked) -> str:
    begun = await at.ada.post("/v1/me/passkeys/start", status=200)
    credential = SoftwarePasskey().create(begun["publicKey"])
    body = {"ceremony": begun["ceremony"], "credential": credential}
    return (await at.bo.request("POST", "/v1/me/passkeys", body)).json().get("code", "in")


async def change_the_ceremony(at: Attacked) -> str:
    begun = await begin(at.hub)
    sealed = begun["ceremony"]
    return await at.use(begun={**begun, "ceremony": sealed[:20] + "A" + sealed[21:]})


async def use_another_origin(at: Attacked) -> str:
    at.passkey.origin = "http://localhost.evil.example:8788"
    return await at.use()


async def use_another_host(at: Attacked) -> str:
    at.passkey.host = "evil.example"
    return await at.use()


async def use_without_verification(at: Attacked) -> str:
    at.passkey.flags = PRESENT
    return await at.use()


async def use_another_key(at: Attacked) -> str:
    other = SoftwarePasskey()
    other.credential_id, other.user_handle = at.passkey.credential_id, at.passkey.user_handle
    at.passkey = other
    return await at.use()


async def use_a_copy(at: Attacked) -> str:
    at.passkey.count = 5
    assert await at.use() == "in"
    at.passkey.count = 4
    return await at.use()


async def use_for_another_name(at: Attacked) -> str:
    return await at.use(begun=await begin(at.hub, "Bo"))


async def name_another_user(at: Attacked) -> str:
    at.passkey.user_handle = at.bo.person_id.encode()
    return await at.use()


async def use_as_somebody_disabled(at: Attacked) -> str:
    at.passkey, _ = await add_passkey(at.bo)
    await at.ada.request("PATCH", f"/v1/people/{at.bo.person_id}", {"disabled": True})
    return await at.use()


async def send_garbage(at: Attacked) -> str:
    codes: set[str] = set()
    named = encode(at.passkey.credential_id)
    garbage: list[Any] = [
        {},
        {"id": "é"},
        {"id": named, "response": []},
        {"id": named, "rawId": 1, "type": 1, "response": {}},
    ]
    for credential in garbage:
        body = {"ceremony": (await begin(at.hub))["ceremony"], "credential": credential}
        codes.add((await at.hub.post("/v1/auth/passkeys/login", body)).json()["code"])
    [code] = codes
    return code


async def add_for_another_origin(at: Attacked) -> str:
    return await at.add(SoftwarePasskey(origin="http://evil.example"))


async def add_without_verification(at: Attacked) -> str:
    passkey = SoftwarePasskey()
    passkey.flags = PRESENT
    return await at.add(passkey)


async def add_passkey_of_somebody_else(at: Attacked) -> str:
    passkey = SoftwarePasskey()
    passkey.credential_id = at.passkey.credential_id
    return await at.add(passkey)


async def remove_method_of_somebody_else(at: Attacked) -> str:
    [row] = (await at.ada.get("/v1/me/methods"))["passkeys"]
    answer = await at.bo.request("DELETE", f"/v1/me/methods/{row['passkeyId']}")
    return answer.json()["code"] if answer.content else "in"


async def flood_with_passkeys(at: Attacked) -> str:
    for _ in range(19):
        assert await at.add(SoftwarePasskey()) == "in"
    return (await at.ada.request("POST", "/v1/me/passkeys/start")).json().get("code", "in")


async def _anyone(_: Any, person_id: str, method_id: str) -> bool:
    del person_id, method_id
    return True


async def _nothing(*_: Any, **__: Any) -> None:
    return None


async def _count_anything(*_: Any) -> bool:
    return True


def _without(name: str, value: Any) -> Callable[[Patch], None]:
    """The library's checks with one argument changed."""

    def switch_off(patch: Patch) -> None:
        for function in ("verify_authentication_response", "verify_registration_response"):
            real = getattr(passkeys, function)

            def changed(real: Any = real, **fields: Any) -> Any:
                return real(**{**fields, name: value})

            patch.setattr(passkeys, function, changed)

    return switch_off


def _set(place: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(place, name, value)


def _same_challenge(*_: Any) -> bytes:
    return b"x" * 32


def _always_named(*_: Any) -> bool:
    return True


ATTACKS: dict[Callable[[Attacked], Any], tuple[str, Callable[[Patch], None] | None]] = {
    repeat_an_answer: (
        "ceremony_invalid",
        _set(sign_in_records, "add_finished_ceremony", _nothing),
    ),
    repeat_after_a_failure: (
        "ceremony_invalid",
        _set(sign_in_records, "add_finished_ceremony", _nothing),
    ),
    answer_late: ("ceremony_invalid", _set(sign_in_methods, "CEREMONY_SECONDS", 3_600)),
    use_another_challenge: ("sign_in_failed", _set(passkeys, "_challenge", _same_challenge)),
    use_ceremony_of_another_kind: ("ceremony_invalid", None),
    finish_in_another_session: ("ceremony_invalid", None),
    change_the_ceremony: ("ceremony_invalid", None),
    use_another_origin: (
        "sign_in_failed",
        _without("expected_origin", "http://localhost.evil.example:8788"),
    ),
    use_another_host: ("sign_in_failed", _without("expected_rp_id", "evil.example")),
    use_without_verification: ("sign_in_failed", _without("require_user_verification", False)),
    use_another_key: ("sign_in_failed", None),
    use_a_copy: ("passkey_cloned", _set(sign_in_records, "count_passkey_use", _count_anything)),
    use_for_another_name: ("sign_in_failed", _set(passkeys, "_is_named", _always_named)),
    name_another_user: ("sign_in_failed", None),
    use_as_somebody_disabled: ("sign_in_failed", None),
    send_garbage: ("sign_in_failed", None),
    add_for_another_origin: (
        "passkey_refused",
        _without("expected_origin", "http://evil.example"),
    ),
    add_without_verification: ("passkey_refused", _without("require_user_verification", False)),
    add_passkey_of_somebody_else: ("passkey_taken", None),
    remove_method_of_somebody_else: (
        "unknown_method",
        _set(sign_in_records, "remove_method", _anyone),
    ),
    flood_with_passkeys: ("too_many_methods", _set(sign_in_methods, "METHODS_PER_PERSON", 50)),
}


@asynccontextmanager
async def attacked_hub(folder: Path) -> AsyncGenerator[RunningHub]:
    async with named_hub(folder) as hub:
        await hub.join(await hub.first_admin(), "Bo")
        yield hub


async def attack(
    hub: RunningHub,
    run: Callable[[Attacked], Any],
    switch_off: Callable[[Patch], None] | None = None,
) -> str:
    ada, bo = await hub.sign_in("Ada"), await hub.sign_in("Bo")
    for row in (await ada.get("/v1/me/methods"))["passkeys"]:
        await ada.request("DELETE", f"/v1/me/methods/{row['passkeyId']}")
    passkey, _ = await add_passkey(ada)
    with pytest.MonkeyPatch.context() as patch:
        if switch_off is not None:
            switch_off(patch)
        code = await run(Attacked(hub, ada, bo, passkey))
    ada = await hub.sign_in("Ada")
    await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"disabled": False})
    return code


@pytest.mark.requirement("hub.methods")
async def test_attacks_on_passkeys_are_refused(tmp_path: Path, subtests: pytest.Subtests):
    async with attacked_hub(tmp_path) as hub:
        for run, (code, _) in ATTACKS.items():
            with subtests.test(run.__name__):
                assert await attack(hub, run) == code


async def test_attacks_on_passkeys_succeed_without_their_protection(
    tmp_path: Path, subtests: pytest.Subtests
):
    async with attacked_hub(tmp_path) as hub:
        for run, (code, switch_off) in ATTACKS.items():
            if switch_off is None:
                continue
            with subtests.test(run.__name__):
                assert await attack(hub, run, switch_off) != code


async def test_an_open_screen_gives_nobody_a_way_back_without_its_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(accounts, "RECENT_SIGN_IN_SECONDS", 10**9)
    async with named_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        hub.clock.advance(601)
        assert (await ada.request("POST", "/v1/me/passkeys/start")).status_code == 200

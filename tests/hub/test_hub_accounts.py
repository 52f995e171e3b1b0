"""People and their accounts over HTTP: what each request answers, whole."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.hub.hub_app import ROUTE_ACCESS
from factwire.hub.limits import SESSION_USE_SECONDS
from factwire.hub.people.passwords import check_password, name_key
from factwire.serving.asgi import Problem
from tests.hub.hubs import PASSWORD, HubPerson, SteppedClock, running_hub

pytestmark = pytest.mark.asyncio

NOW = "2026-09-21T14:13:20.000Z"


@pytest.mark.requirement("hub.first-admin")
async def test_the_first_link_makes_an_admin_who_is_signed_in(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        first = hub.hub.first_admin
        assert first is not None
        assert first.link == f"http://127.0.0.1:8788/join#{first.token}"
        answer = await hub.register(first.token, "Ada Lovelace")
        signed_in = answer.json()
        person_id = signed_in["person"]["personId"]
        person = {
            "personId": person_id,
            "name": "Ada Lovelace",
            "role": "admin",
            "createdAt": NOW,
        }
        assert answer.status_code == 201
        assert signed_in == {
            "accessToken": signed_in["accessToken"],
            "expiresIn": 900,
            "refreshToken": signed_in["refreshToken"],
            "refreshExpiresIn": 2_592_000,
            "sessionId": signed_in["sessionId"],
            "person": person,
        }
        ada = hub.person(answer)
        assert await ada.get("/v1/me") == person
        assert await ada.get("/v1/people") == {"items": [person]}
    async with running_hub(tmp_path) as hub:
        assert hub.hub.first_admin is None


@pytest.mark.requirement("hub.sessions")
async def test_sessions_are_listed_and_ended_by_their_owner(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        phone = await hub.sign_in("ADA")
        hub.clock.advance(5)
        listed = await ada.get("/v1/me/sessions")
        rows = {row["sessionId"]: row for row in listed["items"]}
        assert rows.keys() == {ada.session_id, phone.session_id}
        assert [row.get("current", False) for row in listed["items"]].count(True) == 1
        assert rows[ada.session_id]["current"]
        row = dict(rows[phone.session_id])
        assert row.pop("address").startswith("10.")
        assert row.pop("userAgent").startswith("python-httpx")
        assert row == {
            "sessionId": phone.session_id,
            "createdAt": NOW,
            "lastUsedAt": NOW,
            "expiresAt": "2026-10-21T14:13:20.000Z",
            "method": "password",
        }
        hub.clock.advance(SESSION_USE_SECONDS)
        await ada.get("/v1/me")
        hub.clock.advance(1)
        rows = {row["sessionId"]: row for row in (await ada.get("/v1/me/sessions"))["items"]}
        assert rows[phone.session_id]["lastUsedAt"] == NOW
        assert rows[ada.session_id]["lastUsedAt"] == "2026-09-21T14:14:25.000Z"
        ended = await ada.request("DELETE", f"/v1/me/sessions/{phone.session_id}")
        assert ended.status_code == 204
        assert (await phone.request("GET", "/v1/me")).status_code == 401
        assert (await hub.refresh(phone.signed_in["refreshToken"])).status_code == 401
        again = await ada.request("DELETE", f"/v1/me/sessions/{phone.session_id}")
        assert (again.status_code, again.json()["code"]) == (404, "unknown_session")
        assert (await ada.request("POST", "/v1/auth/logout")).status_code == 204
        assert (await ada.request("GET", "/v1/me")).json()["code"] == "unauthenticated"


@pytest.mark.requirement("hub.sessions")
async def test_a_person_has_a_bounded_number_of_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.hub.people.accounts.SESSIONS_PER_PERSON", 3)
    async with running_hub(tmp_path) as hub:
        first = await hub.first_admin()
        signed_in = [first]
        for _ in range(4):
            hub.clock.advance(1)
            signed_in.append(await hub.sign_in("Ada"))
        states = [(await each.request("GET", "/v1/me")).status_code for each in signed_in]
        assert states == [401, 401, 200, 200, 200]


@pytest.mark.requirement("hub.sessions")
async def test_a_new_password_ends_the_other_sessions_and_the_old_password(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        phone = await hub.sign_in("Ada")
        new = "another long password"
        body = {"currentPassword": "wrong " + PASSWORD, "newPassword": new}
        refused = await ada.request("POST", "/v1/me/password", body)
        assert (refused.status_code, refused.json()["code"]) == (403, "password_wrong")
        body = {"currentPassword": PASSWORD, "newPassword": new}
        await ada.post("/v1/me/password", body, status=204)
        assert (await ada.request("GET", "/v1/me")).status_code == 200
        assert (await phone.request("GET", "/v1/me")).status_code == 401
        assert (await hub.login("Ada")).json()["code"] == "sign_in_failed"
        assert (await hub.login("Ada", new)).status_code == 200


@pytest.mark.requirement("hub.passwords")
async def test_a_wrong_name_password_or_account_gets_one_answer_after_the_same_work(
    tmp_path: Path,
):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"disabled": True})
        passwords = hub.hub.services.passwords
        verified: list[bool] = []
        matches = passwords._matches

        def count(stored: str, password: bytes) -> bool:
            verified.append(True)
            return matches(stored, password)

        passwords._matches = count
        answers: list[Any] = []
        for name, password in (("nobody", PASSWORD), ("Ada", "wrong"), ("Bo", PASSWORD)):
            answer = await hub.login(name, password)
            document = answer.json()
            document.pop("traceId")
            answers.append((answer.status_code, document))
        assert len(verified) == 3
        assert answers == [answers[0]] * 3
        assert answers[0][1]["code"] == "sign_in_failed"


@pytest.mark.requirement("hub.passwords")
@pytest.mark.parametrize(
    ("password", "allowed"),
    [
        ("short", False),
        ("eleven char", False),
        ("twelve chars", True),
        ("aaaaaaaaaaaaaaaa", False),
        ("abababababababab", False),
        ("Ada LovelaceAda Lovelace", False),
        ("ADALOVELACE ada lovelace", False),
        ("x" * 999 + "yzab", False),
        ("пароль из слов", True),
    ],
)
async def test_which_passwords_are_refused(password: str, *, allowed: bool):
    refused = pytest.raises(Problem, match="password_weak")
    with nullcontext() if allowed else refused:
        check_password(password, "Ada Lovelace")


@pytest.mark.requirement("hub.passwords")
async def test_a_hash_with_old_parameters_is_renewed_at_the_next_sign_in(tmp_path: Path):
    from argon2 import PasswordHasher
    from sqlalchemy import select

    from factwire.hub.people.passwords import Passwords
    from factwire.hub.records.hub_tables import people

    async with running_hub(tmp_path) as hub:
        await hub.first_admin()
        services = hub.hub.services

        async def stored() -> str:
            async with services.database.read() as connection:
                return (await connection.execute(select(people.c.password_hash))).scalar_one()

        before = await stored()
        newer = Passwords(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
        services.passwords.__dict__.update(newer.__dict__)
        assert (await hub.login("Ada")).status_code == 200
        after = await stored()
        assert "t=1," in before
        assert "t=2," in after
        assert (await hub.login("Ada")).status_code == 200
        assert await stored() == after


@pytest.mark.requirement("hub.invitations")
async def test_an_invitation_is_made_shown_used_and_revoked(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        body = {"role": "viewer", "maxUses": 2, "expiresIn": 60}
        made = await ada.post("/v1/invitations", body)
        shown = {
            "invitationId": made["invitationId"],
            "role": "viewer",
            "createdAt": NOW,
            "expiresAt": "2026-09-21T14:14:20.000Z",
            "maxUses": 2,
            "uses": 0,
            "createdBy": ada.person_id,
        }
        assert made == {
            **shown,
            "token": made["token"],
            "link": f"http://127.0.0.1:8788/join#{made['token']}",
        }
        assert await ada.get("/v1/invitations") == {"items": [shown]}
        bo = hub.person(await hub.register(made["token"], "Bo"))
        assert bo.signed_in["person"]["role"] == "viewer"
        one = await ada.get(f"/v1/invitations/{made['invitationId']}")
        assert one == {**shown, "uses": 1}
        taken = await hub.register(made["token"], "bO ")
        assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
        # A registration that was refused has used nothing.
        assert await ada.get(f"/v1/invitations/{made['invitationId']}") == {**shown, "uses": 1}
        path = f"/v1/invitations/{made['invitationId']}"
        assert [(await ada.request("DELETE", path)).status_code for _ in range(2)] == [204, 204]
        assert (await ada.get(path))["revokedAt"] == NOW
        late = await hub.register(made["token"], "Cy")
        assert (late.status_code, late.json()["code"]) == (403, "invitation_invalid")


@pytest.mark.requirement("hub.roles")
async def test_roles_change_what_somebody_may_do_at_once(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        path = f"/v1/people/{bo.person_id}"
        assert (await bo.request("GET", "/v1/people")).json()["code"] == "insufficient_role"
        own = await bo.request("PATCH", path, {"role": "admin"})
        assert (own.status_code, own.json()["code"]) == (403, "insufficient_role")
        changed = (await ada.request("PATCH", path, {"role": "admin"})).json()
        assert changed["role"] == "admin"
        assert len((await bo.get("/v1/people"))["items"]) == 2
        assert (await ada.request("PATCH", path, {"role": "viewer"})).status_code == 200
        assert (await bo.request("GET", "/v1/people")).status_code == 403
        assert (await ada.request("PATCH", path, {"disabled": True})).json()["disabledAt"] == NOW
        assert (await bo.request("GET", "/v1/me")).status_code == 401
        enabled = (await ada.request("PATCH", path, {"disabled": False})).json()
        assert "disabledAt" not in enabled
        # Sessions that were ended stay so.
        assert (await bo.request("GET", "/v1/me")).status_code == 401
        assert (await hub.login("Bo")).status_code == 200


@pytest.mark.requirement("hub.roles")
async def test_two_admins_who_demote_each_other_at_once_leave_one(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo", "admin")
        answers = await asyncio.gather(
            ada.request("PATCH", f"/v1/people/{bo.person_id}", {"role": "member"}),
            bo.request("PATCH", f"/v1/people/{ada.person_id}", {"disabled": True}),
        )
        assert sorted(each.status_code for each in answers) != [200, 200]
        survivors = [(await each.request("GET", "/v1/people")).status_code for each in (ada, bo)]
        assert survivors.count(200) == 1


@pytest.mark.requirement("hub.audit")
async def test_the_audit_log_says_who_did_what_when_and_from_where(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = hub.person(await hub.register(hub.first_token, "Ada", x_from="192.0.2.1"))
        bo = await hub.join(ada, "Bo")
        await hub.login("Bo", "wrong password")
        await hub.login("nobody at all")
        await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"role": "viewer"})
        entries = (await ada.get("/v1/audit"))["items"]
        names = {None: None, ada.person_id: "ada", bo.person_id: "bo"}
        shown = [
            (each["action"], names[each.get("actorId")], names.get(each.get("subjectId"), "other"))
            for each in entries
        ]
        assert shown == [
            ("person.role_changed", "ada", "bo"),
            ("session.refused", None, None),
            ("session.refused", None, "bo"),
            ("person.registered", "bo", "bo"),
            ("invitation.created", "ada", "other"),
            ("person.registered", "ada", "ada"),
            ("invitation.created", None, "other"),
        ]
        first = entries[-2]
        assert {**first, "seq": 0} == {
            "seq": 0,
            "at": NOW,
            "action": "person.registered",
            "via": "api",
            "address": "192.0.2.1",
            "actorId": ada.person_id,
            "subjectId": ada.person_id,
            "details": {"invitationId": "inv_first_admin"},
        }
        mine = (await bo.get("/v1/audit"))["items"]
        assert [each["action"] for each in mine] == [
            "person.role_changed",
            "session.refused",
            "person.registered",
        ]


@pytest.mark.requirement("hub.idempotency")
async def test_a_post_under_one_key_is_done_once_after_a_restart_too(tmp_path: Path):
    clock = SteppedClock()
    async with running_hub(tmp_path, clock) as hub:
        made = [
            await hub.register(hub.first_token, "Ada", idempotency_key="k", x_from="192.0.2.1")
            for _ in range(2)
        ]
        assert made[0].json() == made[1].json()
        assert made[1].headers["idempotency-replayed"] == "true"
        ada = hub.person(made[0])
        body: dict[str, Any] = {"role": "member"}
        invited = await ada.post("/v1/invitations", body, idempotency_key="k")
        token = hub.first_token
    clock.advance(60)
    async with running_hub(tmp_path, clock) as hub:
        again = await hub.register(token, "Ada", idempotency_key="k")
        assert again.json()["person"] == ada.signed_in["person"]
        ada = hub.person(again)
        assert await ada.post("/v1/invitations", body, idempotency_key="k") == invited
        assert len((await ada.get("/v1/invitations"))["items"]) == 1
        assert len((await ada.get("/v1/people"))["items"]) == 1
        other = {"token": token, "name": "Ada", "password": "not her password"}
        guessed = await hub.post("/v1/auth/register", other, idempotency_key="k")
        assert guessed.status_code in (401, 422)


@pytest.mark.requirement("hub.idempotency")
async def test_strangers_may_use_the_same_key(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = hub.person(await hub.register(hub.first_token, "Ada", idempotency_key="1"))
        made = await ada.post("/v1/invitations", {"maxUses": 2})
        for name in ("Bo", "Cy"):
            joined = await hub.register(made["token"], name, idempotency_key="1")
            assert joined.json()["person"]["name"] == name


@pytest.mark.requirement("hub.refresh")
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 5, 9, 11])), max_size=8))
async def test_a_session_lives_exactly_as_the_model_of_rotation_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
):
    """Each step waits and then presents the newest token (0), the one before (1), and so on."""
    async with running_hub(tmp_path_factory.mktemp("model")) as hub:
        ada = await hub.first_admin()
        tokens, rotated, alive = [ada.signed_in["refreshToken"]], hub.clock.now, True
        for back, wait in steps:
            hub.clock.advance(wait)
            place = max(0, len(tokens) - 1 - back)
            answer = await hub.refresh(tokens[place])
            newest = place == len(tokens) - 1
            repeats = place == len(tokens) - 2 and hub.clock.now - rotated <= 10
            if not alive:
                assert answer.json()["code"] == "refresh_token_invalid"
            elif newest:
                tokens.append(answer.json()["refreshToken"])
                rotated = hub.clock.now
            elif repeats:
                assert answer.json()["refreshToken"] == tokens[-1]
            else:
                assert answer.json()["code"] == "refresh_token_reused"
                alive = False
        assert len(set(tokens)) == len(tokens)
        state = (await ada.request("GET", "/v1/me")).status_code
        assert state == (200 if alive else 401)


@pytest.mark.requirement("hub.refresh")
async def test_tokens_end_with_their_time(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        hub.clock.advance(899)
        assert (await ada.request("GET", "/v1/me")).status_code == 200
        hub.clock.advance(1)
        assert (await ada.request("GET", "/v1/me")).status_code == 401
        renewed = hub.person(await hub.refresh(ada.signed_in["refreshToken"]))
        assert (await renewed.request("GET", "/v1/me")).status_code == 200
        hub.clock.advance(30 * 86_400)
        late = await hub.refresh(renewed.signed_in["refreshToken"])
        assert (late.status_code, late.json()["code"]) == (401, "refresh_token_invalid")


@pytest.mark.requirement("hub.invitations")
@given(name=st.text(max_size=80))
@settings(max_examples=200, deadline=None)
async def test_names_that_look_alike_have_one_key(name: str):
    key = name_key(name)
    assert name_key(key) == key
    assert not key or name_key(f" {name.upper()} ") == name_key(name.upper())


@pytest.mark.requirement("hub.roles")
async def test_every_route_is_in_the_table_of_roles_or_open():
    from factwire.hub.hub_app import OPEN_ROUTES, ROUTES

    routes = {
        f"{method} {path}".replace(":str", "").replace("/:", ":")
        for handler in ROUTES
        for path in handler.paths
        for method in handler.http_methods
    }
    openly = {f"{method} {path}" for method, path in OPEN_ROUTES if method != "HEAD"}
    assert routes == ROUTE_ACCESS.keys() | openly
    assert not ROUTE_ACCESS.keys() & openly


async def pages(path: str, person: HubPerson) -> list[Any]:
    page = await person.get(f"{path}?limit=2")
    rows = list(page["items"])
    while "next" in page:
        page = await person.get(f"{path}?limit=2&cursor={page['next']}")
        rows += page["items"]
    return rows


@pytest.mark.requirement("hub.sessions")
@pytest.mark.requirement("hub.invitations")
async def test_pages_have_every_row_once_also_of_one_moment(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        for number in range(6):
            await hub.join(ada, f"Person {number}")
            await hub.sign_in("Ada")
        expected = {"/v1/people": 7, "/v1/invitations": 6, "/v1/me/sessions": 7}
        for path, count in expected.items():
            rows = await pages(path, ada)
            [key] = [key for key in rows[0] if key in ("personId", "sessionId", "invitationId")]
            assert len(rows) == len({row[key] for row in rows}) == count
        wrong = await ada.request("GET", "/v1/people?cursor=nonsense")
        assert (wrong.status_code, wrong.json()["code"]) == (400, "cursor_invalid")

"""Attacks on accounts: each is refused, and succeeds once its protection is switched off."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.handlers import HTTPRouteHandler
from sqlalchemy import select, update

from factwire.hub import hub_app, hub_guard, request_rates
from factwire.hub.people import accounts, administration, hub_tokens
from factwire.hub.people.accounts import HubCaller
from factwire.hub.records import invitation_records, people_records
from factwire.hub.records.hub_tables import invitations, sessions
from factwire.serving.asgi import Problem
from factwire.serving.guard import BodyRule
from tests.hub.hubs import PASSWORD, RunningHub, running_hub

pytestmark = pytest.mark.asyncio

Patch = pytest.MonkeyPatch


class Attack(NamedTuple):
    """`run` asserts that it is refused; `switch_off` removes what refuses it."""

    run: Callable[[RunningHub], Awaitable[None]]
    switch_off: Callable[[Patch], None]


async def replay_first_link(hub: RunningHub) -> None:
    await hub.first_admin()
    assert (await hub.register(hub.first_token, "Eve")).status_code == 403


async def use_expired_first_link(hub: RunningHub) -> None:
    hub.clock.advance(24 * 3_600)
    assert (await hub.register(hub.first_token, "Eve")).status_code == 403


async def use_first_link_of_an_earlier_start(hub: RunningHub) -> None:
    hub.clock.advance(1)
    origin = invitation_records.ActionOrigin(via="start", address="")
    await accounts.invite_first_admin(hub.hub.services, origin)
    assert (await hub.register(hub.first_token, "Eve")).status_code == 403


async def use_revoked_invitation(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made = await ada.post("/v1/invitations", {})
    await ada.request("DELETE", f"/v1/invitations/{made['invitationId']}")
    assert (await hub.register(made["token"], "Eve")).status_code == 403


async def use_one_invitation_fifty_times_at_once(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made = await ada.post("/v1/invitations", {"maxUses": 3})
    answers = await asyncio.gather(
        *(hub.register(made["token"], f"Eve {number}") for number in range(50))
    )
    assert sum(each.status_code == 201 for each in answers) == 3


async def use_invitation_of_somebody_who_was_disabled(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo", "admin")
    made = await bo.post("/v1/invitations", {"role": "admin"})
    await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"disabled": True})
    assert (await hub.register(made["token"], "Eve")).status_code == 403


async def use_invitation_of_a_former_admin(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo", "admin")
    made = await bo.post("/v1/invitations", {"role": "admin"})
    await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"role": "viewer"})
    assert (await hub.register(made["token"], "Eve")).status_code == 403


async def use_stolen_refresh_token_later(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    stolen = ada.signed_in["refreshToken"]
    renewed = hub.person(await hub.refresh(stolen))
    hub.clock.advance(11)
    assert (await hub.refresh(stolen)).json().get("code") == "refresh_token_reused"
    # The thief and the owner are both signed out: nobody can tell who is who.
    assert (await renewed.request("GET", "/v1/me")).status_code == 401
    assert (await hub.refresh(renewed.signed_in["refreshToken"])).status_code == 401


async def use_stolen_refresh_token_once_its_successor_was_used(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    stolen = ada.signed_in["refreshToken"]
    renewed = hub.person(await hub.refresh(stolen))
    await hub.refresh(renewed.signed_in["refreshToken"])
    assert (await hub.refresh(stolen)).json().get("code") == "refresh_token_reused"


async def use_refresh_token_made_up_for_a_session(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made_up = f"fwt_{ada.session_id}_" + "A" * 86
    assert (await hub.refresh(made_up)).json()["code"] == "refresh_token_invalid"
    # Whoever only knows the id of a session cannot end it.
    assert (await ada.request("GET", "/v1/me")).status_code == 200


async def use_token_after_logout(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    await ada.request("POST", "/v1/auth/logout")
    assert (await ada.request("GET", "/v1/me")).status_code == 401


async def use_token_of_a_disabled_account(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo")
    await ada.request("PATCH", f"/v1/people/{bo.person_id}", {"disabled": True})
    assert (await bo.request("GET", "/v1/me")).status_code == 401
    assert (await hub.refresh(bo.signed_in["refreshToken"])).status_code == 401


async def end_session_of_somebody_else(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo")
    answer = await bo.request("DELETE", f"/v1/me/sessions/{ada.session_id}")
    assert answer.status_code == 404
    assert (await ada.request("GET", "/v1/me")).status_code == 200


async def read_invitation_of_somebody_else(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo", "admin")
    made = await ada.post("/v1/invitations", {})
    path = f"/v1/invitations/{made['invitationId']}"
    answers = [(await bo.request(method, path)).status_code for method in ("GET", "DELETE")]
    assert answers == [404, 404]


async def read_account_of_somebody_else(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo")
    assert (await bo.request("GET", f"/v1/people/{ada.person_id}")).status_code == 404


async def make_oneself_an_admin(hub: RunningHub) -> None:
    bo = await hub.join(await hub.first_admin(), "Bo")
    change = await bo.request("PATCH", f"/v1/people/{bo.person_id}", {"role": "admin"})
    assert change.status_code == 403


async def invite_as_a_member(hub: RunningHub) -> None:
    bo = await hub.join(await hub.first_admin(), "Bo")
    assert (await bo.request("POST", "/v1/invitations", {"role": "admin"})).status_code == 403


async def demote_the_last_admin(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    path = f"/v1/people/{ada.person_id}"
    answers = [await ada.request("PATCH", path, {"role": "viewer"})]
    answers.append(await ada.request("PATCH", path, {"disabled": True}))
    assert [each.json().get("code") for each in answers] == ["last_admin"] * 2


async def read_answer_under_the_key_of_somebody_else(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo", "admin")
    body = {"role": "member"}
    hers = await ada.post("/v1/invitations", body, idempotency_key="the same")
    his = await bo.post("/v1/invitations", body, idempotency_key="the same")
    assert his["invitationId"] != hers["invitationId"]
    assert his["token"] != hers["token"]


async def guess_passwords_from_one_address(hub: RunningHub) -> None:
    await hub.first_admin()
    body = {"name": "Ada", "password": "wrong"}
    answers = [
        (await hub.post("/v1/auth/login", body, x_from="192.0.2.9")).status_code for _ in range(25)
    ]
    assert answers == [401] * 20 + [429] * 5


async def guess_passwords_under_made_up_addresses(hub: RunningHub) -> None:
    await hub.first_admin()
    body = {"name": "Ada", "password": "wrong"}
    answers = [
        (
            await hub.post(
                "/v1/auth/login", body, x_from="192.0.2.9", x_forwarded_for=f"198.51.100.{number}"
            )
        ).status_code
        for number in range(21)
    ]
    assert answers[-1] == 429


async def keep_secrets_in_the_database(hub: RunningHub) -> None:
    ada = await hub.first_admin()
    made = await ada.post("/v1/invitations", {})
    async with hub.hub.services.database.read() as connection:
        kept = {
            *(await connection.execute(select(invitations.c.token_digest))).scalars(),
            *(await connection.execute(select(sessions.c.token_digest))).scalars(),
        }
    issued = {made["token"], hub.first_token, ada.signed_in["refreshToken"]}
    assert not kept & issued


async def _always(*_: Any, **__: Any) -> bool:
    return True


async def _end_any(connection: Any, _: str, now: int, *, only: str, **__: Any) -> int:
    change = update(sessions).where(sessions.c.session_id == only).values(ended_at=now)
    return (await connection.execute(change)).rowcount


async def _find_owner(connection: Any, person_id: str, *_: Any) -> Any:
    return await people_records.find_person(connection, person_id)


async def _find_any(connection: Any, invitation_id: str, _: Any) -> Any:
    query = select(invitations).where(invitations.c.invitation_id == invitation_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def _no_admins(_: Any) -> list[str]:
    return []


async def _nothing_revoked(*_: Any, **__: Any) -> int:
    return 0


def _usable_but_for(name: str) -> Callable[[Patch], None]:
    """The conditions of a usable invitation without the one about a column."""

    def switch_off(patch: Patch) -> None:
        conditions = invitation_records._is_usable

        def fewer(digest: str, now: int) -> tuple[Any, ...]:
            found = conditions(digest, now)
            kept = tuple(each for each in found if getattr(each.left, "name", "") != name)
            assert len(kept) == len(found) - 1
            return kept

        patch.setattr(invitation_records, "_is_usable", fewer)
        # The table itself would refuse more uses than there are.
        if name == "uses":
            patch.setattr(invitation_records, "use_invitation", _always)

    return switch_off


def _set(place: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(place, name, value)


def _is_recent(session: Any, _: str, now: int) -> bool:
    return now - session["rotated_at"] <= 10_000


def _may(_: Any, __: str) -> bool:
    return True


def _secret_of_id(self: Any, invitation_id: str, _: int) -> str:
    return f"fwt_{self._derive('invitation', invitation_id).hex()}"


def _as_it_is(secret: str) -> str:
    return secret


def _keep_plain(patch: Patch) -> None:
    for module in (accounts, administration):
        patch.setattr(module, "digest_of", _as_it_is)


def _always_repeat(*_: Any) -> bool:
    return True


def _prove_nothing(*_: Any) -> str:
    return "A" * 43


def _count_nothing(*_: Any) -> None:
    return None


def _believe_header(scope: Any, _: Any) -> str:
    return dict(scope["headers"]).get(b"x-forwarded-for", b"").decode()


ATTACKS: dict[str, Attack] = {
    "first link again": Attack(replay_first_link, _usable_but_for("uses")),
    "first link late": Attack(use_expired_first_link, _usable_but_for("expires_at")),
    "first link of an earlier start": Attack(
        use_first_link_of_an_earlier_start,
        _set(hub_tokens.HubTokens, "invitation_secret", _secret_of_id),
    ),
    "revoked invitation": Attack(use_revoked_invitation, _usable_but_for("revoked_at")),
    "one invitation for many": Attack(
        use_one_invitation_fifty_times_at_once, _usable_but_for("uses")
    ),
    "invitation of a disabled account": Attack(
        use_invitation_of_somebody_who_was_disabled,
        _set(invitation_records, "revoke_invitations", _nothing_revoked),
    ),
    "invitation of a former admin": Attack(
        use_invitation_of_a_former_admin,
        _set(invitation_records, "revoke_invitations", _nothing_revoked),
    ),
    "refresh token stolen": Attack(
        use_stolen_refresh_token_later, _set(accounts, "_is_repeat", _always_repeat)
    ),
    "refresh token stolen, at once": Attack(
        use_stolen_refresh_token_once_its_successor_was_used,
        _set(accounts, "_is_repeat", _is_recent),
    ),
    "refresh token made up": Attack(
        use_refresh_token_made_up_for_a_session,
        _set(hub_tokens.HubTokens, "_prove", _prove_nothing),
    ),
    "token after logout": Attack(
        use_token_after_logout, _set(people_records, "find_session_person", _find_owner)
    ),
    "token of a disabled account": Attack(
        use_token_of_a_disabled_account,
        _set(people_records, "find_session_person", _find_owner),
    ),
    "session of somebody else": Attack(
        end_session_of_somebody_else, _set(people_records, "end_sessions", _end_any)
    ),
    "invitation of somebody else": Attack(
        read_invitation_of_somebody_else, _set(invitation_records, "find_invitation", _find_any)
    ),
    "account of somebody else": Attack(read_account_of_somebody_else, _set(HubCaller, "may", _may)),
    "role of one's own": Attack(make_oneself_an_admin, _set(HubCaller, "may", _may)),
    "invitation by a member": Attack(invite_as_a_member, _set(HubCaller, "may", _may)),
    "last admin": Attack(demote_the_last_admin, _set(people_records, "lock_admins", _no_admins)),
    "key of somebody else": Attack(
        read_answer_under_the_key_of_somebody_else, _set(hub_guard, "CALLER_ID", "nobody")
    ),
    "guesses": Attack(
        guess_passwords_from_one_address,
        _set(hub_guard.RequestRates, "spend", _count_nothing),
    ),
    "guesses under made-up addresses": Attack(
        guess_passwords_under_made_up_addresses,
        _set(hub_guard, "client_address", _believe_header),
    ),
    "secrets at rest": Attack(keep_secrets_in_the_database, _keep_plain),
}


REFUSED = [
    pytest.mark.requirement("hub.first-admin"),
    pytest.mark.requirement("hub.invitations"),
    pytest.mark.requirement("hub.refresh"),
    pytest.mark.requirement("hub.sessions"),
    pytest.mark.requirement("hub.owners"),
    pytest.mark.requirement("hub.roles"),
    pytest.mark.requirement("hub.limits"),
    pytest.mark.requirement("hub.idempotency"),
]


@pytest.mark.parametrize("name", [pytest.param(name, marks=REFUSED) for name in ATTACKS])
async def test_an_attack_is_refused(tmp_path: Path, name: str):
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


@pytest.mark.requirement("hub.limits")
async def test_limits_are_those_of_each_kind_and_come_back_with_time(tmp_path: Path):
    async with running_hub(tmp_path) as hub:

        async def statuses(count: int, method: str, path: str, body: Any = None) -> list[int]:
            headers = {"x-from": "192.0.2.1"}
            return [
                (await hub.http.request(method, path, json=body, headers=headers)).status_code
                for _ in range(count)
            ]

        unknown = {"token": "none", "name": "Eve", "password": PASSWORD}
        assert await statuses(4, "POST", "/v1/auth/register", unknown) == [403, 403, 403, 429]
        refresh = {"refreshToken": "none"}
        assert await statuses(21, "POST", "/v1/auth/refresh", refresh) == [401] * 20 + [429]
        assert await statuses(76, "GET", "/v1/health") == [200] * 75 + [429]
        refused = await hub.http.get("/v1/health", headers={"x-from": "192.0.2.1"})
        assert refused.json()["code"] == "too_many_requests"
        assert refused.headers["retry-after"] == "61"
        hub.clock.advance(60)
        assert await statuses(1, "GET", "/v1/health") == [429]
        hub.clock.advance(1)
        assert await statuses(101, "GET", "/v1/health") == [200] * 100 + [429]
        elsewhere = await hub.http.get("/v1/health", headers={"x-from": "192.0.2.2"})
        assert elsewhere.status_code == 200


@pytest.mark.requirement("hub.limits")
@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "203.0.113.5", "192.0.2.1"),
        ("10.9.9.9", "203.0.113.5", "203.0.113.5"),
        ("10.9.9.9", "198.51.100.1, 203.0.113.5", "203.0.113.5"),
        ("10.9.9.9", "198.51.100.1, 203.0.113.5, 10.9.9.8", "203.0.113.5"),
        ("10.9.9.9", "nonsense", "10.9.9.9"),
        ("10.9.9.9", "203.0.113.5, nonsense", "10.9.9.9"),
        ("10.9.9.9", "", "10.9.9.9"),
        ("10.9.9.9", None, "10.9.9.9"),
        ("10.9.9.9", "2001:db8::1", "2001:db8::1"),
    ],
)
async def test_where_a_request_comes_from(
    tmp_path: Path, peer: str, forwarded: str | None, expected: str
):
    async with running_hub(tmp_path, proxies=("10.9.9.9", "10.9.9.8")) as hub:
        headers = {"x_from": peer} | ({} if forwarded is None else {"x_forwarded_for": forwarded})
        ada = hub.person(await hub.register(hub.first_token, "Ada", **headers))
        [row] = (await ada.get("/v1/me/sessions"))["items"]
        assert row["address"] == expected


@pytest.mark.requirement("hub.limits")
async def test_addresses_of_one_subscriber_share_a_limit():
    counted = hub_guard.counted_network
    assert counted("2001:db8:1:2:3::4") == counted("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert counted("2001:db8:1:3::1") != counted("2001:db8:1:2::1")
    assert counted("::ffff:192.0.2.1") == counted("192.0.2.1") == "192.0.2.1"


@pytest.mark.requirement("hub.limits")
async def test_counting_has_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(request_rates, "COUNTED_ADDRESSES", 10)
    rates = request_rates.RequestRates(lambda: 0.0)
    for number in range(100):
        rates.spend(request_rates.Rate("every", 5), str(number))
    assert len(rates._windows) == 10


@pytest.mark.requirement("hub.limits")
@given(
    pauses=st.lists(st.floats(0, 70) | st.just(0.0), max_size=150),
    start=st.floats(0, 1_000),
    limit=st.integers(1, 12),
)
async def test_no_minute_has_more_than_the_limit_and_a_wait_as_told_is_enough(
    pauses: list[float], start: float, limit: int
):
    now = start
    rates, rate = request_rates.RequestRates(lambda: now), request_rates.Rate("every", limit)
    allowed: list[float] = []
    for pause in pauses:
        now += pause
        try:
            rates.spend(rate, "192.0.2.1")
        except Problem as problem:
            now += int(problem.headers["retry-after"])
            rates.spend(rate, "192.0.2.1")
        allowed.append(now)
        assert len(rates._windows["every", "192.0.2.1"].counts) <= 61
    for first, beyond in zip(allowed, allowed[limit:], strict=False):
        assert beyond - first >= 60


async def send_large_body(hub: RunningHub) -> tuple[int, str]:
    answer = await hub.post("/v1/auth/login", {"name": "a", "password": "x" * 10_000_000})
    return answer.status_code, answer.json()["code"]


@pytest.mark.requirement("hub.limits")
async def test_a_body_has_a_bound(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        assert await send_large_body(hub) == (413, "body_too_large")
        fits = await hub.post("/v1/auth/login", {"name": "a", "password": "x" * 9_000_000})
        assert (fits.status_code, fits.json()["code"]) == (400, "invalid_request")


async def test_without_the_bound_a_larger_body_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def find_no_bound(_: HTTPRouteHandler) -> None:
        return None

    monkeypatch.setattr(hub_app, "_BODY", BodyRule(most=1 << 30))
    monkeypatch.setattr(HTTPRouteHandler, "resolve_request_max_body_size", find_no_bound)
    async with running_hub(tmp_path) as hub:
        assert await send_large_body(hub) == (400, "invalid_request")

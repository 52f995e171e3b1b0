"""Signing in with an identity provider that really runs, and attacks on it, each with its code."""

import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from factwire.hub.people import identity_providers, provider_sign_in, sign_in_methods
from factwire.hub.people.identity_providers import IdentityProvider
from factwire.hub.records import sign_in_records
from factwire.runtime.configuration import ProviderSettings
from tests.hub.hubs import PASSWORD, HubPerson, RunningHub, SteppedClock, running_hub
from tests.hub.identity_server import CLIENT, SECRET, IdentityServer, identity_server, public_part

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.providers")]

Patch = pytest.MonkeyPatch
URL = "http://localhost:8788"


class Flow:
    """A Hub with two providers at one server, and browsers that go there."""

    def __init__(self, hub: RunningHub, idp: IdentityServer, ada: HubPerson) -> None:
        self.hub = hub
        self.idp = idp
        self.ada = ada

    async def begin(self, provider: str = "corp", **fields: str) -> Any:
        body = {"provider": provider, **fields}
        answer = await self.hub.post("/v1/auth/providers/start", body)
        return answer.json()

    async def finish(self, begun: Any, **changes: Any) -> httpx.Response:
        back = self.idp.authorize(begun["authorizationUrl"])
        body = {"ceremony": begun["ceremony"], "provider": "corp", **back, **changes}
        kept = {name: value for name, value in body.items() if value is not None}
        return await self.hub.post("/v1/auth/providers/login", kept)

    async def sign_in(self, provider: str = "corp", **changes: Any) -> httpx.Response:
        begun = await self.begin(provider)
        if "code" in begun:
            return httpx.Response(500, json=begun)
        return await self.finish(begun, provider=provider, **changes)

    async def outcome(self, provider: str = "corp", **changes: Any) -> str:
        return code_of(await self.sign_in(provider, **changes))

    async def link(self, person: HubPerson, provider: str = "corp") -> httpx.Response:
        begun = await person.post("/v1/me/identities/start", {"provider": provider}, 200)
        back = self.idp.authorize(begun["authorizationUrl"])
        body = {"ceremony": begun["ceremony"], "provider": provider, **back}
        return await person.request("POST", "/v1/me/identities", body)


def code_of(answer: httpx.Response) -> str:
    return answer.json().get("code", "in")


def provider_settings(idp: IdentityServer, **changes: Any) -> ProviderSettings:
    settings: dict[str, Any] = {
        "issuer": idp.issuer,
        "client_id": CLIENT,
        "client_secret_env": "CORP_SECRET",
        "private_network": True,
        "accounts": "create",
        **changes,
    }
    return ProviderSettings(**settings)


@asynccontextmanager
async def provider_hub(folder: Path, **changes: Any) -> AsyncGenerator[Flow]:
    clock = SteppedClock()
    with identity_server(clock) as idp, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORP_SECRET", SECRET)
        oidc = {
            "corp": provider_settings(idp, **changes),
            "strict": provider_settings(
                idp, accounts="link", domains=("example.com",), groups=("staff",)
            ),
            "public": provider_settings(idp, private_network=False),
        }
        async with running_hub(folder, clock, url=URL, oidc=oidc) as hub:
            yield Flow(hub, idp, await hub.first_admin())


@pytest.mark.requirement("hub.methods")
async def test_somebody_the_provider_knows_gets_an_account_and_signs_in_again(tmp_path: Path):
    async with provider_hub(tmp_path, title="Corp Inc.") as at:
        offered = (await at.hub.http.get("/v1/auth/methods")).json()
        assert offered["providers"][0] == {
            "provider": "corp",
            "title": "Corp Inc.",
            "creates": True,
        }
        at.idp.claims = {"preferred_username": "Ada", "email": "ada@example.com"}
        first = at.hub.person(await at.sign_in())
        # Ada has this name already, and stays the only one who is Ada.
        assert first.signed_in["person"]["name"] == "Ada 2"
        assert first.signed_in["person"]["role"] == "member"
        for algorithm in ("ES256", "Ed25519"):
            at.idp.algorithm = algorithm
            again = at.hub.person(await at.sign_in())
            assert again.person_id == first.person_id
            assert again.session_id != first.session_id
        methods = await first.get("/v1/me/methods")
        [identity] = methods["identities"]
        assert (methods["password"], identity["label"], identity["offered"]) == (
            False,
            "ada@example.com",
            True,
        )
        path = f"/v1/me/methods/{identity['identityId']}"
        assert (await first.request("DELETE", path)).json()["code"] == "last_method"
        sessions = (await first.get("/v1/me/sessions"))["items"]
        assert {each["method"] for each in sessions} == {"provider"}
        assert sessions[0]["methodId"] == identity["identityId"]
        # One reading of addresses and keys serves many sign-ins.
        assert at.idp.requests.count("/keys") == 1


@pytest.mark.requirement("hub.methods")
async def test_an_identity_is_linked_used_and_unlinked(tmp_path: Path):
    async with provider_hub(tmp_path, accounts="link") as at:
        at.idp.claims = {"email": "x@example.com", "email_verified": True}
        assert await at.outcome() == "identity_unknown"
        linked = await at.link(at.ada)
        assert linked.status_code == 201, linked.text
        by_provider = at.hub.person(await at.sign_in())
        assert by_provider.person_id == at.ada.person_id
        bo = await at.hub.join(at.ada, "Bo")
        assert code_of(await at.link(bo)) == "identity_taken"
        path = f"/v1/me/methods/{linked.json()['identityId']}"
        assert (await bo.request("DELETE", path)).status_code == 404
        assert (await at.ada.request("DELETE", path)).status_code == 204
        assert (await by_provider.request("GET", "/v1/me")).status_code == 401
        assert await at.outcome() == "identity_unknown"
        details = [row["details"] for row in (await at.ada.get("/v1/audit"))["items"]]
        assert {"method": "provider", "code": "identity_unknown"} in details


async def test_an_invitation_is_accepted_with_a_provider(tmp_path: Path):
    async with provider_hub(tmp_path, accounts="link") as at:
        made = await at.ada.post("/v1/invitations", {"role": "viewer"})
        begun = await at.begin(token=made["token"], name="Bo")
        bo = at.hub.person(await at.finish(begun))
        assert (bo.signed_in["person"]["name"], bo.signed_in["person"]["role"]) == ("Bo", "viewer")
        assert (await at.begin(token=made["token"], name="Eve"))["code"] == "invitation_invalid"


async def test_new_keys_of_a_provider_are_found_and_old_ones_forgotten(tmp_path: Path):
    async with provider_hub(tmp_path) as at:
        assert await at.outcome() == "in"
        at.idp.key = RSAKey.generate_key(2_048, {"kid": "next"})
        at.idp.keys = [public_part(at.idp.key)]
        # Not even a stream of unknown keys makes the Hub ask more than once in a while.
        assert [await at.outcome() for _ in range(3)] == ["identity_token_invalid"] * 3
        at.hub.clock.advance(61)
        assert await at.outcome() == "in"
        assert at.idp.requests.count("/keys") == 2
        at.idp.key = None
        assert await at.outcome() == "identity_token_invalid"


@pytest.mark.requirement("hub.tokens.forged")
async def test_an_identity_token_opens_nothing_at_the_hub(tmp_path: Path):
    async with provider_hub(tmp_path) as at:
        tokens: list[str] = []

        def keep(header: dict[str, Any], claims: dict[str, Any]) -> str:
            tokens.append(at.idp.sign(header, claims))
            return tokens[-1]

        at.idp.make_token = keep
        assert await at.outcome() == "in"
        headers = {"authorization": f"Bearer {tokens[0]}"}
        assert (await at.hub.http.get("/v1/me", headers=headers)).status_code == 401


async def test_a_provider_that_is_gone_is_a_documented_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CORP_SECRET", SECRET)
    async with provider_hub(tmp_path) as at:
        at.idp.metadata = {"issuer": "http://127.0.0.1:9"}
        assert await at.outcome() == "provider_unavailable"
    async with running_hub(tmp_path, url=URL, oidc={"corp": provider_settings(at.idp)}) as hub:
        answer = await hub.post("/v1/auth/providers/start", {"provider": "corp"})
        assert (answer.status_code, answer.json()["code"]) == (502, "provider_unavailable")
        unknown = await hub.post("/v1/auth/providers/start", {"provider": "other"})
        assert unknown.json()["code"] == "unknown_provider"


def forge(**header: Any) -> Callable[[Flow], None]:
    """Tokens whose header says something else."""

    def change(at: Flow) -> None:
        at.idp.header = header

    return change


def claim(**claims: Any) -> Callable[[Flow], None]:
    def change(at: Flow) -> None:
        at.idp.claims = claims

    return change


def leave_out(name: str) -> Callable[[Flow], None]:
    def change(at: Flow) -> None:
        at.idp.without = {name}

    return change


def describe(**metadata: Any) -> Callable[[Flow], None]:
    def change(at: Flow) -> None:
        at.idp.metadata = metadata

    return change


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def sign_with_none(at: Flow) -> None:
    at.idp.make_token = lambda _, claims: f"{segment({'alg': 'none'})}.{segment(claims)}."


def sign_with(secret: Callable[[Flow], bytes], **header: Any) -> Callable[[Flow], None]:
    """HS256 with something that an attacker knows."""

    def change(at: Flow) -> None:
        key = OctKey.import_key(secret(at))
        at.idp.make_token = lambda _, claims: jwt.encode(
            {"alg": "HS256", "kid": "rsa", **header}, claims, key, algorithms=["HS256"]
        )

    return change


def public_pem(at: Flow) -> bytes:
    key = RSAKey.import_key(at.idp.keys[0])
    # The library refuses to use it as a secret as it stands.
    return key.as_pem(private=False).replace(b"-----", b"")


def sign_with_own_key(**header: Any) -> Callable[[Flow], None]:
    def change(at: Flow) -> None:
        at.idp.key = RSAKey.generate_key(2_048, {"kid": "rsa"})
        at.idp.header = header

    return change


def bring_own_key(at: Flow) -> None:
    key = ECKey.generate_key("P-256", {"kid": "mine"})
    at.idp.key, at.idp.algorithm = key, "ES256"
    at.idp.header = {"kid": "mine", "jwk": public_part(key)}


def tamper(at: Flow) -> None:
    def change(header: dict[str, Any], claims: dict[str, Any]) -> str:
        first, _, last = at.idp.sign(header, claims).split(".")
        return f"{first}.{segment({**claims, 'sub': 'somebody else'})}.{last}"

    at.idp.make_token = change


def publish(key: Any, **members: Any) -> Callable[[Flow], None]:
    """A key of the provider that must not be used."""

    def change(at: Flow) -> None:
        at.idp.key = key
        at.idp.algorithm = {"RSA": "RS256", "EC": "ES256"}[key.key_type]
        at.idp.keys = [{**public_part(key), **members}]
        at.hub.clock.advance(3_601)

    return change


def publish_weak_key(at: Flow) -> None:
    publish(RSAKey.generate_key(1_024, {"kid": "weak"}))(at)


def redirect_token_endpoint(at: Flow) -> None:
    at.idp.token_redirect = f"{at.idp.issuer}/keys"


def claim_time(**offsets: int) -> Callable[[Flow], None]:
    def change(at: Flow) -> None:
        now = int(at.hub.clock())
        at.idp.claims = {name: now + seconds for name, seconds in offsets.items()}

    return change


def no_iss(at: Flow) -> None:
    at.idp.iss = None


def other_iss(at: Flow) -> None:
    at.idp.iss = "https://other.example"


SETUPS: dict[str, tuple[Callable[[Flow], None], str]] = {
    "alg none": (sign_with_none, "identity_token_invalid"),
    "HS256 with the public key": (sign_with(public_pem), "identity_token_invalid"),
    "HS256 with the client's secret": (
        sign_with(lambda _: SECRET.encode()),
        "identity_token_invalid",
    ),
    "own key under a known kid": (sign_with_own_key(), "identity_token_invalid"),
    "jku to a key of one's own": (
        sign_with_own_key(kid="mine", jku="http://127.0.0.1:1/keys"),
        "identity_token_invalid",
    ),
    "x5u to a certificate of one's own": (
        sign_with_own_key(kid="mine", x5u="http://127.0.0.1:1/cert"),
        "identity_token_invalid",
    ),
    "jwk in the header": (bring_own_key, "identity_token_invalid"),
    "kid that is a path": (forge(kid="../../../dev/null"), "identity_token_invalid"),
    "kid that is SQL": (forge(kid="x' OR '1'='1"), "identity_token_invalid"),
    "access token for an identity token": (forge(typ="at+jwt"), "identity_token_invalid"),
    "other audience": (claim(aud="another-client"), "identity_token_invalid"),
    "several audiences without azp": (
        claim(aud=[CLIENT, "another-client"]),
        "identity_token_invalid",
    ),
    "azp of another": (claim(azp="another-client"), "identity_token_invalid"),
    "issuer of another": (claim(iss="https://other.example"), "identity_token_invalid"),
    "nonce of another sign-in": (claim(nonce="another"), "identity_token_invalid"),
    "no nonce": (leave_out("nonce"), "identity_token_invalid"),
    "no expiry": (leave_out("exp"), "identity_token_invalid"),
    "no audience": (leave_out("aud"), "identity_token_invalid"),
    "no subject": (leave_out("sub"), "identity_token_invalid"),
    "empty subject": (claim(sub=""), "identity_token_invalid"),
    "subject that is no text": (claim(sub=7), "identity_token_invalid"),
    "expired": (claim_time(iat=-700, exp=-61), "identity_token_invalid"),
    "issued in the future": (claim_time(iat=600), "identity_token_invalid"),
    "not valid yet": (claim_time(nbf=600), "identity_token_invalid"),
    "changed after signing": (tamper, "identity_token_invalid"),
    "weak key": (publish_weak_key, "identity_token_invalid"),
    "key for encryption": (
        publish(ECKey.generate_key("P-256", {"kid": "enc"}), use="enc"),
        "identity_token_invalid",
    ),
    "answer of another issuer": (other_iss, "issuer_mismatch"),
    "answer without its issuer": (no_iss, "issuer_mismatch"),
    "redirect of the token endpoint": (redirect_token_endpoint, "provider_refused"),
    "metadata of another issuer": (
        describe(issuer="https://other.example"),
        "provider_unavailable",
    ),
    "keys at a metadata service": (
        describe(jwks_uri="http://169.254.169.254/latest"),
        "provider_unavailable",
    ),
    "token endpoint in the network": (
        describe(token_endpoint="https://10.0.0.1/token"),
        "provider_unavailable",
    ),
    "script for an address": (
        describe(authorization_endpoint="javascript:alert(1)"),
        "provider_unavailable",
    ),
    "plain http elsewhere": (
        describe(authorization_endpoint="http://other.example/authorize"),
        "provider_unavailable",
    ),
}


def forget_provider(at: Flow) -> None:
    """Have the Hub read addresses and keys anew."""
    at.idp.reset()
    for each in at.hub.hub.services.providers:
        each._metadata = each._keys = None


@pytest.mark.filterwarnings("ignore:Key size should be")
async def test_false_answers_of_a_provider_are_refused(tmp_path: Path, subtests: pytest.Subtests):
    async with provider_hub(tmp_path) as at:
        for name, (change, code) in SETUPS.items():
            with subtests.test(name):
                forget_provider(at)
                change(at)
                assert await at.outcome() == code
        forget_provider(at)
        assert await at.outcome() == "in"


def registry_without(*names: str) -> Callable[[Patch], None]:
    """Claims that are not looked at."""

    def switch_off(patch: Patch) -> None:
        real = IdentityProvider._registry

        def fewer(self: IdentityProvider, nonce: str) -> Any:
            registry = real(self, nonce)
            for name in names:
                registry.options.pop(name, None)
                setattr(registry, f"validate_{name}", _accept_now)
            return registry

        patch.setattr(IdentityProvider, "_registry", fewer)
        patch.setattr(jwt.JWTClaimsRegistry, "essential_keys", set[str]())

    return switch_off


def allow_shared_secrets(patch: Patch) -> None:
    """What a library does that takes the algorithm of the token, and any key for it."""
    patch.setitem(identity_providers.KEY_TYPES, "HS256", "oct")

    def to_secret(keys: list[dict[str, Any]], header: Any) -> Any:
        del header
        pem = RSAKey.import_key(keys[0]).as_pem(private=False)
        return OctKey.import_key(pem.replace(b"-----", b""))

    patch.setattr(identity_providers, "_select_key", to_secret)


def trust_the_header(patch: Patch) -> None:
    def from_header(_: Any, header: Any) -> Any:
        return ECKey.import_key(header["jwk"])

    patch.setattr(identity_providers, "_select_key", from_header)


def set_value(place: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(place, name, value)


async def _accept(*_: Any) -> None:
    return None


def _accept_now(*_: Any) -> None:
    return None


BITES: dict[str, Callable[[Patch], None]] = {
    "HS256 with the public key": allow_shared_secrets,
    "jwk in the header": trust_the_header,
    "other audience": registry_without("aud"),
    "issuer of another": registry_without("iss"),
    "nonce of another sign-in": registry_without("nonce"),
    "no nonce": registry_without("nonce"),
    "expired": registry_without("exp"),
    "issued in the future": registry_without("iat"),
    "not valid yet": registry_without("nbf"),
    "several audiences without azp": set_value(IdentityProvider, "_ensure_party", _accept_now),
    "azp of another": set_value(IdentityProvider, "_ensure_party", _accept_now),
    "access token for an identity token": set_value(
        identity_providers, "_TOKEN_TYPES", ("at+jwt",)
    ),
    "weak key": set_value(identity_providers, "_RSA_BITS", 512),
    "answer of another issuer": set_value(IdentityProvider, "ensure_issuer", _accept),
    "answer without its issuer": set_value(IdentityProvider, "ensure_issuer", _accept),
    "script for an address": set_value(IdentityProvider, "_ensure_allowed", _accept_now),
    "plain http elsewhere": set_value(IdentityProvider, "_ensure_allowed", _accept_now),
}


@pytest.mark.filterwarnings("ignore:Key size should be")
async def test_false_answers_are_believed_without_their_check(
    tmp_path: Path, subtests: pytest.Subtests
):
    async with provider_hub(tmp_path) as at:
        for name, switch_off in BITES.items():
            with subtests.test(name), pytest.MonkeyPatch.context() as patch:
                forget_provider(at)
                SETUPS[name][0](at)
                switch_off(patch)
                assert await at.outcome() == "in"


async def repeat_an_answer(at: Flow) -> str:
    begun = await at.begin()
    assert code_of(await at.finish(begun)) == "in"
    return code_of(await at.finish(begun))


async def bring_the_answer_of_another_browser(at: Flow) -> str:
    """Login CSRF: Eve's code and state in Ada's browser, which began a sign-in of its own."""
    eve, ada = await at.begin(), await at.begin()
    back = at.idp.authorize(eve["authorizationUrl"])
    return code_of(await at.finish(ada, **back))


async def inject_a_code(at: Flow) -> str:
    """Eve's browser, its own state, and a code that was issued to Ada's."""
    ada, eve = await at.begin(), await at.begin()
    stolen = at.idp.authorize(ada["authorizationUrl"])["code"]
    return code_of(await at.finish(eve, code=stolen))


async def inject_a_code_where_pkce_is_not_checked(at: Flow) -> str:
    at.idp.checks_pkce = False
    return await inject_a_code(at)


async def repeat_a_code(at: Flow) -> str:
    begun = await at.begin()
    back = at.idp.authorize(begun["authorizationUrl"])
    assert code_of(await at.finish(begun, **back)) == "in"
    again = await at.begin()
    state = at.idp.authorize(again["authorizationUrl"])["state"]
    return code_of(await at.finish(again, code=back["code"], state=state))


async def answer_late(at: Flow) -> str:
    begun = await at.begin()
    at.hub.clock.advance(301)
    return code_of(await at.finish(begun))


async def mix_up_providers(at: Flow) -> str:
    begun = await at.begin("corp")
    return code_of(await at.finish(begun, provider="strict"))


async def sign_in_with_an_answer_for_linking(at: Flow) -> str:
    ada = await at.hub.sign_in("Ada")
    begun = await ada.post("/v1/me/identities/start", {"provider": "corp"}, 200)
    return code_of(await at.finish(begun))


async def link_in_the_session_of_somebody_else(at: Flow) -> str:
    """Eve would have Ada link Eve's identity to Ada's account."""
    ada, eve = await at.hub.sign_in("Ada"), await at.hub.sign_in("Eve")
    begun = await eve.post("/v1/me/identities/start", {"provider": "corp"}, 200)
    back = at.idp.authorize(begun["authorizationUrl"])
    body = {"ceremony": begun["ceremony"], "provider": "corp", **back}
    return code_of(await ada.request("POST", "/v1/me/identities", body))


async def take_an_account_by_its_name_and_address(at: Flow) -> str:
    at.idp.subject = "eve"
    at.idp.claims = {
        "preferred_username": "Ada",
        "email": "ada@example.com",
        "email_verified": True,
        "groups": ["staff"],
    }
    answer = await at.finish(await at.begin("strict"), provider="strict")
    return code_of(answer)


async def come_from_an_address_that_nobody_verified(at: Flow) -> str:
    at.idp.claims = {"email": "eve@example.com", "groups": ["staff"]}
    return await at.outcome("strict")


async def come_from_a_domain_that_looks_alike(at: Flow) -> str:
    at.idp.claims = {
        "email": "eve@example.com.evil.example",
        "email_verified": True,
        "groups": ["staff"],
    }
    return await at.outcome("strict")


async def come_without_a_group(at: Flow) -> str:
    at.idp.claims = {"email": "eve@example.com", "email_verified": True, "groups": "staff"}
    return await at.outcome("strict")


async def become_an_admin_by_claims(at: Flow) -> str:
    at.idp.subject = f"climber {at.hub.clock.now}"
    at.idp.claims = {"role": "admin", "roles": ["admin"], "groups": ["admin"], "admin": True}
    at.hub.clock.advance(1)
    person = at.hub.person(await at.sign_in())
    return person.signed_in["person"]["role"]


async def come_as_somebody_disabled(at: Flow) -> str:
    at.idp.subject = "disabled"
    person = at.hub.person(await at.sign_in())
    ada = await at.hub.sign_in("Ada")
    await ada.request("PATCH", f"/v1/people/{person.person_id}", {"disabled": True})
    code = await at.outcome()
    await ada.request("PATCH", f"/v1/people/{person.person_id}", {"disabled": False})
    return code


async def reach_loopback_without_permission(at: Flow) -> str:
    return (await at.begin("public")).get("code", "in")


async def keep_a_session_that_was_open_before(at: Flow) -> str:
    """Session fixation: whatever somebody sends along, signing in makes a session anew."""
    eve = await at.hub.sign_in("Eve")
    begun = await at.begin()
    back = at.idp.authorize(begun["authorizationUrl"])
    body = {"ceremony": begun["ceremony"], "provider": "corp", **back}
    answer = await eve.request("POST", "/v1/auth/providers/login", body)
    return "new" if answer.json()["sessionId"] != eve.session_id else "kept"


async def decline(at: Flow) -> str:
    return code_of(await at.finish(await at.begin(), code=None, error="access_denied"))


async def _nothing(*_: Any, **__: Any) -> None:
    return None


def _same_for_all(_: Any, __: Any, part: str) -> str:
    return f"{part}-{'x' * 43}"


def _trust_all(*_: Any) -> bool:
    return True


def _same_secrets(patch: Patch) -> None:
    patch.setattr(provider_sign_in, "derive_secret", _same_for_all)


FLOWS: dict[Callable[[Flow], Any], tuple[str, Callable[[Patch], None] | None]] = {
    repeat_an_answer: (
        "ceremony_invalid",
        set_value(sign_in_records, "add_finished_ceremony", _nothing),
    ),
    bring_the_answer_of_another_browser: ("ceremony_invalid", _same_secrets),
    inject_a_code: ("provider_refused", _same_secrets),
    inject_a_code_where_pkce_is_not_checked: (
        "identity_token_invalid",
        registry_without("nonce"),
    ),
    repeat_a_code: ("provider_refused", None),
    answer_late: ("ceremony_invalid", set_value(sign_in_methods, "CEREMONY_SECONDS", 3_600)),
    mix_up_providers: ("issuer_mismatch", None),
    sign_in_with_an_answer_for_linking: ("ceremony_invalid", None),
    link_in_the_session_of_somebody_else: ("ceremony_invalid", None),
    take_an_account_by_its_name_and_address: ("identity_unknown", None),
    come_from_an_address_that_nobody_verified: (
        "identity_not_admitted",
        set_value(provider_sign_in, "_ensure_admitted", _accept_now),
    ),
    come_from_a_domain_that_looks_alike: (
        "identity_not_admitted",
        set_value(provider_sign_in, "_ensure_admitted", _accept_now),
    ),
    come_without_a_group: (
        "identity_not_admitted",
        set_value(provider_sign_in, "_ensure_admitted", _accept_now),
    ),
    become_an_admin_by_claims: ("member", None),
    come_as_somebody_disabled: ("sign_in_failed", None),
    reach_loopback_without_permission: (
        "provider_unavailable",
        set_value(identity_providers.OutgoingRules, "trusts", _trust_all),
    ),
    keep_a_session_that_was_open_before: ("new", None),
    decline: ("provider_refused", None),
}


@pytest.mark.requirement("hub.methods")
async def test_attacks_on_the_flow_are_refused(tmp_path: Path, subtests: pytest.Subtests):
    async with provider_hub(tmp_path) as at:
        await at.hub.join(at.ada, "Eve")
        for run, (code, _) in FLOWS.items():
            with subtests.test(run.__name__):
                forget_provider(at)
                assert await run(at) == code


async def test_attacks_on_the_flow_succeed_without_their_check(
    tmp_path: Path, subtests: pytest.Subtests
):
    async with provider_hub(tmp_path) as at:
        await at.hub.join(at.ada, "Eve")
        for run, (code, switch_off) in FLOWS.items():
            if switch_off is None:
                continue
            with subtests.test(run.__name__), pytest.MonkeyPatch.context() as patch:
                forget_provider(at)
                switch_off(patch)
                assert await run(at) != code


async def test_a_provider_whose_secret_is_missing_keeps_the_hub_from_starting(tmp_path: Path):
    settings = ProviderSettings(
        issuer="https://id.example", client_id="x", client_secret_env="NO_SUCH_SECRET"
    )
    with pytest.raises(identity_providers.ProviderSecretMissing, match="NO_SUCH_SECRET"):
        async with running_hub(tmp_path, oidc={"corp": settings}):
            pass


async def test_a_password_still_opens_the_account_of_an_identity(tmp_path: Path):
    async with provider_hub(tmp_path) as at:
        person = at.hub.person(await at.sign_in())
        change = {"newPassword": PASSWORD}
        assert (await person.request("POST", "/v1/me/password", change)).status_code == 204
        name = person.signed_in["person"]["name"]
        assert name == "corp user"
        assert (await at.hub.sign_in(name)).person_id == person.person_id

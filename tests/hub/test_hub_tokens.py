"""S4: access tokens that this Hub did not issue as they are, each refused; and each check, switched
off, lets one of them in.
"""

import base64
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from factwire.hub.limits import ACCESS_TOKEN_SECONDS
from factwire.hub.people import hub_tokens
from factwire.hub.people.hub_tokens import HubTokens
from tests.hub.hubs import START, HubPerson, RunningHub, running_hub

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.tokens.forged")]

RSA = RSAKey.generate_key(2048)
HEADER = {"alg": "HS256", "typ": "at+jwt"}


def encode(data: bytes | dict[str, Any]) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(part: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Forger:
    """Somebody with a valid token who wants another one; a few forgeries know the key, so that
    what keeps them out is what they claim.
    """

    def __init__(self, hub: RunningHub, person: HubPerson) -> None:
        self.valid: str = person.signed_in["accessToken"]
        self.header, self.payload, self.signature = self.valid.split(".")
        self.claims = decode(self.payload)
        self._key = hub.hub.services.tokens._signing

    def sign(self, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """A token with the right signature and other claims; None leaves a claim out."""
        claims = self.claims | changes
        named = {name: value for name, value in claims.items() if value is not None}
        head = self.header if header is None else encode(header)
        signing = f"{head}.{encode(named)}"
        proof = hmac.digest(self._key.raw_value, signing.encode(), "sha256")
        return f"{signing}.{encode(proof)}"

    def sign_with(self, key: Any, header: dict[str, Any]) -> str:
        return jwt.encode(header, self.claims, key, algorithms=[header["alg"]])


PUBLIC = RSA.as_pem(private=False)
OTHER = OctKey.import_key("another key of thirty-two bytes!")

FORGERIES: dict[str, Callable[[Forger], str]] = {
    "none": lambda f: f"{encode({'alg': 'none', 'typ': 'at+jwt'})}.{f.payload}.",
    "none in capitals": lambda f: f"{encode({'alg': 'None', 'typ': 'at+jwt'})}.{f.payload}.",
    "no signature": lambda f: f"{f.header}.{f.payload}.",
    "two parts": lambda f: f"{f.header}.{f.payload}",
    "four parts": lambda f: f"{f.valid}.{f.signature}",
    "five parts": lambda f: f"{f.valid}.a.b",
    "signature of another token": lambda f: f.sign(sub="x").rpartition(".")[0] + "." + f.signature,
    "cut signature": lambda f: f.valid[:-4],
    "longer signature": lambda f: f"{f.valid}AAAA",
    "empty key": lambda f: _signed(f, b""),
    "another key": lambda f: f.sign_with(OTHER, HEADER),
    "public key as a secret": lambda f: _signed(f, PUBLIC),
    "RS256": lambda f: f.sign_with(RSA, {"alg": "RS256", "typ": "at+jwt"}),
    "RS256 in the header, HS256 in truth": lambda f: f.sign({"alg": "RS256", "typ": "at+jwt"}),
    "HS512": lambda f: f.sign({"alg": "HS512", "typ": "at+jwt"}),
    "typ JWT": lambda f: f.sign({"alg": "HS256", "typ": "JWT"}),
    "no typ": lambda f: f.sign({"alg": "HS256"}),
    "typ of an identity token": lambda f: f.sign({"alg": "HS256", "typ": "id+jwt"}),
    "kid that is a path": lambda f: f.sign({**HEADER, "kid": "../../../dev/null"}),
    "kid that is SQL": lambda f: f.sign({**HEADER, "kid": "' OR 1=1 --"}),
    "jku": lambda f: f.sign({**HEADER, "jku": "http://127.0.0.1:1/keys"}),
    "x5u": lambda f: f.sign({**HEADER, "x5u": "http://127.0.0.1:1/cert"}),
    "jwk": lambda f: f.sign({**HEADER, "jwk": {"kty": "oct", "k": "AA"}}),
    "crit": lambda f: f.sign({**HEADER, "crit": ["exp"]}),
    "b64 false": lambda f: f.sign({**HEADER, "b64": False, "crit": ["b64"]}),
    "zip": lambda f: f.sign({**HEADER, "zip": "DEF"}),
    "another issuer": lambda f: f.sign(iss="hub_of_somebody_else"),
    "no issuer": lambda f: f.sign(iss=None),
    "issuers": lambda f: f.sign(iss=[f.claims["iss"]]),
    "another audience": lambda f: f.sign(aud="factwire-edge"),
    "audience in a list": lambda f: f.sign(aud=[f.claims["aud"], "other"]),
    "no audience": lambda f: f.sign(aud=None),
    "expired": lambda f: f.sign(exp=int(START)),
    "no expiry": lambda f: f.sign(exp=None),
    "expiry as text": lambda f: f.sign(exp=str(f.claims["exp"])),
    "expiry without end": lambda f: f.sign(exp=1e400),
    "expiry that is true": lambda f: f.sign(exp=True),
    "issued in the future": lambda f: f.sign(iat=int(START) + 60),
    "not valid yet": lambda f: f.sign(nbf=int(START) + 60),
    "another person's session": lambda f: f.sign(sub="usr_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "nobody": lambda f: f.sign(sub=None),
    "no session": lambda f: f.sign(sid=None),
    "session that is a list": lambda f: f.sign(sid=[f.claims["sid"]]),
    "a role of one's own": lambda f: f.sign(role="admin"),
    "unicode digits in the header": lambda f: f"\uff45{f.valid[1:]}",
    "a zero byte": lambda f: f"{f.valid}\x00",
    "white space inside": lambda f: f.valid.replace(".", ". "),
    "padding": lambda f: f"{f.header}==.{f.payload}==.{f.signature}==",
    "oversized": lambda f: f.sign(jti="x" * 5_000),
    "as long as headers may be": lambda _: "e" * 30_000,
    "a refresh token": lambda f: f"fwt_{f.claims['sid']}_" + "A" * 86,
    "nothing but dots": lambda _: "..",
}  # fmt: skip


def _signed(forger: Forger, secret: bytes) -> str:
    signing = f"{forger.header}.{forger.payload}"
    return f"{signing}.{encode(hmac.digest(secret, signing.encode(), 'sha256'))}"


async def send(hub: RunningHub, token: str) -> httpx.Response:
    header = b"Bearer " + token.encode("utf-8", "surrogateescape")
    return await hub.http.get("/v1/me", headers=[(b"authorization", header)])


async def test_no_forgery_is_taken_for_a_token(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        forger = Forger(hub, await hub.first_admin())
        assert (await send(hub, forger.valid)).status_code == 200
        assert (await send(hub, forger.sign())).status_code == 200
        accepted = [
            name
            for name, forge in FORGERIES.items()
            if (await send(hub, forge(forger))).status_code != 401
        ]
        assert len(FORGERIES) >= 50
        assert accepted == []


class _EqualToAll(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False


def _without_header_check(patch: pytest.MonkeyPatch, tokens: HubTokens) -> None:
    patch.setattr(tokens, "_header", _EqualToAll())


def _without_claims(patch: pytest.MonkeyPatch, tokens: HubTokens) -> None:
    anything = SimpleNamespace(validate=lambda _: None)  # pyright: ignore[reportUnknownLambdaType]
    patch.setattr(tokens, "_registry", lambda: anything)


def _without_signature(patch: pytest.MonkeyPatch, _: HubTokens) -> None:
    def decode_only(token: str, *_: Any, **__: Any) -> Any:
        header, payload, *_rest = token.split(".")
        return jwt.Token(decode(header), decode(payload))

    patch.setattr(hub_tokens.jwt, "decode", decode_only)


def _without_types(patch: pytest.MonkeyPatch, _: HubTokens) -> None:
    class Open(hub_tokens.AccessClaims, frozen=True, kw_only=True, forbid_unknown_fields=False):
        pass

    patch.setattr(hub_tokens, "AccessClaims", Open)


def _without_size(patch: pytest.MonkeyPatch, _: HubTokens) -> None:
    patch.setattr(hub_tokens, "ACCESS_TOKEN_CHARACTERS", 1_000_000)


CHECKS: dict[str, tuple[Callable[[pytest.MonkeyPatch, HubTokens], None], tuple[str, ...]]] = {
    "header": (_without_header_check, ("typ JWT", "no typ", "typ of an identity token", "jku")),
    "claims": (_without_claims, ("another issuer", "another audience", "expired")),
    "signature": (_without_signature, ("no signature", "another key", "public key as a secret")),
    "types": (_without_types, ("a role of one's own",)),
    "size": (_without_size, ("oversized",)),
}
"""A check → how to switch it off, and what is let in then."""


@pytest.mark.parametrize("name", CHECKS)
async def test_each_check_keeps_something_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    switch_off, let_in = CHECKS[name]
    async with running_hub(tmp_path) as hub:
        forger = Forger(hub, await hub.first_admin())
        switch_off(monkeypatch, hub.hub.services.tokens)
        found = {each: (await send(hub, FORGERIES[each](forger))).status_code for each in let_in}
        assert found == dict.fromkeys(let_in, 200)


@given(text=st.text(max_size=300) | st.binary(max_size=300).map(encode))
@settings(max_examples=500, deadline=None)
async def test_whatever_is_no_token_is_refused_without_an_error(text: str):
    tokens = HubTokens(b"k" * 32, lambda: START)
    header = tokens.issue_access("usr_1", "ses_1").partition(".")[0]
    for token in (text, f"{header}.{text}.{text}", f"{header}.{text}"):
        assert tokens.read_access(token) is None
        assert tokens.read_refresh(token) is None


@given(place=st.integers(0, 1_000), bit=st.integers(0, 7))
@settings(max_examples=300, deadline=None)
async def test_a_token_with_a_changed_character_is_refused(place: int, bit: int):
    tokens = HubTokens(b"k" * 32, lambda: START)
    session = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    for token, read in (
        (tokens.issue_access("usr_1", session), tokens.read_access),
        (tokens.first_refresh(session), tokens.read_refresh),
    ):
        index = place % len(token)
        changed = f"{token[:index]}{chr(ord(token[index]) ^ 1 << bit)}{token[index + 1 :]}"
        assert read(token) is not None
        last = index == len(token) - 1
        # The last character of an encoded digest has bits that stand for nothing.
        assert read(changed) is None or (last and read == tokens.read_access)


async def test_a_token_is_valid_for_its_time_and_its_hub_alone():
    issued = HubTokens(b"k" * 32, lambda: START)
    token = issued.issue_access("usr_1", "ses_1")
    last = HubTokens(b"k" * 32, lambda: START + ACCESS_TOKEN_SECONDS - 1)
    over = HubTokens(b"k" * 32, lambda: START + ACCESS_TOKEN_SECONDS)
    elsewhere = HubTokens(b"K" * 32, lambda: START)
    assert [each.read_access(token) is not None for each in (issued, last, over, elsewhere)] == [
        True,
        True,
        False,
        False,
    ]

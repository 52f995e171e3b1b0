"""Identity providers, by OpenID Connect: where they are, what their tokens must be.

A provider is configured by the operator; its addresses and keys are read from its issuer, by the
rules for requests to addresses that somebody else chose. An identity token counts only if it is
signed with one of those keys by an algorithm that is listed here (never a shared secret, never
none, never a key or an address that the token itself brings) and says that it was issued by this
issuer, to this Hub, for this very sign-in. Nothing in it says what somebody may do here.
"""

import asyncio
import base64
import re
from collections.abc import Callable, Mapping
from time import time
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from joserfc import jwk, jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from factwire.hub.limits import (
    PROVIDER_BYTES,
    PROVIDER_CACHE_SECONDS,
    PROVIDER_KEYS_SECONDS,
    PROVIDER_LEEWAY_SECONDS,
    PROVIDER_SECONDS,
)
from factwire.runtime.configuration import ProviderSettings
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger
from factwire.serving.outgoing_requests import OutgoingError, OutgoingHttp, OutgoingRules

KEY_TYPES: Final = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP", "Ed25519": "OKP"}
"""The algorithms that a token may be signed with → the type of key that each needs."""

_TOKEN_TYPES: Final = (None, "JWT", "jwt")
_RSA_BITS: Final = 2_048
_SUBJECT_CHARACTERS: Final = 255
_TOKEN_CHARACTERS: Final = 16_384
_OK: Final = 200
_ERROR: Final = re.compile(r"[a-z_]{1,64}")

_log: Final = logger("factwire.hub")


class ProviderMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says about itself (OpenID Connect Discovery, RFC 8414, RFC 9207)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: list[str] = msgspec.field(
        default_factory=lambda: ["client_secret_basic"]
    )
    authorization_response_iss_parameter_supported: bool = False


class _KeyList(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class _TokenAnswer(msgspec.Struct, frozen=True):
    id_token: str


class VerifiedIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is at a provider, and what else its token says."""

    issuer: str
    subject: str
    claims: dict[str, Any]


class IdentityProvider:
    """One provider; `secret` is that of the Hub as its client."""

    def __init__(
        self,
        name: str,
        settings: ProviderSettings,
        secret: str | None,
        http: OutgoingHttp,
        clock: Callable[[], float] = time,
    ) -> None:
        self.name = name
        self.settings = settings
        self._secret = secret
        self._http = http
        self._clock = clock
        self._rules = _rules_for(settings)
        self._metadata: tuple[float, ProviderMetadata] | None = None
        self._keys: tuple[float, list[dict[str, Any]]] | None = None
        self._loading = asyncio.Lock()

    @property
    def title(self) -> str:
        return self.settings.title or self.name

    async def authorization_url(self, **parameters: str) -> str:
        """Where a browser goes to sign in at the provider; raises `Problem`."""
        metadata = await self._load_metadata()
        scopes = dict.fromkeys(("openid", *self.settings.scopes))
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.settings.client_id,
                "scope": " ".join(scopes),
                **parameters,
            },
            quote_via=quote,
        )
        mark = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
        return f"{metadata.authorization_endpoint}{mark}{query}"

    async def ensure_issuer(self, iss: str | None) -> None:
        """Require that an answer comes from this provider, as far as it says so (RFC 9207)."""
        metadata = await self._load_metadata()
        says = metadata.authorization_response_iss_parameter_supported
        if iss != self.settings.issuer and (iss is not None or says):
            raise Problem(
                401, "issuer_mismatch", "the answer is not from the provider that was asked"
            )

    async def exchange_code(self, code: str, redirect_uri: str, verifier: str) -> str:
        """The identity token for a code; raises `Problem`."""
        metadata = await self._load_metadata()
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        client_id, secret = self.settings.client_id, self._secret
        if secret is None:
            body["client_id"] = client_id
        elif "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            body |= {"client_id": client_id, "client_secret": secret}
        status, answer = await self._request(
            "POST", metadata.token_endpoint, headers, urlencode(body).encode()
        )
        if status != _OK:
            self._log_refusal(status, answer)
            raise provider_refused()
        return self._decode(answer, _TokenAnswer).id_token

    async def verify_token(self, token: str, nonce: str) -> VerifiedIdentity:
        """Whom an identity token names; raises `Problem`."""
        try:
            header = _read_header(token)
            key = await self._find_key(header)
            if key is None:
                raise _token_invalid()
            found = jwt.decode(token, key, algorithms=[header["alg"]])
            self._registry(nonce).validate(found.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            _log.warning("identity_token_refused", provider=self.name, error=type(error).__name__)
            raise _token_invalid() from error
        claims = found.claims
        self._ensure_party(claims)
        subject = claims["sub"]
        if not 1 <= len(subject) <= _SUBJECT_CHARACTERS or not subject.isprintable():
            raise _token_invalid()
        return VerifiedIdentity(issuer=self.settings.issuer, subject=subject, claims=claims)

    def _registry(self, nonce: str) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=PROVIDER_LEEWAY_SECONDS,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            nonce={"essential": True, "value": nonce},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
        )

    def _ensure_party(self, claims: Mapping[str, Any]) -> None:
        """Require that a token for several was issued to this Hub and not to another of them."""
        audience: Any = claims["aud"]
        several = isinstance(audience, list) and audience != [self.settings.client_id]
        if claims.get("azp", None if several else self.settings.client_id) != (
            self.settings.client_id
        ):
            raise _token_invalid()

    async def _find_key(self, header: Mapping[str, Any]) -> jwk.Key | None:
        """The key that a token names, among those of the provider; read again where it is new."""
        key = _select_key(await self._load_keys(PROVIDER_CACHE_SECONDS), header)
        if key is None:
            key = _select_key(await self._load_keys(PROVIDER_KEYS_SECONDS), header)
        return key

    async def _load_metadata(self) -> ProviderMetadata:
        async with self._loading:
            if self._metadata is not None and self._is_recent(
                self._metadata[0], PROVIDER_CACHE_SECONDS
            ):
                return self._metadata[1]
            address = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            found = self._decode(await self._read(address), ProviderMetadata)
            if found.issuer != self.settings.issuer:
                _log.warning("provider_issuer", provider=self.name)
                raise _provider_unavailable()
            self._ensure_allowed(found.authorization_endpoint)
            self._metadata = (self._clock(), found)
            return found

    async def _load_keys(self, seconds: float) -> list[dict[str, Any]]:
        metadata = await self._load_metadata()
        async with self._loading:
            if self._keys is None or not self._is_recent(self._keys[0], seconds):
                found = self._decode(await self._read(metadata.jwks_uri), _KeyList)
                self._keys = (self._clock(), found.keys)
            return self._keys[1]

    def _is_recent(self, at: float, seconds: float) -> bool:
        return abs(self._clock() - at) < seconds

    def _ensure_allowed(self, address: str) -> None:
        try:
            self._rules.check(address)
        except OutgoingError as error:
            raise self._failure(error) from error

    async def _read(self, address: str) -> bytes:
        status, body = await self._request("GET", address, {"accept": "application/json"}, b"")
        if status != _OK:
            _log.warning("provider_status", provider=self.name, status=status)
            raise _provider_unavailable()
        return body

    async def _request(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, bytes]:
        try:
            answer = await self._http.request(
                method,
                address,
                self._rules,
                headers=headers,
                content=content,
                answer_bytes=PROVIDER_BYTES,
            )
        except OutgoingError as error:
            raise self._failure(error) from error
        return answer.status, answer.body

    def _failure(self, error: OutgoingError) -> Problem:
        _log.warning("provider_unavailable", provider=self.name, code=error.code)
        return _provider_unavailable()

    def _decode(self, body: bytes, form: type[Any]) -> Any:
        try:
            return msgspec.json.decode(body, type=form)
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("provider_answer", provider=self.name, expected=form.__name__)
            raise _provider_unavailable() from error

    def _log_refusal(self, status: int, body: bytes) -> None:
        """Log why a code was refused: the word of the protocol alone, nothing that was sent."""
        try:
            word = str(msgspec.json.decode(body, type=dict[str, Any]).get("error"))
        except (msgspec.DecodeError, ValueError):
            word = ""
        known = word if _ERROR.fullmatch(word) else "unknown"
        _log.warning("provider_refused", provider=self.name, status=status, error=known)


def _rules_for(settings: ProviderSettings) -> OutgoingRules:
    """A provider in the operator's own network is trusted by the name of its issuer alone."""
    if not settings.private_network:
        return OutgoingRules()
    issuer = urlsplit(settings.issuer)
    port = issuer.port or (443 if issuer.scheme == "https" else 80)
    return OutgoingRules(trusted=frozenset({f"{issuer.hostname}:{port}"}))


def _read_header(token: str) -> dict[str, Any]:
    """What a token says of its signature, as far as anything of it is used: `alg` and `kid`."""
    if len(token) > _TOKEN_CHARACTERS:
        raise _token_invalid()
    header = dict(jws.extract_compact(token.encode()).headers())
    if header.get("alg") not in KEY_TYPES or header.get("typ") not in _TOKEN_TYPES:
        raise _token_invalid()
    return header


def _select_key(keys: list[dict[str, Any]], header: Mapping[str, Any]) -> jwk.Key | None:
    """The one key that a token can be signed with; None where it is none, or not clear which."""
    algorithm, kid = header["alg"], header.get("kid")
    fitting = [
        each
        for each in keys
        if each.get("kty") == KEY_TYPES[algorithm]
        and each.get("use", "sig") == "sig"
        and each.get("alg", algorithm) == algorithm
        and (kid is None or each.get("kid") == kid)
    ]
    if len(fitting) != 1:
        return None
    key = jwk.import_key(fitting[0])
    weak = isinstance(key, RSAKey) and key.raw_value.key_size < _RSA_BITS
    return None if weak else key


class IdentityProviders:
    """The providers of a Hub, by name."""

    def __init__(self, providers: Mapping[str, IdentityProvider] | None = None) -> None:
        self._providers = dict(providers or {})

    def __iter__(self) -> Any:
        return iter(self._providers.values())

    def find(self, name: str) -> IdentityProvider:
        found = self._providers.get(name)
        if found is None:
            raise Problem(404, "unknown_provider", "this Hub has no provider of that name")
        return found

    def issuers(self) -> frozenset[tuple[str, str]]:
        """Names and issuers, by which people can sign in now."""
        return frozenset((each.name, each.settings.issuer) for each in self)


def build_providers(
    settings: Mapping[str, ProviderSettings],
    environment: Mapping[str, str],
    clock: Callable[[], float],
    http: OutgoingHttp | None = None,
) -> IdentityProviders:
    """The providers that are configured; raises `ProviderSecretMissing`."""
    client = http or OutgoingHttp(seconds=PROVIDER_SECONDS)
    found: dict[str, IdentityProvider] = {}
    for name, each in settings.items():
        variable = each.client_secret_env
        if variable is not None and not environment.get(variable):
            raise ProviderSecretMissing(
                f"hub.oidc.{name}.client_secret_env names {variable}, which is not set"
            )
        secret = None if variable is None else environment[variable]
        found[name] = IdentityProvider(name, each, secret, client, clock)
    return IdentityProviders(found)


class ProviderSecretMissing(Exception):
    """A provider cannot be used, because the variable with its secret is not set."""

    code = "provider_secret_missing"


def _provider_unavailable() -> Problem:
    return Problem(
        502, "provider_unavailable", "the identity provider does not answer as it should; try again"
    )


def provider_refused() -> Problem:
    return Problem(401, "provider_refused", "the identity provider did not confirm the sign-in")


def _token_invalid() -> Problem:
    return Problem(
        401, "identity_token_invalid", "the identity provider's token is not valid for this sign-in"
    )

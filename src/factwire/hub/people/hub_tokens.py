"""Tokens of a Hub, all made with the one key of its data folder.

An access token is a JWT: HS256, for this Hub alone, valid for a few minutes. Its header never
varies, so every other header is refused before anything in it is believed. A refresh token names
its session and is authenticated by the key, so that one that was replaced long ago is still known
as one of ours. The next one follows from the one before: who repeats a refresh gets the same
answer. The database has digests only.
"""

import base64
import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from factwire.hub.limits import ACCESS_TOKEN_CHARACTERS, ACCESS_TOKEN_SECONDS
from factwire.journal.atomic_files import create_file
from factwire.serving.access_control import InsecureStart, read_private_file

KEY_FILE: Final = "hub-key"
AUDIENCE: Final = "factwire-hub"
HEADER: Final[dict[str, Any]] = {"alg": "HS256", "typ": "at+jwt"}
ALGORITHMS: Final = ["HS256"]

_PREFIX: Final = "fwt_"
"""Redaction knows a generated secret by this, wherever it turns up."""

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ULID_CHARACTERS: Final = 26
_SESSION_CHARACTERS: Final = len("ses_") + _ULID_CHARACTERS
_DEVICE_CHARACTERS: Final = len("dev_") + _ULID_CHARACTERS
_SECRET_CHARACTERS: Final = 43
_REFRESH_CHARACTERS: Final = len(_PREFIX) + _SESSION_CHARACTERS + len("_") + 2 * _SECRET_CHARACTERS

Clock = Callable[[], float]
"""Seconds since 1970."""


class AccessClaims(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What an access token says: whose it is (`sub`), of which session (`sid`) and, where a device
    uses it, of which one (`did`).
    """

    iss: str
    aud: str
    sub: str
    sid: str
    jti: str
    iat: int
    exp: int
    did: str | None = None


def load_key(folder: Path) -> bytes:
    """The key of a data folder, made if there is none; raises `InsecureStart`."""
    path = folder / KEY_FILE
    stored = read_private_file(path)
    if stored is None:
        try:
            create_file(path, secrets.token_bytes(_KEY_BYTES).hex().encode() + b"\n")
        except FileExistsError:
            pass  # Another process was faster, and its key is the one that is read.
        except OSError as error:
            raise InsecureStart("file_unusable", f"cannot use {path}: {error.strerror}") from error
        return load_key(folder)
    try:
        key = bytes.fromhex(stored.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise InsecureStart(
            "key_unusable",
            f"{path} does not hold a key of {_KEY_BYTES} bytes; restore it, or delete it to have "
            "one generated, which ends all sessions",
        )
    return key


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class HubTokens:
    """Makes and reads the tokens of one Hub."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._key = key
        self._clock = clock
        self._signing = OctKey.import_key(self._derive("access", length=_KEY_BYTES))
        self.issuer = f"hub_{self._derive('issuer', length=13).hex()}"
        empty = jwt.encode(dict(HEADER), {}, self._signing, algorithms=ALGORITHMS)
        self._header = empty.partition(".")[0]

    def issue_access(self, person_id: str, session_id: str, device_id: str | None = None) -> str:
        now = int(self._clock())
        claims = AccessClaims(
            iss=self.issuer,
            aud=AUDIENCE,
            sub=person_id,
            sid=session_id,
            jti=secrets.token_urlsafe(12),
            iat=now,
            exp=now + ACCESS_TOKEN_SECONDS,
            did=device_id,
        )
        plain: dict[str, Any] = msgspec.to_builtins(claims)
        return jwt.encode(dict(HEADER), plain, self._signing, algorithms=ALGORITHMS)

    def read_access(self, token: str) -> AccessClaims | None:
        """What a token says that this Hub issued and that is still valid; None for any other."""
        if len(token) > ACCESS_TOKEN_CHARACTERS or token.partition(".")[0] != self._header:
            return None
        try:
            found = jwt.decode(token, self._signing, algorithms=ALGORITHMS)
            self._registry().validate(found.claims)
            return msgspec.convert(found.claims, AccessClaims)
        except (JoseError, ValueError):
            return None

    def _registry(self) -> jwt.JWTClaimsRegistry:
        now = int(self._clock())
        return jwt.JWTClaimsRegistry(
            now=lambda: now,
            leeway=0,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": AUDIENCE},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            sid={"essential": True},
        )

    def first_refresh(self, session_id: str) -> str:
        """The refresh token that a session begins with."""
        return self._to_refresh(session_id, secrets.token_bytes(32))

    def next_refresh(self, token: str) -> str:
        """The refresh token that replaces another, always the same."""
        return self._to_refresh(_session_in(token), self._derive("next", token))

    def read_refresh(self, token: str) -> str | None:
        """The session of a refresh token that this Hub issued at any time; None for others."""
        if len(token) != _REFRESH_CHARACTERS or not token.isascii():
            return None
        body, proof = token[:-_SECRET_CHARACTERS], token[-_SECRET_CHARACTERS:]
        if not hmac.compare_digest(self._prove(body).encode(), proof.encode()):
            return None
        return _session_in(token)

    def invitation_secret(self, invitation_id: str, created_at: int) -> str:
        """The secret of an invitation: the same for a request that is repeated."""
        return f"{_PREFIX}{_encode(self._derive('invitation', f'{invitation_id} {created_at}'))}"

    def derive_secret(self, purpose: str, text: str = "") -> bytes:
        """A secret of 32 bytes for a purpose, always the same for the same text, and stored
        nowhere.
        """
        return self._derive(f"secret {purpose}", text)

    def seal(self, purpose: str, text: str) -> str:
        """A text that only this Hub can read; for what must be stored and used again."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._sealing_key(purpose).encrypt(nonce, text.encode(), purpose.encode())
        return _encode(nonce + sealed)

    def unseal(self, purpose: str, sealed: str) -> str | None:
        """What was sealed for a purpose; None where the key of this Hub is another one now."""
        data = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        nonce, rest = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        try:
            return self._sealing_key(purpose).decrypt(nonce, rest, purpose.encode()).decode()
        except InvalidTag:
            return None

    def _sealing_key(self, purpose: str) -> AESGCM:
        return AESGCM(self._derive(f"seal {purpose}"))

    def new_device_token(self, device_id: str) -> str:
        """A token that a device keeps; it names the device, and is random for the rest."""
        return f"{_PREFIX}{device_id}_{_encode(secrets.token_bytes(32))}"

    def new_code(self) -> str:
        """A code that only programs pass on to each other."""
        return f"{_PREFIX}{_encode(secrets.token_bytes(32))}"

    def digest_user_code(self, code: str) -> str:
        """What is stored of a code that is short enough to be tried out by who has its digest."""
        return self._derive("user-code", code).hex()

    def _to_refresh(self, session_id: str, secret: bytes) -> str:
        body = f"{_PREFIX}{session_id}_{_encode(secret)}"
        return f"{body}{self._prove(body)}"

    def _prove(self, body: str) -> str:
        return _encode(self._derive("refresh", body))

    def _derive(self, purpose: str, text: str = "", *, length: int = 32) -> bytes:
        """Bytes that follow from the key; no purpose shares them with another."""
        return hmac.digest(self._key, f"{purpose}\0{text}".encode(), "sha256")[:length]


def device_in(token: str) -> str:
    """The device that a token names; whether it is that device's is for the database to say."""
    return token[len(_PREFIX) : len(_PREFIX) + _DEVICE_CHARACTERS]


def _session_in(token: str) -> str:
    return token[len(_PREFIX) : len(_PREFIX) + _SESSION_CHARACTERS]


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

"""Web Push: a message that only one browser can read, and the proof of who sends it.

RFC 8291 encrypts with the keys of the subscription, in one record of `aes128gcm` (RFC 8188); RFC
8292 signs who sends (VAPID). The push service in between sees neither title nor id. The key of this
Hub for VAPID follows from the key of its data folder, so there is nothing more to keep.
"""

import base64
import binascii
import hmac
import os
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc import jwt
from joserfc.jwk import ECKey

from factwire.hub.limits import PUSH_TOKEN_SECONDS

PUSH_HOSTS: Final = frozenset(
    {
        "fcm.googleapis.com",
        "updates.push.services.mozilla.com",
        "*.push.services.mozilla.com",
        "*.push.apple.com",
        "*.notify.windows.com",
    }
)
"""The push services of browsers; pushes go nowhere else unless the operator names more hosts."""

_CURVE: Final = ec.SECP256R1()
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_RECORD_BYTES: Final = 4_096
_SALT_BYTES: Final = 16
_AUTH_BYTES: Final = 16
_POINT_BYTES: Final = 65
_SECRET_BYTES: Final = 32
_LAST_RECORD: Final = b"\x02"

PLAINTEXT_BYTES: Final = 3_993
"""Bytes of a message for which every push service must have room (RFC 8291, section 4)."""


class PushKeysInvalid(ValueError):
    """The keys of a subscription are not what a browser makes."""


class PushKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser gives to encrypt with: its public key and a secret of 16 bytes."""

    p256dh: bytes
    auth: bytes

    @classmethod
    def parse(cls, p256dh: str, auth: str) -> "PushKeys":
        """Keys as a browser writes them; raises `PushKeysInvalid`."""
        try:
            keys = cls(p256dh=decode_base64url(p256dh), auth=decode_base64url(auth))
            _ = keys.public_key
        except (ValueError, binascii.Error) as error:
            raise PushKeysInvalid("the keys are no point of P-256 and no base64url") from error
        if len(keys.auth) != _AUTH_BYTES or len(keys.p256dh) != _POINT_BYTES:
            raise PushKeysInvalid("expected a key of 65 bytes and a secret of 16")
        return keys

    @property
    def public_key(self) -> ec.EllipticCurvePublicKey:
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, self.p256dh)


def encrypt_message(
    keys: PushKeys,
    plaintext: bytes,
    *,
    salt: bytes | None = None,
    sender: ec.EllipticCurvePrivateKey | None = None,
) -> bytes:
    """A message as the body of a request to the push service; `salt` and `sender`, a key that is
    used once, are random.
    """
    if len(plaintext) > PLAINTEXT_BYTES:
        raise ValueError(f"a push has at most {PLAINTEXT_BYTES} bytes")
    salt = salt or os.urandom(_SALT_BYTES)
    sender = sender or ec.generate_private_key(_CURVE)
    own = _encode_point(sender.public_key())
    shared = sender.exchange(ec.ECDH(), keys.public_key)
    # HKDF with outputs of one block each, in the words of RFC 8291, section 3.4.
    secret = _expand(
        _extract(keys.auth, shared), b"WebPush: info\0" + keys.p256dh + own, _SECRET_BYTES
    )
    mixed = _extract(salt, secret)
    key = _expand(mixed, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _expand(mixed, b"Content-Encoding: nonce\0", 12)
    header = salt + _RECORD_BYTES.to_bytes(4, "big") + bytes([len(own)]) + own
    return header + AESGCM(key).encrypt(nonce, plaintext + _LAST_RECORD, None)


def _extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, secret, "sha256")


def _expand(key: bytes, info: bytes, length: int) -> bytes:
    return hmac.digest(key, info + b"\x01", "sha256")[:length]


def _encode_point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


class VapidKey:
    """The key by which push services know this Hub, made from a seed."""

    def __init__(self, seed: bytes) -> None:
        private = ec.derive_private_key(int.from_bytes(seed, "big") % (_ORDER - 1) + 1, _CURVE)
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._signing = ECKey.import_key(pem)
        self.public_key = encode_base64url(_encode_point(private.public_key()))
        """As a browser takes it for `applicationServerKey`."""

    def authorize(self, origin: str, contact: str, now: int) -> str:
        """The header `Authorization` for the push service at an origin."""
        claims: dict[str, Any] = {"aud": origin, "exp": now + PUSH_TOKEN_SECONDS, "sub": contact}
        token = jwt.encode(
            {"alg": "ES256", "typ": "JWT"}, claims, self._signing, algorithms=["ES256"]
        )
        # Some servers do not read a space after the comma, although it is allowed.
        return f"vapid t={token},k={self.public_key}"


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Bytes of base64url, with or without padding; raises `ValueError`."""
    bare = text.rstrip("=")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)

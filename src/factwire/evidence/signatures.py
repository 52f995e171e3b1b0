"""Signing a manifest with Ed25519, which is deterministic: the same pack has one signature."""

import base64
import binascii
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from factwire.evidence.errors import ChangedPack, KeyProblem
from factwire.evidence.findings import Finding
from factwire.evidence.manifest import ALGORITHM, FORMAT, SIGNATURE, Signature, signed_bytes

_PRIME: Final = 2**255 - 19
_SIGN: Final = 1 << 255
_Y8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER: Final = frozenset({0, 1, _PRIME - 1, _Y8, _PRIME - _Y8})
"""The y of the eight points of Ed25519 whose order divides 8."""


def sign(manifest: bytes, key: Ed25519PrivateKey) -> Signature:
    """The signature of a manifest's bytes."""
    return Signature(
        format=FORMAT,
        algorithm=ALGORITHM,
        public_key=encode_public(key.public_key()),
        signature=base64.b64encode(key.sign(signed_bytes(manifest))).decode(),
    )


def is_signed(manifest: bytes, signature: Signature) -> bool:
    """Whether the key that a signature names made it over this manifest."""
    try:
        public = decode_public(signature.public_key)
        made = base64.b64decode(signature.signature, validate=True)
        public.verify(made, signed_bytes(manifest))
    except (InvalidSignature, KeyProblem, binascii.Error, ValueError):
        return False
    return True


def ensure_signed(manifest: bytes, signature: Signature | None) -> None:
    """Raises `ChangedPack` for a signature that is not of this manifest."""
    if signature is not None and not is_signed(manifest, signature):
        raise ChangedPack(invalid_signature(signature))


def invalid_signature(signature: Signature) -> Finding:
    message = (
        f"{SIGNATURE}: the manifest is not the one that the key {fingerprint_of(signature)} signed"
    )
    return Finding(code="signature_invalid", entry=SIGNATURE, message=message)


def encode_public(key: Ed25519PublicKey) -> str:
    """A public key as text: base64 of its 32 bytes."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def decode_public(text: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        message = "expected an Ed25519 public key as base64 of 32 bytes"
        raise KeyProblem("key_malformed", message) from error


def ensure_strong(public_key: str) -> None:
    """Raises `KeyProblem` for a key that nobody owns: with one of a small order, and all-zero bytes
    are one, anybody can make signatures that hold.
    """
    raw = decode_public(public_key).public_bytes_raw()
    y = int.from_bytes(raw, "little") & ~_SIGN
    if y % _PRIME in _SMALL_ORDER:
        message = "this public key is nobody's: anybody can make signatures that it accepts"
        raise KeyProblem("key_weak", message)


def fingerprint(public_key: str) -> str:
    """What people compare: `SHA256:` and 64 hex digits, of the key's 32 bytes."""
    return f"SHA256:{sha256(decode_public(public_key).public_bytes_raw()).hexdigest()}"


def fingerprint_of(signature: Signature) -> str:
    try:
        return fingerprint(signature.public_key)
    except KeyProblem:
        return "(no key)"

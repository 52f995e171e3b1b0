"""Signing keys, signatures, and the reader's list of trusted keys.

A manifest is signed with Ed25519, which is deterministic: the same pack has one signature. A
private key is a file that only its owner may read; one that others may read is not used, and none
is ever overwritten. A pack proves which key signed it; only the reader's own trust list says whose
key that is.
"""

import base64
import binascii
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from factwire.evidence.errors import ChangedPack, KeyProblem, VerificationFinding
from factwire.evidence.limits import NAME_CHARACTERS
from factwire.evidence.pack_format import (
    ALGORITHM,
    FORMAT,
    SIGNATURE,
    PackStruct,
    Signature,
    bytes_to_sign,
)
from factwire.journal.atomic_files import (
    create_file,
    find_exposure,
    read_regular_file,
    replace_file,
)

_PRIME: Final = 2**255 - 19
_SIGN: Final = 1 << 255
_Y8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER: Final = frozenset({0, 1, _PRIME - 1, _Y8, _PRIME - _Y8})
"""The y of the eight points of Ed25519 whose order divides 8."""


def sign_manifest(manifest: bytes, key: Ed25519PrivateKey) -> Signature:
    """The signature of a manifest's bytes."""
    return Signature(
        format=FORMAT,
        algorithm=ALGORITHM,
        public_key=encode_key(key.public_key()),
        signature=base64.b64encode(key.sign(bytes_to_sign(manifest))).decode(),
    )


def is_signed(manifest: bytes, signature: Signature) -> bool:
    """Whether the key that a signature names made it over this manifest."""
    try:
        public = decode_key(signature.public_key)
        made = base64.b64decode(signature.signature, validate=True)
        public.verify(made, bytes_to_sign(manifest))
    except (InvalidSignature, KeyProblem, binascii.Error, ValueError):
        return False
    return True


def ensure_signed(manifest: bytes, signature: Signature | None) -> None:
    """Raises `ChangedPack` for a signature that is not of this manifest."""
    if signature is not None and not is_signed(manifest, signature):
        raise ChangedPack(report_invalid_signature(signature))


def report_invalid_signature(signature: Signature) -> VerificationFinding:
    message = (
        f"{SIGNATURE}: the manifest is not the one that the key {fingerprint_of(signature)} signed"
    )
    return VerificationFinding(code="signature_invalid", entry=SIGNATURE, message=message)


def encode_key(key: Ed25519PublicKey) -> str:
    """A public key as text: base64 of its 32 bytes."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def decode_key(text: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        message = "expected an Ed25519 public key as base64 of 32 bytes"
        raise KeyProblem("key_malformed", message) from error


def ensure_strong(public_key: str) -> None:
    """Raises `KeyProblem` for a key that nobody owns: with one of a small order, and all-zero bytes
    are one, anybody can make signatures that hold.
    """
    raw = decode_key(public_key).public_bytes_raw()
    y = int.from_bytes(raw, "little") & ~_SIGN
    if y % _PRIME in _SMALL_ORDER:
        message = "this public key is not secure: anyone can create signatures that it accepts"
        raise KeyProblem("key_weak", message)


def fingerprint(public_key: str) -> str:
    """What people compare: `SHA256:` and 64 hex digits, of the key's 32 bytes."""
    return f"SHA256:{sha256(decode_key(public_key).public_bytes_raw()).hexdigest()}"


def fingerprint_of(signature: Signature) -> str:
    try:
        return fingerprint(signature.public_key)
    except KeyProblem:
        return "(no key)"


KEY_FOLDER: Final = "evidence"
KEY_FILE: Final = "signing-key.pem"
TRUST_FILE: Final = "trust.json"
TRUST_FORMAT: Final = "factwire-trust/v1"

_FOLDER_MODE: Final = 0o700
_LARGEST_KEY_FILE: Final = 1024 * 1024
_LARGEST_TRUST_FILE: Final = 64 * 1024 * 1024


class TrustedKey(PackStruct, frozen=True):
    """A public key and the name that the reader knows it by."""

    name: str
    public_key: str


class TrustList(PackStruct, frozen=True):
    """The keys that a reader trusts."""

    format: str = TRUST_FORMAT
    keys: tuple[TrustedKey, ...] = ()

    def name_of(self, public_key: str) -> str | None:
        """Whose key it is; None where nobody said."""
        wanted = fingerprint(public_key)
        existing = (key for key in self.keys if fingerprint(key.public_key) == wanted)
        return next((key.name for key in existing), None)


def key_path(data: Path) -> Path:
    """Where the signing key of a data folder is."""
    return data / KEY_FOLDER / KEY_FILE


def trust_path(data: Path) -> Path:
    """Where the trust list of a data folder is."""
    return data / KEY_FOLDER / TRUST_FILE


def create_key(path: Path) -> Ed25519PrivateKey:
    """Make a new key in a new file; raises `KeyProblem` where there is one."""
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    try:
        create_file(path, text)
    except FileExistsError:
        message = f"{path} already exists and is never overwritten; move it first"
        raise KeyProblem("key_exists", message) from None
    return key


def load_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file; raises `KeyProblem` for what is none, or what others may read."""
    try:
        data, about = read_regular_file(path, _LARGEST_KEY_FILE)
    except FileNotFoundError:
        message = f"no signing key at {path}; create one with `factwire evidence key`"
        raise KeyProblem("key_missing", message) from None
    except IsADirectoryError as error:
        raise KeyProblem("key_unreadable", f"{path} is a folder; name a file") from error
    except OSError as error:
        message = f"cannot read the signing key {path}: {error.strerror}"
        raise KeyProblem("key_unreadable", message) from error
    exposure = find_exposure(about)
    if exposure is not None:
        message = f"{path} {exposure}; restrict it with chmod 600"
        raise KeyProblem("key_exposed", message)
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        message = (
            f"{path} does not contain a PEM private key; restore it from a backup, or move it away "
            "and create a new one"
        )
        raise KeyProblem("key_malformed", message) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyProblem("key_malformed", f"{path} contains a key that is not an Ed25519 key")
    return key


def encode_public_key(key: Ed25519PrivateKey) -> str:
    """The public half of a key, as people pass it on."""
    return encode_key(key.public_key())


def load_trust(path: Path) -> TrustList:
    """The trust list in a file; every key in it has to be one."""
    try:
        data, _ = read_regular_file(path, _LARGEST_TRUST_FILE)
        found = msgspec.json.decode(data, type=TrustList)
        for key in found.keys:
            ensure_strong(key.public_key)
    except FileNotFoundError:
        raise KeyProblem("trust_malformed", f"no trust list at {path}") from None
    except IsADirectoryError as error:
        raise KeyProblem("trust_malformed", f"{path} is a folder; name a file") from error
    except OSError as error:
        message = f"cannot read the trust list {path}: {error.strerror}"
        raise KeyProblem("trust_malformed", message) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyProblem) as error:
        message = f"{path} is not a trust list of names and public keys: {error}"
        raise KeyProblem("trust_malformed", message) from error
    if found.format != TRUST_FORMAT:
        raise KeyProblem("trust_malformed", f"{path}: expected the format {TRUST_FORMAT}")
    return found


def load_known_trust(data: Path) -> TrustList:
    """The trust list of a data folder, and its own key; empty where there is neither."""
    path, own = trust_path(data), key_path(data)
    listed = load_trust(path).keys if path.exists() else ()
    if not own.exists():
        return TrustList(keys=listed)
    mine = TrustedKey(name="this machine", public_key=encode_public_key(load_key(own)))
    return TrustList(keys=(*listed, mine))


def add_trusted_key(path: Path, name: str, public_key: str) -> TrustList:
    """Add a key to a trust list, under a name that it does not have yet."""
    _ensure_name(name)
    ensure_strong(public_key)
    existing = load_trust(path) if path.exists() else TrustList()
    if any(key.name == name for key in existing.keys):
        message = f"the list already has a key called {name!r}; choose another name"
        raise KeyProblem("key_exists", message)
    listed = existing.name_of(public_key)
    if listed is not None:
        raise KeyProblem("key_exists", f"the list already has this key, under the name {listed!r}")
    added = TrustList(keys=(*existing.keys, TrustedKey(name=name, public_key=public_key)))
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    replace_file(path, msgspec.json.format(msgspec.json.encode(added)) + b"\n")
    return added


def _ensure_name(name: str) -> None:
    """A name is what `verify` prints beside a signature: one line that a person can read."""
    if not name.strip() or not name.isprintable() or len(name) > NAME_CHARACTERS:
        message = f"expected a name of 1 to {NAME_CHARACTERS} visible characters on one line"
        raise KeyProblem("name_malformed", message)


def build_trust_list(keys: Mapping[str, str]) -> TrustList:
    """A trust list from names and public keys."""
    return TrustList(
        keys=tuple(TrustedKey(name=name, public_key=key) for name, key in keys.items())
    )

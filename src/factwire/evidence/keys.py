"""Signing keys, and whose they are.

A private key is a file that only its owner may read; one that others may read is not used, and none
is ever written over. A trust list maps public keys to names: a pack proves which key signed it, and
only the reader's own list says who that is.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from factwire.evidence.errors import KeyProblem
from factwire.evidence.limits import NAME_CHARACTERS
from factwire.evidence.manifest import Wire
from factwire.evidence.signatures import (
    encode_public,
    ensure_strong,
    fingerprint,
)

FOLDER: Final = "evidence"
KEY_FILE: Final = "signing-key.pem"
TRUST_FILE: Final = "trust.json"
TRUST_FORMAT: Final = "factwire-trust/v1"

_PRIVATE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_LARGEST: Final = 1024 * 1024


class TrustedKey(Wire, frozen=True):
    """A public key and the name that the reader knows it by."""

    name: str
    public_key: str


class TrustList(Wire, frozen=True):
    """The keys that a reader trusts."""

    format: str = TRUST_FORMAT
    keys: tuple[TrustedKey, ...] = ()

    def name_of(self, public_key: str) -> str | None:
        """Whose key it is; None where nobody said."""
        wanted = fingerprint(public_key)
        known = (key for key in self.keys if fingerprint(key.public_key) == wanted)
        return next((key.name for key in known), None)


def key_path(data: Path) -> Path:
    """Where the signing key of a data folder is."""
    return data / FOLDER / KEY_FILE


def trust_path(data: Path) -> Path:
    """Where the trust list of a data folder is."""
    return data / FOLDER / TRUST_FILE


def create_key(path: Path) -> Ed25519PrivateKey:
    """Make a new key in a new file; raises `KeyProblem` where there is one."""
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    except FileExistsError:
        message = f"{path} is there already and is never written over; move it away first"
        raise KeyProblem("key_exists", message) from None
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    return key


def load_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file; raises `KeyProblem` for what is none, or what others may read."""
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()[:_LARGEST]
    except FileNotFoundError:
        message = f"there is no signing key at {path}; make one with `factwire evidence key`"
        raise KeyProblem("key_missing", message) from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        message = f"{path} can be read by others; take their rights away with chmod 600"
        raise KeyProblem("key_exposed", message)
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError) as error:
        raise KeyProblem("key_malformed", f"{path} holds no PEM private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyProblem("key_malformed", f"{path} holds a key of another kind than Ed25519")
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """The public half of a key, as people pass it on."""
    return encode_public(key.public_key())


def load_trust(path: Path) -> TrustList:
    """The trust list in a file; every key in it has to be one."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=TrustList)
        for key in found.keys:
            ensure_strong(key.public_key)
    except FileNotFoundError:
        raise KeyProblem("trust_malformed", f"there is no trust list at {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyProblem) as error:
        message = f"{path} is no trust list of names and public keys: {error}"
        raise KeyProblem("trust_malformed", message) from error
    if found.format != TRUST_FORMAT:
        raise KeyProblem("trust_malformed", f"{path}: expected the format {TRUST_FORMAT}")
    return found


def known_trust(data: Path) -> TrustList:
    """The trust list of a data folder, and its own key; empty where there is neither."""
    path, own = trust_path(data), key_path(data)
    listed = load_trust(path).keys if path.exists() else ()
    if not own.exists():
        return TrustList(keys=listed)
    mine = TrustedKey(name="this machine", public_key=public_text(load_key(own)))
    return TrustList(keys=(*listed, mine))


def trust(path: Path, name: str, public_key: str) -> TrustList:
    """Add a key to a trust list, under a name that it does not have yet."""
    _ensure_name(name)
    ensure_strong(public_key)
    known = load_trust(path) if path.exists() else TrustList()
    if any(key.name == name for key in known.keys):
        message = f"the list has a key called {name!r} already; take another name"
        raise KeyProblem("key_exists", message)
    listed = known.name_of(public_key)
    if listed is not None:
        raise KeyProblem("key_exists", f"the list has this key already, as that of {listed!r}")
    added = TrustList(keys=(*known.keys, TrustedKey(name=name, public_key=public_key)))
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    partial = path.with_name(f".{path.name}.new")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(added)) + b"\n")
    partial.replace(path)
    return added


def _ensure_name(name: str) -> None:
    """A name is what `verify` prints beside a signature: one line that a person can read."""
    if not name.strip() or not name.isprintable() or len(name) > NAME_CHARACTERS:
        message = f"expected a name of 1 to {NAME_CHARACTERS} visible characters on one line"
        raise KeyProblem("name_malformed", message)


def trusting(keys: Mapping[str, str]) -> TrustList:
    """A trust list from names and public keys."""
    return TrustList(
        keys=tuple(TrustedKey(name=name, public_key=key) for name, key in keys.items())
    )

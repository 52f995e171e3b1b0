"""Identity: which runtime this is, whether another one still lives, and a seal for its own word.

A journal may be shared by several machines, and by several processes of one. A turn that another
runtime runs must not be closed here, so a runtime claims what it starts by its name: that of its
data folder, and that of the process. A process holds a lock for as long as it lives; of a claim of
the same data folder whose lock nobody holds, the holder is gone. Of other machines nothing is
known, so their claims stand.

An agent may emit any fact, also one that says what a person allowed. A grant counts only with a
seal that needs the key, which lies in the data folder, for its user alone.
"""

import fcntl
import hmac
import os
import re
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from factwire.journal.atomic_files import create_file, find_exposure, read_regular_file
from factwire.runtime.errors import IdentityUnusable
from factwire.runtime.mint import new_id

CLAIM: Final = "instance"
"""The field of a payload that names the runtime to which a turn or a queue belongs."""

_FILE: Final = "identity.json"
_LOCKS: Final = "instances"
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_KEY_BYTES: Final = 32
_NAME: Final = re.compile(r"rt_[0-9A-Z]{26}")
_LARGEST: Final = 64 * 1024
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a data folder keeps."""

    name: str
    key: bytes


class Identity:
    """A runtime without a data folder claims nothing; its seals last as long as it does."""

    def __init__(self, kept: _Kept | None = None, folder: Path | None = None) -> None:
        self._name = None if kept is None else kept.name
        self._key = secrets.token_bytes(_KEY_BYTES) if kept is None else kept.key
        self._folder = folder
        self._process = secrets.token_hex(8)
        self._lock: int | None = None
        if folder is not None:
            self._lock = _take_lock(folder / _LOCKS, self._process)

    @property
    def instance(self) -> str | None:
        """What this runtime claims turns by."""
        return None if self._name is None else f"{self._name}:{self._process}"

    def claim(self) -> dict[str, str]:
        return {} if self.instance is None else {CLAIM: self.instance}

    def is_other(self, claimed: object) -> bool:
        """Whether a claim is that of another runtime that may live; what nobody claims is
        anybody's.
        """
        if not isinstance(claimed, str) or claimed == self.instance:
            return False
        name, _, process = claimed.partition(":")
        return name != self._name or self._folder is None or _is_alive(self._folder, process)

    def seal(self, words: tuple[str, ...]) -> str:
        """What only a holder of the key can say about these words."""
        return hmac.new(self._key, msgspec.json.encode(words), sha256).hexdigest()

    def is_sealed(self, words: tuple[str, ...], seal: str) -> bool:
        expected = seal.encode("utf-8", "replace")
        return hmac.compare_digest(self.seal(words).encode(), expected)

    def release(self) -> None:
        """This runtime is over; what it claims is anybody's on this machine."""
        if self._lock is not None and self._folder is not None:
            (self._folder / _LOCKS / self._process).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def open_identity(data: str | Path) -> Identity:
    """A new runtime of a data folder, whose name and key are made the first time."""
    folder = Path(data)
    (folder / _LOCKS).mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    _sweep(folder)
    return Identity(_load_or_create(folder), folder)


def _load_or_create(folder: Path) -> _Kept:
    path = folder / _FILE
    if not path.exists():
        made = _Kept(name=new_id("rt"), key=secrets.token_bytes(_KEY_BYTES))
        # Of two that make one at once, the first counts for both.
        with suppress(FileExistsError):
            create_file(path, msgspec.json.encode(made))
    try:
        data, about = read_regular_file(path, _LARGEST)
    except OSError as error:
        raise IdentityUnusable(path, f"it cannot be read: {error.strerror}") from error
    exposure = find_exposure(about)
    if exposure is not None:
        raise IdentityUnusable(path, f"it {exposure}, and its key allows to forge approvals")
    try:
        kept = msgspec.json.decode(data, type=_Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IdentityUnusable(path, f"it is damaged: {error}") from error
    if len(kept.key) != _KEY_BYTES or not _NAME.fullmatch(kept.name):
        raise IdentityUnusable(path, "it is damaged: not a name and a key")
    return kept


def _take_lock(folder: Path, process: str) -> int:
    """A lock that is held before it has its name, so that nobody takes it for a dead one's."""
    unnamed = folder / f".{process}"
    file = os.open(unnamed, _NEW, _FILE_MODE)
    fcntl.flock(file, fcntl.LOCK_EX)
    unnamed.rename(folder / process)
    return file


def _is_alive(folder: Path, process: str) -> bool:
    if not process.isalnum():
        return True
    try:
        file = os.open(folder / _LOCKS / process, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _sweep(folder: Path) -> None:
    """Take away the locks of those that died."""
    for path in (folder / _LOCKS).iterdir():
        if path.name.isalnum() and not _is_alive(folder, path.name):
            path.unlink(missing_ok=True)

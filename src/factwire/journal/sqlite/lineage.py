"""Telling a journal from an older copy of itself.

A copy is another file (device and inode differ from those noted inside), or the same file with
older content (the mark beside it is ahead of the chain, or not on it). Either mints a new epoch, so
that no cursor of the other life matches by accident. A mark that lags behind is fine: it is written
after each commit without a sync, so a power cut may take it back.
"""

import os
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec

_SUM: Final = 16


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """How far the journal had come, and the chain's hash there."""

    seq: int
    hash: bytes


class MarkFile:
    """`PATH-mark`, rewritten in place."""

    def __init__(self, path: str) -> None:
        self._file = os.open(f"{path}-mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, mark: Mark) -> None:
        body = msgspec.msgpack.encode(mark)
        # Without this write the mark lags behind, which is allowed; the commit stands either way.
        with suppress(OSError):
            os.pwrite(self._file, sha256(body).digest()[:_SUM] + body, 0)

    def close(self) -> None:
        os.close(self._file)


def read_mark(path: str) -> Mark | None:
    """The mark beside a journal; None where there is none, or one that a power cut tore."""
    try:
        with open(f"{path}-mark", "rb") as file:  # noqa: PTH123
            content = file.read(256)
    except FileNotFoundError:
        return None
    for end in range(_SUM + 1, len(content) + 1):
        if sha256(content[_SUM:end]).digest()[:_SUM] == content[:_SUM]:
            return msgspec.msgpack.decode(content[_SUM:end], type=Mark)
    return None


def file_identity(path: str) -> str:
    """What makes this file another one than a copy of it."""
    found = os.stat(path)  # noqa: PTH116
    return f"{found.st_dev}:{found.st_ino}"

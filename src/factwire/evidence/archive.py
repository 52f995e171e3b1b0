"""Writing the archive: by stream, in constant memory, and the same bytes every time.

Every time stamp is zip's first moment, entries come in the order in which they are written, and no
byte is written twice, so that the target may be a pipe. The archive's comment is a seal: the hash
of all bytes before it, which tells an untouched archive from one that another tool packed.
"""

import zipfile
from hashlib import sha256
from typing import IO, BinaryIO, Final, cast

from factwire.evidence.container import SEAL_BYTES, seal
from factwire.evidence.manifest import Entry, Sums

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_MODE: Final = 0o100644 << 16
_PIECE: Final = 64 * 1024
_NO_SEAL_YET: Final = b" " * SEAL_BYTES


class Archive:
    """An archive that is being written; `entries` are those that are complete."""

    def __init__(self, target: BinaryIO, *, stored: bool) -> None:
        self.entries: list[Entry] = []
        self._output = _Sealed(target)
        self._method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        # Without a way back in its target, an archive is written from front to end.
        self._zip = zipfile.ZipFile(cast("IO[bytes]", self._output), "w", self._method)
        self._zip.comment = _NO_SEAL_YET
        self._stream: IO[bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._output.size

    def begin(self, name: str) -> "EntryWriter":
        """Begin an entry, to be closed before the next one begins."""
        info = zipfile.ZipInfo(name, _EPOCH)
        info.compress_type = self._method
        info.create_system = _UNIX
        info.external_attr = _MODE
        # The size is not known before the end, so that every entry is one that may get large.
        self._stream = self._zip.open(info, "w", force_zip64=True)
        return EntryWriter(name, self._stream, self.entries)

    def put(self, name: str, data: bytes) -> None:
        """Write a small entry."""
        entry = self.begin(name)
        entry.write(data)
        entry.close()

    def close(self) -> None:
        """Write the directory and the seal."""
        self._zip.close()
        self._output.close()

    def abandon(self) -> None:
        """Leave the archive unfinished, because what should be in it cannot be had.

        An open entry and the directory write their ends when they are closed, and a stream that is
        left open is closed by whoever collects it; so all are closed here, and nothing of it
        reaches the target.
        """
        self._output.cut()
        if self._stream is not None:
            self._stream.close()
        self._zip.close()


class EntryWriter:
    """One entry, hashed while it is written."""

    def __init__(self, name: str, stream: IO[bytes], done: list[Entry]) -> None:
        self._name = name
        self._stream = stream
        self._done = done
        self._sums = Sums()
        self._held = bytearray()

    def write(self, data: bytes) -> None:
        self._held += data
        if len(self._held) >= _PIECE:
            self._pass_on(len(self._held) // _PIECE * _PIECE)

    def close(self) -> None:
        self._pass_on(len(self._held))
        self._stream.close()
        self._done.append(self._sums.entry(self._name))

    def _pass_on(self, size: int) -> None:
        """Hand on what is held, in pieces that do not depend on how it came."""
        for at in range(0, size, _PIECE):
            piece = bytes(self._held[at : min(at + _PIECE, size)])
            self._sums.update(piece)
            self._stream.write(piece)
        del self._held[:size]


class _Sealed:
    """Passes bytes on, except for the last ones, in whose place it puts the seal."""

    def __init__(self, target: BinaryIO) -> None:
        self.size = 0
        self._target = target
        self._digest = sha256()
        self._tail = b""
        self._is_cut = False

    def cut(self) -> None:
        """Take what comes, and pass on nothing more."""
        self._is_cut = True

    def write(self, data: bytes) -> int:
        if self._is_cut:
            return len(data)
        both = self._tail + bytes(data)
        ready, self._tail = both[:-SEAL_BYTES], both[-SEAL_BYTES:]
        self._digest.update(ready)
        self._target.write(ready)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        if not self._is_cut:
            self._target.flush()

    def close(self) -> None:
        self._target.write(seal(self._digest.digest()))
        self._target.flush()

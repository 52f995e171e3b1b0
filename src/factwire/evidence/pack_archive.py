"""The zip archive around a pack: written as a stream, and read as if an enemy had made it.

Reading: nothing is unpacked to disk, no name is used as a path, and no entry is read past the size
that the manifest gives it. Times, order and compression prove nothing; only contents do. Writing:
constant memory and the same bytes every time; no byte is written twice, so the target may be a
pipe. The archive's comment is a seal: the hash of all bytes before it.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import PurePosixPath, PureWindowsPath
from typing import IO, BinaryIO, Final, Literal, cast

from factwire.evidence import errors
from factwire.evidence.errors import (
    ChangedPack,
    HostilePack,
    MalformedPack,
    PackTooBig,
    UnreadablePack,
)
from factwire.evidence.limits import (
    BLOCK_BYTES,
    DIRECTORY_BYTES,
    ENTRIES,
    ENTRY_BYTES,
    RATIO,
    UNSUSPICIOUS_BYTES,
)
from factwire.evidence.pack_format import FORMAT, Entry, EntryHasher

ArchiveState = Literal["as_written", "repacked", "changed"]
"""`as_written`: every byte is the one that Factwire wrote. `repacked`: by another tool, which
leaves no seal. `changed`: there is a seal, and bytes around it were changed."""

SEAL: Final = f"{FORMAT} ".encode()
SEAL_BYTES: Final = len(SEAL) + 64

_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What is read: of the others, a few bytes expand without a bound before the size is looked at."""

_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_HEADER: Final = 30
_DIRECTORY_ENTRY: Final = b"PK\x01\x02"
_PRINTABLE: Final = 0x20

DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What the reader of an archive raises when it meets bytes that nobody wrote."""


class ArchiveReader:
    """An open archive whose directory has been found harmless."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = stream.seek(0, 2)
        self._archive = _open_zip(stream, self.size)
        self._infos = _check_directory(self._archive.infolist(), self.size)

    def close(self) -> None:
        self._archive.close()

    def names(self) -> list[str]:
        """Entries in the order of the archive's directory, without folders."""
        return list(self._infos)

    def size_of(self, name: str) -> int:
        return self._infos[name].file_size

    def is_stored(self, name: str) -> bool:
        """Whether an entry is not compressed."""
        return self._infos[name].compress_type == zipfile.ZIP_STORED

    def read_document(self, name: str, limit: int) -> bytes | None:
        """A small entry as it is, unverified; None where there is none."""
        info = self._infos.get(name)
        if info is None:
            return None
        if info.file_size > limit:
            message = f"{name}: expected at most {limit} bytes, got {info.file_size}"
            raise PackTooBig(message)
        with _translate_damage(name), self._archive.open(info) as stream:
            # Asked for more, a reader expands as much before it looks at the size that is claimed.
            return stream.read(info.file_size + 1)

    def read_blocks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of an entry, each block handed out once its hash has been found right.

        Raises `ChangedPack` with the first range that is not as the manifest says.
        """
        info = self._infos.get(entry.name)
        if info is None:
            raise ChangedPack(errors.report_missing(entry.name, entry.bytes))
        at = 0
        with self._open_entry(info, entry) as stream:
            for expected in entry.hashes():
                wanted = min(BLOCK_BYTES, entry.bytes - at)
                block = _read_exactly(stream, wanted, entry.name, at)
                if len(block) < wanted:
                    # Bytes may be gone from the middle: what is left of a block proves nothing.
                    gone = entry.bytes - at - len(block)
                    raise ChangedPack(errors.report_cut(entry.name, at, entry.bytes - 1, gone))
                if not matches(block, expected):
                    raise ChangedPack(errors.report_changed(entry.name, at, at + wanted - 1))
                yield block
                at += wanted
            if _read_exactly(stream, 1, entry.name, at):
                raise ChangedPack(errors.report_extended(entry.name, entry.bytes))

    def state(self) -> ArchiveState:
        """Whether the archive itself is untouched."""
        if self.size < SEAL_BYTES:
            return "repacked"
        self._stream.seek(self.size - SEAL_BYTES)
        seal = self._stream.read(SEAL_BYTES)
        if not self._archive.comment and not seal.startswith(SEAL):
            return "repacked"
        return "as_written" if seal == _read_seal(self._stream, self.size) else "changed"

    @contextmanager
    def _open_entry(self, info: zipfile.ZipInfo, entry: Entry) -> Generator[IO[bytes]]:
        try:
            stream = self._archive.open(info)
        except DAMAGE as error:
            last = max(0, entry.bytes - 1)
            raise ChangedPack(errors.report_changed(entry.name, 0, last)) from error
        with stream:
            yield stream


def matches(block: bytes, expected: str) -> bool:
    """Whether bytes are those that a hash was taken of."""
    return sha256(block).hexdigest() == expected


def build_seal(digest: bytes) -> bytes:
    """The archive's comment: the hash of all bytes before it."""
    return SEAL + digest.hex().encode()


def is_archive(start: bytes) -> bool:
    """Whether a file that begins like this is meant as an archive."""
    return start.startswith(_MAGIC)


def _read_seal(stream: BinaryIO, size: int) -> bytes:
    stream.seek(0)
    digest, left = sha256(), size - SEAL_BYTES
    while left > 0 and (data := stream.read(min(left, 1024 * 1024))):
        digest.update(data)
        left -= len(data)
    return build_seal(digest.digest())


class _CountingStream:
    """Counts the entries of a directory before its reader makes an object of each, and whatever the
    archive claims that there are.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        if size > DIRECTORY_BYTES:
            raise PackTooBig(f"expected a directory of at most {DIRECTORY_BYTES} bytes, got {size}")
        data = self._stream.read(size)
        if (count := data.count(_DIRECTORY_ENTRY)) > ENTRIES:
            raise PackTooBig(f"expected at most {ENTRIES} entries, got {count}")
        return data


def _open_zip(stream: BinaryIO, size: int) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(cast("IO[bytes]", _CountingStream(stream)))
    except (*DAMAGE, OSError) as error:
        stream.seek(0)
        if not is_archive(stream.read(4)):
            message = "expected a zip archive, got something else; a pack is a .factpack.zip file"
            raise UnreadablePack(message, code="pack_not_zip") from error
        message = (
            f"the archive's directory cannot be read ({error}): it is truncated at byte {size}"
        )
        raise UnreadablePack(f"{message}, or damaged there", code="pack_truncated") from error


def _check_directory(infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    _ensure_no_bomb(infos, size)
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        _ensure_harmless(info)
        if info.filename in found:
            message = f"{info.filename!r} occurs twice, so it is ambiguous"
            raise HostilePack(message, code="pack_duplicate_entry")
        found[info.filename] = info
    _ensure_no_overlap(infos)
    return {name: info for name, info in found.items() if not info.is_dir()}


def _ensure_harmless(info: zipfile.ZipInfo) -> None:
    name = info.orig_filename
    if not _is_safe(name):
        printable = ascii(name[:80])
        raise HostilePack(
            f"{printable} is not a valid name for an entry of a pack", code="pack_unsafe_name"
        )
    if stat.S_ISLNK(info.external_attr >> 16):
        raise HostilePack(f"{name!r} is a symbolic link", code="pack_symlink")
    if info.flag_bits & _ENCRYPTED:
        raise HostilePack(
            f"{name!r} is encrypted; packs are never encrypted", code="pack_encrypted"
        )
    if info.compress_type not in _METHODS:
        message = f"{name!r} uses a compression method that is not supported ({info.compress_type})"
        raise UnreadablePack(
            f"{message}; only stored and deflated entries are read",
            code="pack_compression_unknown",
        )
    if info.file_size > ENTRY_BYTES:
        raise PackTooBig(
            f"{name!r} claims to have {info.file_size} bytes; at most {ENTRY_BYTES} are allowed"
        )


def _is_safe(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return (
        bool(name)
        and "\\" not in name
        and ".." not in parts
        and not name.startswith("/")
        and not PureWindowsPath(name).drive
        and all(ord(character) >= _PRINTABLE for character in name)
    )


def _ensure_no_overlap(infos: list[zipfile.ZipInfo]) -> None:
    """Entries that share bytes let a small archive hold endless contents."""
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < 0:
            raise UnreadablePack(f"{info.filename!r} starts before the beginning of the archive")
        if info.header_offset < end:
            message = f"{info.filename!r} shares its bytes with another entry"
            raise HostilePack(message, code="pack_overlapping")
        end = info.header_offset + _HEADER + len(info.orig_filename) + info.compress_size


def _ensure_no_bomb(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Neither an entry nor all of them together hold more than their bytes can. Reading stops at
    the size that is claimed, so that whoever claims less than there is gains nothing.
    """
    for info in infos:
        _ensure_ratio(info.file_size, info.compress_size, f"{info.filename!r}, an entry")
    _ensure_ratio(sum(info.file_size for info in infos), size, "an archive")


def _ensure_ratio(contents: int, size: int, what: str) -> None:
    if contents > max(UNSUSPICIOUS_BYTES, RATIO * size):
        message = f"{what} of {size} bytes claims to contain {contents} bytes"
        raise HostilePack(message, code="pack_bomb")


@contextmanager
def _translate_damage(name: str) -> Generator[None]:
    try:
        yield
    except DAMAGE as error:
        message = f"{name}: the entry cannot be read: {error}"
        raise MalformedPack(message, code="entry_malformed") from error


def _read_exactly(stream: IO[bytes], size: int, name: str, at: int) -> bytes:
    """`size` bytes, or fewer at the end of the entry."""
    pieces: list[bytes] = []
    left = size
    try:
        while left and (piece := stream.read(left)):
            pieces.append(piece)
            left -= len(piece)
    except (*DAMAGE, OSError) as error:
        raise ChangedPack(errors.report_changed(name, at, at + size - 1)) from error
    return b"".join(pieces)


_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_MODE: Final = 0o100644 << 16
_PIECE: Final = 64 * 1024
_NO_SEAL_YET: Final = b" " * SEAL_BYTES


class ArchiveWriter:
    """An archive that is being written; `entries` are those that are complete."""

    def __init__(self, target: BinaryIO, *, stored: bool) -> None:
        self.entries: list[Entry] = []
        self._output = _SealedStream(target)
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
        self._output.discard_rest()
        if self._stream is not None:
            self._stream.close()
        self._zip.close()


class EntryWriter:
    """One entry, hashed while it is written."""

    def __init__(self, name: str, stream: IO[bytes], done: list[Entry]) -> None:
        self._name = name
        self._stream = stream
        self._done = done
        self._sums = EntryHasher()
        self._held = bytearray()

    def write(self, data: bytes) -> None:
        self._held += data
        if len(self._held) >= _PIECE:
            self._flush_pieces(len(self._held) // _PIECE * _PIECE)

    def close(self) -> None:
        self._flush_pieces(len(self._held))
        self._stream.close()
        self._done.append(self._sums.entry(self._name))

    def _flush_pieces(self, size: int) -> None:
        """Hand on what is held, in pieces that do not depend on how it came."""
        for at in range(0, size, _PIECE):
            piece = bytes(self._held[at : min(at + _PIECE, size)])
            self._sums.update(piece)
            self._stream.write(piece)
        del self._held[:size]


class _SealedStream:
    """Passes bytes on, except for the last ones, in whose place it puts the seal."""

    def __init__(self, target: BinaryIO) -> None:
        self.size = 0
        self._target = target
        self._digest = sha256()
        self._tail = b""
        self._is_cut = False

    def discard_rest(self) -> None:
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
        self._target.write(build_seal(self._digest.digest()))
        self._target.flush()

"""The archive around a pack, read as if an enemy had made it.

Nothing is ever unpacked to disk, no name is used as a path, and no entry is read past the size that
the manifest gives it. What the archive says of itself (times, order, compression) proves nothing;
only contents do. Any zip tool may therefore pack the same contents anew.
"""

import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import PurePosixPath, PureWindowsPath
from typing import IO, BinaryIO, Final, Literal

from factwire.evidence import findings
from factwire.evidence.errors import (
    ChangedPack,
    HostilePack,
    MalformedPack,
    PackTooBig,
    UnreadablePack,
)
from factwire.evidence.limits import (
    BLOCK_BYTES,
    ENTRIES,
    ENTRY_BYTES,
    RATIO,
    UNSUSPICIOUS_BYTES,
)
from factwire.evidence.manifest import FORMAT, Entry

ContainerState = Literal["as_written", "repacked", "changed"]
"""`as_written`: every byte is the one that Factwire wrote. `repacked`: by another tool, which
leaves no seal. `changed`: there is a seal, and bytes around it were changed."""

SEAL: Final = f"{FORMAT} ".encode()
SEAL_BYTES: Final = len(SEAL) + 64

_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS: Final = (
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
)
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_HEADER: Final = 30
_PRINTABLE: Final = 0x20

DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What the reader of an archive raises when it meets bytes that nobody wrote."""


class Container:
    """An open archive whose directory has been found harmless."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = stream.seek(0, 2)
        self._archive = _opened(stream, self.size)
        self._infos = _checked(self._archive.infolist(), self.size)

    def close(self) -> None:
        self._archive.close()

    def names(self) -> list[str]:
        """Entries in the order of the archive's directory, without folders."""
        return list(self._infos)

    def size_of(self, name: str) -> int:
        return self._infos[name].file_size

    def document(self, name: str, limit: int) -> bytes | None:
        """A small entry as it is, unverified; None where there is none."""
        info = self._infos.get(name)
        if info is None:
            return None
        if info.file_size > limit:
            message = f"{name}: expected at most {limit} bytes, got {info.file_size}"
            raise PackTooBig(message)
        with _entry_readable(name), self._archive.open(info) as stream:
            return stream.read(limit + 1)

    def blocks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of an entry, each block handed out once its hash has been found right.

        Raises `ChangedPack` with the first range that is not as the manifest says.
        """
        info = self._infos.get(entry.name)
        if info is None:
            raise ChangedPack(findings.missing(entry.name, entry.bytes))
        at = 0
        with self._opened_entry(info, entry) as stream:
            for expected in entry.hashes():
                wanted = min(BLOCK_BYTES, entry.bytes - at)
                block = _exactly(stream, wanted, entry.name, at)
                if len(block) < wanted:
                    # Bytes may be gone from the middle: what is left of a block proves nothing.
                    gone = entry.bytes - at - len(block)
                    raise ChangedPack(findings.cut(entry.name, at, entry.bytes - 1, gone))
                if not matches(block, expected):
                    raise ChangedPack(findings.changed(entry.name, at, at + wanted - 1))
                yield block
                at += wanted
            if _exactly(stream, 1, entry.name, at):
                raise ChangedPack(findings.extended(entry.name, entry.bytes))

    def state(self) -> ContainerState:
        """Whether the archive itself is untouched."""
        if self.size < SEAL_BYTES:
            return "repacked"
        self._stream.seek(self.size - SEAL_BYTES)
        seal = self._stream.read(SEAL_BYTES)
        if not self._archive.comment and not seal.startswith(SEAL):
            return "repacked"
        return "as_written" if seal == _seal_of(self._stream, self.size) else "changed"

    @contextmanager
    def _opened_entry(self, info: zipfile.ZipInfo, entry: Entry) -> Generator[IO[bytes]]:
        try:
            stream = self._archive.open(info)
        except DAMAGE as error:
            last = max(0, entry.bytes - 1)
            raise ChangedPack(findings.changed(entry.name, 0, last)) from error
        with stream:
            yield stream


def matches(block: bytes, expected: str) -> bool:
    """Whether bytes are those that a hash was taken of."""
    return sha256(block).hexdigest() == expected


def seal(digest: bytes) -> bytes:
    """The archive's comment: the hash of all bytes before it."""
    return SEAL + digest.hex().encode()


def is_archive(start: bytes) -> bool:
    """Whether a file that begins like this is meant as an archive."""
    return start.startswith(_MAGIC)


def _seal_of(stream: BinaryIO, size: int) -> bytes:
    stream.seek(0)
    digest, left = sha256(), size - SEAL_BYTES
    while left > 0 and (data := stream.read(min(left, 1024 * 1024))):
        digest.update(data)
        left -= len(data)
    return seal(digest.digest())


def _opened(stream: BinaryIO, size: int) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except (*DAMAGE, OSError) as error:
        stream.seek(0)
        if not is_archive(stream.read(4)):
            message = "expected a zip archive, got something else; a pack is a .factpack.zip file"
            raise UnreadablePack(message, code="pack_not_zip") from error
        message = f"the archive's directory cannot be read ({error}): it is cut at byte {size}"
        raise UnreadablePack(f"{message}, or damaged there", code="pack_truncated") from error


def _checked(infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    if len(infos) > ENTRIES:
        raise PackTooBig(f"expected at most {ENTRIES} entries, got {len(infos)}")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        _ensure_harmless(info)
        if info.filename in found:
            message = f"{info.filename!r} is there twice; nobody can say which one was meant"
            raise HostilePack(message, code="pack_duplicate_entry")
        found[info.filename] = info
    _ensure_apart(infos)
    _ensure_no_bomb(infos, size)
    return {name: info for name, info in found.items() if not info.is_dir()}


def _ensure_harmless(info: zipfile.ZipInfo) -> None:
    name = info.orig_filename
    if not _is_safe(name):
        shown = ascii(name[:80])
        raise HostilePack(f"{shown} is no name for an entry of a pack", code="pack_unsafe_name")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise HostilePack(f"{name!r} is a symbolic link", code="pack_symlink")
    if info.flag_bits & _ENCRYPTED:
        raise HostilePack(f"{name!r} is encrypted; a pack never is", code="pack_encrypted")
    if info.compress_type not in _METHODS:
        message = f"{name!r} is compressed by an unknown method ({info.compress_type})"
        raise UnreadablePack(f"{message}; pack it anew", code="pack_compression_unknown")
    if info.file_size > ENTRY_BYTES:
        raise PackTooBig(f"{name!r} claims {info.file_size} bytes of {ENTRY_BYTES}")


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


def _ensure_apart(infos: list[zipfile.ZipInfo]) -> None:
    """Entries that share bytes let a small archive hold endless contents."""
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < 0:
            raise UnreadablePack(f"{info.filename!r} lies before the beginning of the archive")
        if info.header_offset < end:
            message = f"{info.filename!r} shares its bytes with another entry"
            raise HostilePack(message, code="pack_overlapping")
        end = info.header_offset + _HEADER + len(info.orig_filename) + info.compress_size


def _ensure_no_bomb(infos: list[zipfile.ZipInfo], size: int) -> None:
    contents = sum(info.file_size for info in infos)
    if contents > max(UNSUSPICIOUS_BYTES, RATIO * size):
        message = f"{size} bytes of archive claim to hold {contents} bytes"
        raise HostilePack(message, code="pack_bomb")


@contextmanager
def _entry_readable(name: str) -> Generator[None]:
    try:
        yield
    except DAMAGE as error:
        message = f"{name}: the entry cannot be read: {error}"
        raise MalformedPack(message, code="entry_malformed") from error


def _exactly(stream: IO[bytes], size: int, name: str, at: int) -> bytes:
    """`size` bytes, or fewer at the end of the entry."""
    pieces: list[bytes] = []
    left = size
    try:
        while left and (piece := stream.read(left)):
            pieces.append(piece)
            left -= len(piece)
    except (*DAMAGE, OSError) as error:
        raise ChangedPack(findings.changed(name, at, at + size - 1)) from error
    return b"".join(pieces)

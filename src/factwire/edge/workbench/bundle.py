"""The workbench's files, in memory: a table from address to bytes, made once for a process.

An address is looked up and never turned into a path, so none leads out of the folder, whatever it
is spelled like. What the build named after its content never changes; everything else is asked for
anew each time.
"""

import gzip
import re
from collections.abc import Iterator
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final

from factwire.edge.limits import COMPRESSED_BYTES

INDEX: Final = "/"
"""The address of the page itself."""

ASSETS: Final = "/assets/"
"""What the build names after its content stands here."""

_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_UNKNOWN: Final = "application/octet-stream"
_PACKED: Final = frozenset({".ico", ".png", ".woff2"})
_NAMED_AFTER_CONTENT: Final = re.compile(r".+-[\w-]{8}\.\w+")
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"


class PageFile:
    """One file: its bytes, and what a browser is told of them."""

    def __init__(self, address: str, body: bytes) -> None:
        suffix = ".html" if address == INDEX else PurePosixPath(address).suffix
        self.body = body
        self.media_type = _MEDIA_TYPES.get(suffix, _UNKNOWN)
        self.tag = sha256(body).hexdigest()[:32]
        hashed = address.startswith(ASSETS) and _NAMED_AFTER_CONTENT.fullmatch(address)
        self.caching = _FOR_EVER if hashed else _ASK_AGAIN
        self.is_worth_packing = suffix not in _PACKED and len(body) >= COMPRESSED_BYTES

    @cached_property
    def packed(self) -> bytes:
        """The bytes in gzip, the same at every start."""
        return gzip.compress(self.body, mtime=0)


Bundle = dict[str, PageFile]
"""Address → file."""


def read_bundle(folder: Traversable) -> Bundle:
    """The files of a folder; none, where it is not there."""
    found = dict(_files(folder, "/")) if folder.is_dir() else {}
    index = found.pop("/index.html", None)
    if index is not None:
        found[INDEX] = index
    return {address: PageFile(address, body) for address, body in found.items()}


@cache
def built_bundle() -> Bundle:
    """The files that came with this package."""
    return read_bundle(files("factwire") / "workbench")


def _files(folder: Traversable, address: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{address}{entry.name}/")
        elif not entry.name.startswith((".", "__")):
            yield f"{address}{entry.name}", entry.read_bytes()

"""The face that people see: the workbench's files, and its page at every address of its own.

The files hold nothing that is secret and are handed out without a token; the page then asks for
one. An address that REST or a stream has is never taken from them.
"""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from factwire.edge.security.guard import Receive, Scope, Send
from factwire.edge.workbench.bundle import ASSETS, INDEX, Bundle, PageFile

_READING: Final = ("GET", "HEAD")
_MISSING: Final = PageFile(
    INDEX,
    b"<!doctype html>\n"
    b'<html lang="en"><meta charset="utf-8"><title>Factwire</title>\n'
    b"<h1>Factwire Edge</h1>\n"
    b"<p>This installation has no workbench: its files were not built. In a checkout, run "
    b"<code>make web</code> and start the Edge again; REST and streams work without it.</p></html>"
    b"\n",
)

Headers = list[tuple[bytes, bytes]]


class Workbench:
    """An ASGI application for what it owns."""

    def __init__(
        self, bundle: Bundle, policy: Iterable[tuple[bytes, bytes]], taken: Iterable[str]
    ) -> None:
        self._bundle = bundle
        self._policy = tuple(policy)
        self._taken = frozenset(_first_part(path) for path in taken)

    def owns(self, scope: Scope) -> bool:
        """Whether a request reads a file, or is a browser's for an address of the page."""
        if scope["type"] != "http" or scope["method"] not in _READING:
            return False
        path: str = scope["path"]
        if path == INDEX or path.startswith(ASSETS) or path in self._bundle:
            return True
        return _first_part(path) not in self._taken and _wants_a_page(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        status, file = self._found(scope["path"])
        asked = dict(scope["headers"])
        body, encoding = await _encoded(file, asked.get(b"accept-encoding", b""))
        tag = f'"{file.tag}{"-gzip" if encoding else ""}"'.encode()
        if status is HTTPStatus.OK and _has(asked.get(b"if-none-match", b""), tag):
            status, body = HTTPStatus.NOT_MODIFIED, b""
        headers = self._headers(file, tag, encoding)
        if status is not HTTPStatus.NOT_MODIFIED:
            headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        shown = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": shown})

    def _found(self, path: str) -> tuple[HTTPStatus, PageFile]:
        """A file; the page, for any address that is no file's; that there is none, without one."""
        file = self._bundle.get(path)
        if file is not None:
            return HTTPStatus.OK, file
        page = self._bundle.get(INDEX)
        if page is None:
            return HTTPStatus.NOT_FOUND, _MISSING
        is_gone = path.startswith(ASSETS)
        return (HTTPStatus.NOT_FOUND, _GONE) if is_gone else (HTTPStatus.OK, page)

    def _headers(self, file: PageFile, tag: bytes, encoding: bytes | None) -> Headers:
        return [
            (b"content-type", file.media_type.encode()),
            (b"cache-control", file.caching.encode()),
            (b"etag", tag),
            (b"vary", b"accept-encoding"),
            *([(b"content-encoding", encoding)] if encoding else []),
            *self._policy,
        ]


_GONE: Final = PageFile("/gone.txt", b"No file has this name; reload the page.\n")


def _first_part(path: str) -> str:
    return path.lstrip("/").partition("/")[0]


def _wants_a_page(scope: Scope) -> bool:
    accept = dict(scope["headers"]).get(b"accept", b"")
    kinds = (kind.partition(b";")[0].strip().lower() for kind in accept.split(b","))
    return b"text/html" in kinds


async def _encoded(file: PageFile, accepted: bytes) -> tuple[bytes, bytes | None]:
    if not file.is_worth_packing or not _takes_gzip(accepted):
        return file.body, None
    # The first time, it takes as long as a hundred requests.
    return await asyncio.to_thread(lambda: file.packed), b"gzip"


def _takes_gzip(accepted: bytes) -> bool:
    for offer in accepted.split(b","):
        name, _, weight = offer.partition(b";")
        if name.strip().lower() == b"gzip":
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _has(given: bytes, tag: bytes) -> bool:
    return tag in (each.strip().removeprefix(b"W/") for each in given.split(b","))

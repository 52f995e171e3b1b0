"""A site: one folder over HTTP, to whoever has its address.

The address holds 256 random bits in its path and is the only thing that opens it; the token of the
Edge never comes here. A page may name its files from the root on, as most builds do; for those a
cookie with other random bits takes the place of the path. A browser sends that cookie to every
port of the host, so it is worth no more than this one folder, and requests by it that another
origin made are refused. The Host header must name a host that this Edge knows: a name that somebody
else points here (DNS rebinding) is none.
"""

import asyncio
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import quote

from factwire.edge.limits import PREVIEW_PATH_CHARACTERS, PREVIEW_PIECE_BYTES
from factwire.edge.previews.folder import OpenFile, PathMissing, PathRefused, ServedFolder
from factwire.edge.previews.media import is_page, media_type
from factwire.edge.previews.ranges import Unsatisfiable, wanted_range
from factwire.edge.problems import Problem
from factwire.edge.security.guard import Receive, Scope, Send, refuse
from factwire.edge.security.places import Places
from factwire.edge.tracing import new_trace_id
from factwire.journal.blobs.disk import on_disk

Headers = tuple[tuple[bytes, bytes], ...]

_METHODS: Final = ("GET", "HEAD")
_SECRET_BYTES: Final = 32
_OWN_PAGES: Final = (b"same-origin", b"none")
_INDEX: Final = "index.html"


class FileShrank(Exception):
    """A file became shorter while it was sent; the connection is cut, so that nobody takes what
    came for the whole.
    """


class Site:
    """An ASGI application; `busy` counts requests under way, `used` is when the last one came."""

    def __init__(self, folder: ServedFolder, places: Places, name: str, policy: Headers) -> None:
        self.key = secrets.token_urlsafe(_SECRET_BYTES)
        self.busy = 0
        self.used = asyncio.get_running_loop().time()
        self._folder = folder
        self._places = places
        self._cookie = f"factwire_preview_{name}"
        self._pass = secrets.token_urlsafe(_SECRET_BYTES)
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.busy += 1
        try:
            await self._answer(scope, receive, send)
        except Problem as problem:
            await refuse(scope, receive, send, problem, new_trace_id())
        finally:
            self.busy -= 1
            self.used = asyncio.get_running_loop().time()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        self._judge(scope, headers)
        path, by_address = self._path(scope["path"], headers)
        if path is None:
            await self._redirect(send, self.key)
            return
        is_folder = path == "" or path.endswith("/")
        found = await self._find(path + _INDEX if is_folder else path)
        if found is None:
            await self._redirect(send, path.rpartition("/")[2])
            return
        try:
            await self._send(scope, headers, found, receive, send, admit=by_address)
        finally:
            await on_disk(found.close)

    def _judge(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the `Problem` that keeps a request out."""
        if not self._places.knows_host(headers.get(b"host", b"").decode("latin-1")):
            raise Problem(421, "host_not_allowed", "this preview does not answer to that host name")
        if scope["method"] not in _METHODS:
            allowed = {"allow": ", ".join(_METHODS)}
            raise Problem(405, "method_not_allowed", "a preview is only read", headers=allowed)
        if b"service-worker" in headers:
            raise Problem(403, "service_worker_refused", "a preview installs no service worker")

    def _path(self, path: str, headers: dict[bytes, bytes]) -> tuple[str | None, bool]:
        """What is asked for below the folder, and whether by the address; None is the address
        without its last slash. Raises `Problem` for whoever has neither address nor cookie.
        """
        whole = path.removeprefix("/")
        first, slash, rest = whole.partition("/")
        if secrets.compare_digest(first.encode("utf-8", "replace"), self.key.encode()):
            return (_plain(rest), True) if slash else (None, True)
        if headers.get(b"sec-fetch-site", b"none") in _OWN_PAGES and self._has_pass(headers):
            return _plain(whole), False
        raise _missing()

    def _has_pass(self, headers: dict[bytes, bytes]) -> bool:
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        given = cookies.get(self._cookie)
        return given is not None and secrets.compare_digest(
            given.value.encode("latin-1", "replace"), self._pass.encode()
        )

    async def _find(self, path: str) -> OpenFile | None:
        try:
            return await on_disk(self._folder.find, path)
        except (PathMissing, PathRefused) as error:
            raise _missing() from error

    async def _redirect(self, send: Send, name: str) -> None:
        """To the same name with a slash; from where the browser is, so that it cannot lead away."""
        location = f"./{quote(name, safe='')}/".encode()
        headers = [(b"location", location), (b"content-length", b"0"), *self._policy]
        await send({"type": "http.response.start", "status": 308, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _send(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        found: OpenFile,
        receive: Receive,
        send: Send,
        *,
        admit: bool,
    ) -> None:
        kind = media_type(found.name)
        part = _part(headers, found)
        start, end = part or (0, found.size)
        said = [
            (b"content-type", kind.encode()),
            (b"content-length", str(end - start).encode()),
            (b"accept-ranges", b"bytes"),
            (b"etag", found.tag.encode()),
            *self._policy,
        ]
        if part is not None:
            said.append((b"content-range", f"bytes {start}-{end - 1}/{found.size}".encode()))
        if admit and is_page(kind):
            cookie = f"{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict"
            said.append((b"set-cookie", cookie.encode()))
        status = 200 if part is None else 206
        await send({"type": "http.response.start", "status": status, "headers": said})
        if scope["method"] == "GET":
            await _pieces(found, start, end, receive, send)
        await send({"type": "http.response.body", "body": b""})


def _missing() -> Problem:
    return Problem(404, "not_found", "nothing is served at this address")


def _plain(path: str) -> str:
    """A path of plain names, perhaps with a slash at its end; raises `Problem`."""
    names = path.removesuffix("/").split("/") if path else []
    if len(path) > PREVIEW_PATH_CHARACTERS or any(name in ("", ".", "..") for name in names):
        raise _missing()
    return path


def _part(headers: dict[bytes, bytes], found: OpenFile) -> tuple[int, int] | None:
    """The bytes that are asked for; of a file that has changed meanwhile, all."""
    known = headers.get(b"if-range", found.tag.encode())
    if known != found.tag.encode():
        return None
    try:
        return wanted_range(headers.get(b"range", b"").decode("latin-1"), found.size)
    except Unsatisfiable as error:
        about = {"content-range": f"bytes */{found.size}"}
        detail = f"the file has {found.size} bytes"
        raise Problem(416, "range_not_satisfiable", detail, headers=about) from error


async def _pieces(found: OpenFile, start: int, end: int, receive: Receive, send: Send) -> None:
    """Send bytes as fast as they are taken, until nobody is there to take them."""
    gone = asyncio.ensure_future(_left(receive))
    try:
        while start < end and not gone.done():
            piece = await on_disk(found.read, start, min(PREVIEW_PIECE_BYTES, end - start))
            if not piece:
                raise FileShrank
            start += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        gone.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

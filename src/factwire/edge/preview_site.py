"""A preview: one folder of a run over HTTP, to whoever has its address.

The attack: a path that leads out by `..`, by a link, or by a folder that is swapped for a link
between a look and its use. A path is first followed to where it really leads, which must be below
the folder; then exactly that is opened, folder by folder, and a link on the way is refused. Names
that begin with a dot and what belongs to the Edge are never served. The address holds 256 random
bits and is the only thing that opens it; a cookie with other random bits stands in for it where a
page names its files from the root on. An agent made the pages, so they load, send and submit to
their own folder alone, open no windows and ask for no devices.
"""

import asyncio
import os
import re
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from factwire.edge.limits import PREVIEW_PATH_CHARACTERS, PREVIEW_PIECE_BYTES
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.processes.process_launch import folder_inside, real_path
from factwire.runtime.processes.process_spec import FolderRefused
from factwire.serving.access_control import HostPolicy
from factwire.serving.asgi import Problem, Receive, Scope, Send, refuse

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SERVED_HIDDEN_NAME: Final = ".well-known"


class PathRefused(Exception):
    """A path that leads to nothing that may be served."""


class PathMissing(Exception):
    """Nothing is there that could be served."""


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A plain file that is held open, as it was then."""

    file: int
    name: str
    size: int
    tag: str

    def read(self, at: int, count: int) -> bytes:
        return os.pread(self.file, count, at)

    def close(self) -> None:
        os.close(self.file)


class ServedFolder:
    """A folder below `within`; `own` are beginnings of real paths that are never served."""

    def __init__(self, file: int, path: Path, *, within: Path, own: tuple[str, ...]) -> None:
        self.path = path
        self._file: int | None = file
        self._within = within
        self._own = own

    @classmethod
    def open(
        cls, run_folder: str, path: str, workspaces: Iterable[Path], own: tuple[str, ...]
    ) -> "ServedFolder":
        """A folder below a run's; raises `FolderRefused`, `PathRefused` or `PathMissing`."""
        with folder_inside(run_folder, workspaces) as run:
            parts = resolve_inside(run.path, path)
            found = run.path.joinpath(*parts)
            _ensure_servable(found, parts, own)
            file = _open_path(run.file, parts, _FOLDER)
            return cls(file, found, within=run.path, own=own)

    def find(self, path: str) -> OpenFile | None:
        """A file by its path, or None where that is a folder; raises `PathRefused` or
        `PathMissing`.
        """
        root = self._current_root()
        parts = resolve_inside(root, path)
        _ensure_servable(root.joinpath(*parts), parts, self._own)
        file = _open_path(self._descriptor(), parts, _ANY)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode):
            tag = f'"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"'
            name = path.rpartition("/")[2]
            return OpenFile(file=file, name=name, size=found.st_size, tag=tag)
        os.close(file)
        if stat.S_ISDIR(found.st_mode):
            return None
        raise PathMissing

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _descriptor(self) -> int:
        if self._file is None:
            raise PathMissing
        return self._file

    def _current_root(self) -> Path:
        """Where the folder is now; it may have been moved since it was opened."""
        try:
            here = real_path(self._descriptor(), str(self.path))
        except (FolderRefused, OSError) as error:
            raise PathMissing from error
        if not here.is_relative_to(self._within):
            raise PathRefused
        return here


def resolve_inside(root: Path, path: str) -> tuple[str, ...]:
    """The names that really lead from a folder to where a path goes; raises `PathRefused`."""
    if path.startswith("/") or "\0" in path:
        raise PathRefused
    try:
        real = Path(os.path.realpath(root / path))
    except (OSError, ValueError) as error:
        raise PathMissing from error
    if not real.is_relative_to(root):
        raise PathRefused
    return real.relative_to(root).parts


def _ensure_servable(real: Path, parts: Sequence[str], own: tuple[str, ...]) -> None:
    if any(part.startswith(".") and part != _SERVED_HIDDEN_NAME for part in parts):
        raise PathRefused
    if f"{real}{os.sep}".startswith(own):
        raise PathRefused


def _open_path(root: int, parts: Sequence[str], flags: int) -> int:
    """Open what lies at the end of these names; a link among them is nothing."""
    at = os.dup(root)
    try:
        for place, part in enumerate(parts):
            inner = os.open(part, flags if place == len(parts) - 1 else _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
    except (OSError, ValueError) as error:
        with suppress(OSError):
            os.close(at)
        raise PathMissing from error
    return at


UNKNOWN_MEDIA_TYPE: Final = "application/octet-stream"

_TEXT: Final = {
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "txt": "text/plain",
    "log": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "xml": "application/xml",
    "xhtml": "application/xhtml+xml",
    "svg": "image/svg+xml",
    "json": "application/json",
    "map": "application/json",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "webmanifest": "application/manifest+json",
    "vtt": "text/vtt",
    "ics": "text/calendar",
}
_BYTES: Final = {
    "png": "image/png",
    "apng": "image/apng",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "ico": "image/x-icon",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "webm": "video/webm",
    "ogv": "video/ogg",
    "mov": "video/quicktime",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "ttf": "font/ttf",
    "otf": "font/otf",
    "wasm": "application/wasm",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "glb": "model/gltf-binary",
}


def media_type(name: str) -> str:
    """What a file is, by its name; text is UTF-8."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _TEXT:
        return f"{_TEXT[ending]}; charset=utf-8"
    return _BYTES.get(ending, UNKNOWN_MEDIA_TYPE)


def is_page(kind: str) -> bool:
    """Whether a browser shows it as a document that loads others."""
    return kind.startswith(("text/html", "application/xhtml+xml"))


_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class RangeUnsatisfiable(Exception):
    """The stretch begins after the end of the file."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last, or None for the whole; raises `RangeUnsatisfiable`."""
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return _suffix_range(int(found[2]), size)
    start = int(found[1])
    if found[2] and int(found[2]) < start:
        return None
    if start >= size:
        raise RangeUnsatisfiable
    return start, min(int(found[2]) + 1, size) if found[2] else size


def _suffix_range(count: int, size: int) -> tuple[int, int]:
    if count == 0 or size == 0:
        raise RangeUnsatisfiable
    return max(0, size - count), size


_OWN: Final = "'self' data: blob:"
_ALLOWED: Final = (
    "allow-scripts allow-same-origin allow-forms allow-modals allow-downloads allow-pointer-lock"
)
_CONTENT: Final = (
    "default-src 'none'",
    f"script-src {_OWN} 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'",
    f"style-src {_OWN} 'unsafe-inline'",
    f"img-src {_OWN}",
    f"font-src {_OWN}",
    f"media-src {_OWN}",
    f"connect-src {_OWN}",
    f"worker-src {_OWN}",
    f"frame-src {_OWN}",
    "manifest-src 'self'",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    f"sandbox {_ALLOWED}",
)
_DEVICES: Final = (
    "camera",
    "microphone",
    "geolocation",
    "display-capture",
    "usb",
    "serial",
    "hid",
    "midi",
    "payment",
    "clipboard-read",
)


def build_policy_headers(frames: Iterable[str]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of every answer; pages of `frames` may show it in a frame."""
    around = " ".join(["frame-ancestors 'self'", *sorted(frames)])
    content = "; ".join([*_CONTENT, around])
    devices = ", ".join(f"{device}=()" for device in _DEVICES)
    return (
        (b"content-security-policy", content.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", devices.encode()),
        (b"x-dns-prefetch-control", b"off"),
        (b"cache-control", b"no-store"),
    )


Headers = tuple[tuple[bytes, bytes], ...]

_METHODS: Final = ("GET", "HEAD")
_SECRET_BYTES: Final = 32
_OWN_PAGES: Final = (b"same-origin", b"none")
_INDEX: Final = "index.html"


class FileShrank(Exception):
    """A file became shorter while it was sent; the connection is cut, so that nobody takes what
    came for the whole.
    """


class PreviewSite:
    """An ASGI application; `busy` counts requests under way, `used` is when the last one came."""

    def __init__(
        self, folder: ServedFolder, host_policy: HostPolicy, name: str, policy: Headers
    ) -> None:
        self.key = secrets.token_urlsafe(_SECRET_BYTES)
        self.busy = 0
        self.used = asyncio.get_running_loop().time()
        self._folder = folder
        self._places = host_policy
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
            await refuse(scope, receive, send, problem)
        finally:
            self.busy -= 1
            self.used = asyncio.get_running_loop().time()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        self._ensure_allowed(scope, headers)
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
            await run_disk_work(found.close)

    def _ensure_allowed(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the `Problem` that keeps a request out."""
        if not self._places.allows_host(headers.get(b"host", b"").decode("latin-1")):
            raise Problem(421, "host_not_allowed", "this preview does not accept that host name")
        if scope["method"] not in _METHODS:
            allowed = {"allow": ", ".join(_METHODS)}
            raise Problem(405, "method_not_allowed", "previews are read-only", headers=allowed)
        if b"service-worker" in headers:
            raise Problem(403, "service_worker_refused", "previews cannot install a service worker")

    def _path(self, path: str, headers: dict[bytes, bytes]) -> tuple[str | None, bool]:
        """What is asked for below the folder, and whether by the address; None is the address
        without its last slash. Raises `Problem` for whoever has neither address nor cookie.
        """
        whole = path.removeprefix("/")
        first, slash, rest = whole.partition("/")
        if secrets.compare_digest(first.encode("utf-8", "replace"), self.key.encode()):
            return (_check_path(rest), True) if slash else (None, True)
        if headers.get(b"sec-fetch-site", b"none") in _OWN_PAGES and self._has_pass(headers):
            return _check_path(whole), False
        raise _not_found()

    def _has_pass(self, headers: dict[bytes, bytes]) -> bool:
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        cookie = cookies.get(self._cookie)
        return cookie is not None and secrets.compare_digest(
            cookie.value.encode("latin-1", "replace"), self._pass.encode()
        )

    async def _find(self, path: str) -> OpenFile | None:
        try:
            return await run_disk_work(self._folder.find, path)
        except (PathMissing, PathRefused) as error:
            raise _not_found() from error

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
        part = _requested_range(headers, found)
        start, end = part or (0, found.size)
        answer = [
            (b"content-type", kind.encode()),
            (b"content-length", str(end - start).encode()),
            (b"accept-ranges", b"bytes"),
            (b"etag", found.tag.encode()),
            *self._policy,
        ]
        if part is not None:
            answer.append((b"content-range", f"bytes {start}-{end - 1}/{found.size}".encode()))
        if admit and is_page(kind):
            cookie = f"{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict"
            answer.append((b"set-cookie", cookie.encode()))
        status = 200 if part is None else 206
        await send({"type": "http.response.start", "status": status, "headers": answer})
        if scope["method"] == "GET":
            await _send_pieces(found, start, end, receive, send)
        await send({"type": "http.response.body", "body": b""})


def _not_found() -> Problem:
    return Problem(404, "not_found", "not found")


def _check_path(path: str) -> str:
    """A path of plain names, perhaps with a slash at its end; raises `Problem`."""
    names = path.removesuffix("/").split("/") if path else []
    if len(path) > PREVIEW_PATH_CHARACTERS or any(name in ("", ".", "..") for name in names):
        raise _not_found()
    return path


def _requested_range(headers: dict[bytes, bytes], found: OpenFile) -> tuple[int, int] | None:
    """The bytes that are asked for; of a file that has changed meanwhile, all."""
    known = headers.get(b"if-range", found.tag.encode())
    if known != found.tag.encode():
        return None
    try:
        return parse_range(headers.get(b"range", b"").decode("latin-1"), found.size)
    except RangeUnsatisfiable as error:
        about = {"content-range": f"bytes */{found.size}"}
        detail = f"the file has {found.size} bytes"
        raise Problem(416, "range_not_satisfiable", detail, headers=about) from error


async def _send_pieces(found: OpenFile, start: int, end: int, receive: Receive, send: Send) -> None:
    """Send bytes as fast as they are taken, until nobody is there to take them."""
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        while start < end and not gone.done():
            piece = await run_disk_work(found.read, start, min(PREVIEW_PIECE_BYTES, end - start))
            if not piece:
                raise FileShrank
            start += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        gone.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

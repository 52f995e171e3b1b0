"""The workbench as an Edge serves it: files, headers, and the way in.

An address is looked up in a table and never turned into a path, so none leads out of the folder.
The files hold nothing that is secret and are handed out without a token; the page then asks for
one. The page shows what agents wrote; should a piece of that ever become markup, the policy lets it
run nothing and reach nobody. A link that signs in carries the token behind the `#`, which a browser
keeps to itself; whoever comes back opens a file beside the token, readable by its owner alone.
"""

import asyncio
import gzip
import html
import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final

from factwire.edge.limits import COMPRESSED_BYTES
from factwire.journal.atomic_files import read_regular_file, replace_file
from factwire.serving.access_control import AccessToken, HostPolicy, is_any_address
from factwire.serving.asgi import Receive, Scope, Send

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
    def gzip_body(self) -> bytes:
        """The bytes in gzip, the same at every start."""
        return gzip.compress(self.body, mtime=0)


Bundle = dict[str, PageFile]
"""Address → file."""


def read_bundle(folder: Traversable) -> Bundle:
    """The files of a folder; none, where it is not there."""
    found = dict(_walk_files(folder, "/")) if folder.is_dir() else {}
    index = found.pop("/index.html", None)
    if index is not None:
        found[INDEX] = index
    return {address: PageFile(address, body) for address, body in found.items()}


@cache
def load_built_bundle() -> Bundle:
    """The files that came with this package."""
    return read_bundle(files("factwire") / "workbench")


def _walk_files(folder: Traversable, address: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk_files(entry, f"{address}{entry.name}/")
        elif not entry.name.startswith((".", "__")):
            yield f"{address}{entry.name}", entry.read_bytes()


_CONTENT: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
)
_REFUSED: Final = (
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types factwire-files",
)
_DEVICES: Final = (
    "camera",
    "display-capture",
    "geolocation",
    "hid",
    "microphone",
    "midi",
    "payment",
    "serial",
    "usb",
)


def content_policy(bind: str, host_policy: HostPolicy) -> str:
    """The policy of an Edge's page, by where its previews are."""
    frames = " ".join(_preview_origins(bind, host_policy)) or "'none'"
    return "; ".join([*_CONTENT, f"frame-src {frames}", *_REFUSED])


def page_policy(bind: str, host_policy: HostPolicy) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of everything that the workbench is made of."""
    devices = ", ".join(f"{device}=()" for device in _DEVICES)
    return (
        (b"content-security-policy", content_policy(bind, host_policy).encode()),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"permissions-policy", devices.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    )


def _preview_origins(bind: str, host_policy: HostPolicy) -> list[str]:
    """Previews listen where the Edge does, each on a port of its own; a policy has no word for an
    address with colons, so there they open in a tab.
    """
    names = sorted(host_policy.hosts) if is_any_address(bind) else [bind.lower()]
    return [f"http://{name}:*" for name in names if ":" not in name]


ENTRANCE_FILE: Final = "workbench.html"

_LARGEST_PAGE: Final = 64 * 1024
_LINK: Final = re.compile(r'<a href="([^"]+)">')


def signed_in_link(address: str, token: AccessToken) -> str:
    """The link that opens the workbench of an address with a token."""
    return f"{address}/#token={token.value}"


def write_entrance(folder: Path, link: str) -> Path:
    """Write the file that leads to a link, in place of an older one."""
    path = folder / ENTRANCE_FILE
    replace_file(path, _entrance_page(html.escape(link)).encode())
    return path


def read_entrance_link(folder: Path) -> str | None:
    """The link that the file of a data folder leads to; None where there is none."""
    try:
        text = read_regular_file(folder / ENTRANCE_FILE, _LARGEST_PAGE)[0].decode()
    except (OSError, UnicodeDecodeError):
        # Made anew whenever the Edge starts; one that cannot be read leads nowhere.
        return None
    found = _LINK.search(text)
    return None if found is None else html.unescape(found[1])


def _entrance_page(link: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Factwire</title>\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="refresh" content="0; url={link}">\n'
        f'<p>Open <a href="{link}">the workbench</a>, signed in.</p></html>\n'
    )


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
        status, file = self._find_file(scope["path"])
        request = dict(scope["headers"])
        body, encoding = await _encode_body(file, request.get(b"accept-encoding", b""))
        tag = f'"{file.tag}{"-gzip" if encoding else ""}"'.encode()
        if status is HTTPStatus.OK and _has_tag(request.get(b"if-none-match", b""), tag):
            status, body = HTTPStatus.NOT_MODIFIED, b""
        headers = self._headers(file, tag, encoding)
        if status is not HTTPStatus.NOT_MODIFIED:
            headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        shown = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": shown})

    def _find_file(self, path: str) -> tuple[HTTPStatus, PageFile]:
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


async def _encode_body(file: PageFile, accepted: bytes) -> tuple[bytes, bytes | None]:
    if not file.is_worth_packing or not _takes_gzip(accepted):
        return file.body, None
    # The first time, it takes as long as a hundred requests.
    return await asyncio.to_thread(lambda: file.gzip_body), b"gzip"


def _takes_gzip(accepted: bytes) -> bool:
    for offer in accepted.split(b","):
        name, _, weight = offer.partition(b";")
        if name.strip().lower() == b"gzip":
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _has_tag(header: bytes, tag: bytes) -> bool:
    return tag in (each.strip().removeprefix(b"W/") for each in header.split(b","))

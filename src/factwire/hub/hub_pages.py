"""The pages of a Hub: `/join` creates an account by an invitation, `/sign-in` signs in with a
password, a passkey or an identity provider and shows the ways that somebody has, `/device` confirms
a machine or a terminal that asks to come in, `/pair` signs in a phone that scanned a code, and `/`
is for whoever is signed in: what waits for them, their machines with threads, and their screens.

What a link carries is in its fragment, which a browser sends to nobody; the page takes it out of
the address bar at once, as it does with what a provider adds to its redirect. Tokens, and a sign-in
at a provider that was begun, are kept for the tab alone; only a phone that was paired keeps its
session for the browser, until somebody ends it. `/device` signs in for as long as it takes to
decide, unless somebody is signed in. A page is whole in itself: its policy allows no script and no
style but its own, by hash, and no frame around it.
"""

import base64
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from factwire.facts.status_words import STATUS_WORDS
from factwire.hub.people.provider_sign_in import PAGE
from factwire.serving.asgi import Message, Receive, Scope, Send

_FOLDER: Final = files("factwire.hub") / "pages"


def _read_file(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _read_script(name: str) -> str:
    """A script of its own file; how a status reads is in a table that the command line has too."""
    if name == _STATUS_WORDS:
        return f"const STATUS_WORDS = {msgspec.json.encode(STATUS_WORDS).decode()};"
    return _read_file(f"{name}.js")


_STYLE: Final = _read_file("style.css")
_STATUS_WORDS: Final = "status words"
_SCREEN_SCRIPTS: Final = (_STATUS_WORDS, "screen", "pairing", "thread")
_MARK: Final = (
    '<svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6" '
    'fill="#3b5bdb"/><path d="M6 8h12M6 12h8M6 16h5" stroke="#fff" stroke-width="2" '
    'stroke-linecap="round"/></svg>'
)
_NAVIGATION: Final = (
    '<nav aria-label="Hub"><a href="/#/">Home</a><a href="/#/devices">Devices</a>'
    '<a href="/sign-in">Account</a></nav>'
)


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


class HubHtml(NamedTuple):
    """A page and the policy that it is shown under."""

    content: bytes
    policy: bytes


def _build_page(
    title: str, body_name: str, *scripts: str, navigation: str = "", is_wide: bool = False
) -> HubHtml:
    """A page of an HTML file; its scripts are those of that name and of others, before it."""
    body = _read_file(f"{body_name}.html")
    script = "\n".join(_read_script(name) for name in ("common", *scripts, body_name))
    content = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<header><strong>{_MARK}<span><span>Factwire </span>Hub</span></strong>{navigation}</header>
<main{"" if is_wide else ' class="narrow"'}>
{body}</main>
<script>{script}</script>
</body>
</html>
"""
    policy = (
        "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors 'none'; script-src {_hash_source(script)}; "
        f"style-src {_hash_source(_STYLE)}"
    )
    return HubHtml(content.encode(), policy.encode())


_SIGN_IN: Final = _build_page("Sign in to this Factwire Hub", "sign_in", navigation=_NAVIGATION)

PAGES: Final = {
    "/": _build_page(
        "Factwire Hub", "home", *_SCREEN_SCRIPTS, navigation=_NAVIGATION, is_wide=True
    ),
    "/join": _build_page("Join this Factwire Hub", "join"),
    PAGE: _SIGN_IN,
    # Where each provider sends people back to.
    f"{PAGE}/{{provider}}": _SIGN_IN,
    "/device": _build_page("Confirm a device", "device", navigation=_NAVIGATION),
    "/pair": _build_page("Sign in on this device", "pair"),
}
"""Path → the page there."""


def _find_page(path: str) -> HubHtml | None:
    below = path.removeprefix(f"{PAGE}/")
    is_answer = below not in ("", path) and not set("/{}") & set(below)
    return _SIGN_IN if is_answer else PAGES.get(path) if "{" not in path else None


def owns_page(scope: Scope) -> bool:
    """Whether somebody asks for a page."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    return _find_page(scope["path"]) is not None


async def serve_page(scope: Scope, _: Receive, send: Send) -> None:
    """Answer with a page."""
    page = _find_page(scope["path"]) or _SIGN_IN
    start: Message = {
        "type": "http.response.start",
        "status": 200,
        "headers": [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(page.content)).encode()),
            (b"content-security-policy", page.policy),
        ],
    }
    await send(start)
    shown = b"" if scope["method"] == "HEAD" else page.content
    await send({"type": "http.response.body", "body": shown})

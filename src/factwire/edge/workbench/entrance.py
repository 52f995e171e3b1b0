"""The way in: links that open the workbench signed in.

The token stands behind the `#`, which a browser keeps to itself: no server hears it and no log of
requests shows it. A link with it is still as good as the token, so a start prints it only with a
token that is new. Whoever comes back opens a file instead, which lies in the data folder beside the
token, is readable by its owner alone, and leads on to that link.
"""

import html
import os
import re
from pathlib import Path
from typing import Final

from factwire.edge.security.tokens import Token

FILE_NAME: Final = "workbench.html"

_MODE: Final = 0o600
_LINK: Final = re.compile(r'<a href="([^"]+)">')


def signed_in(address: str, token: Token) -> str:
    """The link that opens the workbench of an address with a token."""
    return f"{address}/#token={token.value}"


def keep_entrance(folder: Path, link: str) -> Path:
    """Write the file that leads to a link, in place of an older one."""
    path = folder / FILE_NAME
    fresh = folder / f".{FILE_NAME}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    file = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, _MODE)
    with os.fdopen(file, "w", encoding="utf-8") as handle:
        handle.write(_page(html.escape(link)))
    fresh.replace(path)
    return path


def kept_link(folder: Path) -> str | None:
    """The link that the file of a data folder leads to; None where there is none."""
    try:
        text = (folder / FILE_NAME).read_text("utf-8")
    except FileNotFoundError:
        return None
    found = _LINK.search(text)
    return None if found is None else html.unescape(found[1])


def _page(link: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Factwire</title>\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="refresh" content="0; url={link}">\n'
        f'<p>This leads to <a href="{link}">the workbench</a>, signed in.</p></html>\n'
    )

"""The token of an Edge, where it is found, and that nothing prints it by accident.

What is named comes first: a token, then a data folder; the environment is asked last. A token that
would not fit into a header is refused here, because a library's message about it would repeat it.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from factwire.client.errors import TokenUnusable
from factwire.client.limits import TOKEN_BYTES

VARIABLE: Final = "FACTWIRE_TOKEN"
FILE_NAME: Final = "edge-token"


class Token(msgspec.Struct, frozen=True):
    """A secret that is shown to nobody but its Edge."""

    value: str

    def __repr__(self) -> str:
        return "Token(…)"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.value}"}


def find_token(token: str | None = None, data: str | os.PathLike[str] | None = None) -> Token:
    """The token to use; raises `TokenUnusable`."""
    if token is not None:
        return _checked(token, "the token that was given")
    if data is not None:
        return _checked(_kept(Path(data)), f"{FILE_NAME} in the data folder")
    named = os.environ.get(VARIABLE)
    if named:
        return _checked(named, VARIABLE)
    raise TokenUnusable(
        f"no token: give one, set {VARIABLE}, or name the data folder of an Edge on this machine"
    )


def _checked(value: str, origin: str) -> Token:
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise TokenUnusable(f"{origin} is empty, or has characters that fit into no header")
    return Token(value)


def _kept(folder: Path) -> str:
    try:
        file = os.open(folder / FILE_NAME, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(file, "rb") as handle:
            return handle.read(TOKEN_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise TokenUnusable(
            f"{FILE_NAME} in the data folder cannot be read: {error.strerror}; the Edge keeps one "
            "there unless its token was given to it"
        ) from error

"""The token of an Edge: always there, never weak, never in a place that others read.

Whoever holds it may do everything that this Edge may. One that is given must be long enough and no
word out of an example; without one, a fresh one is made at the first start and kept in the data
folder, readable by its owner alone.
"""

import hmac
import os
import secrets
import stat
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from factwire.edge.limits import TOKEN_CHARACTERS

FILE_NAME: Final = "edge-token"

_EXAMPLES: Final = ("changeme", "change-me", "default", "example", "password", "secret", "token")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_MODE: Final = 0o600
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FEW_CHARACTERS: Final = 6


class InsecureStart(Exception):
    """An Edge that would not be safe does not start; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class Token(msgspec.Struct, frozen=True):
    """A secret that can be compared, and that nothing prints by accident."""

    value: str

    def __repr__(self) -> str:
        return "Token(…)"

    def fits(self, offered: str) -> bool:
        """Whether somebody offers this token; takes the same time for every wrong one."""
        ours = sha256(self.value.encode()).digest()
        theirs = sha256(offered.encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(ours, theirs)


class FoundToken(msgspec.Struct, frozen=True, kw_only=True):
    """`made` is true for one that did not exist before, and which must be shown once."""

    token: Token
    made: bool


def given_token(text: str) -> Token:
    """A token that somebody chose; raises `InsecureStart` for one that could be guessed."""
    if not set(text) <= _PLAIN:
        raise InsecureStart(
            "token_unusable",
            "a token consists of letters, digits and - . _ ~, so that it fits into every header",
        )
    if len(text) < TOKEN_CHARACTERS:
        raise InsecureStart(
            "token_too_short",
            f"the token has {len(text)} characters; give at least {TOKEN_CHARACTERS}, or none to "
            "have one made",
        )
    plain = text.lower().strip("0123456789-_.~")
    repeated = len(set(text)) < _FEW_CHARACTERS
    if repeated or any(plain == word * (len(plain) // len(word) or 1) for word in _EXAMPLES):
        raise InsecureStart(
            "token_guessable", "the token is one that others would try; give none to have one made"
        )
    return Token(text)


def kept_token(folder: Path) -> FoundToken:
    """The token of a data folder, made if there is none yet."""
    path = folder / FILE_NAME
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, _MODE)
    except FileExistsError:
        return FoundToken(token=_read(path), made=False)
    # The first letters are what redaction knows it by, wherever it turns up.
    value = f"fwt_{secrets.token_urlsafe(32)}"
    with os.fdopen(file, "w", encoding="ascii") as handle:
        handle.write(value + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    return FoundToken(token=Token(value), made=True)


def _read(path: Path) -> Token:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(file, encoding="ascii", errors="replace") as handle:
        if os.fstat(handle.fileno()).st_mode & _OTHERS:
            raise InsecureStart(
                "token_exposed",
                f"{path.name} in the data folder can be read by others; make it mode 600, or "
                "delete it to have a new one made",
            )
        return given_token(handle.read().strip())

"""Passwords: how they must be, and how they are hashed and verified.

Argon2id with the parameters of RFC 9106 for machines with little memory. Hashing runs in a thread,
a few at a time, so that sign-ins neither hold up the event loop nor fill the memory. A name that
nobody has costs as much time as a wrong password.
"""

import asyncio
import secrets
import unicodedata
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from factwire.hub.limits import (
    PASSWORD_CHARACTERS,
    PASSWORD_CHARACTERS_MOST,
    PASSWORDS_AT_ONCE,
    PERSON_NAME_CHARACTERS,
)
from factwire.serving.asgi import Problem

_FEW_CHARACTERS: Final = 5


def normalize_name(name: str) -> str:
    """A name as it is shown; raises `Problem`."""
    shown = unicodedata.normalize("NFC", name).strip()
    if len(shown) > PERSON_NAME_CHARACTERS or not name_key(shown):
        raise Problem(
            400,
            "name_unusable",
            f"a name must have 1 to {PERSON_NAME_CHARACTERS} printable characters",
        )
    return shown


def name_key(name: str) -> str:
    """A name as it is compared: case, width and spaces do not count. A text that cannot be a name
    has an empty key, which nobody has.
    """
    if not name.isprintable():
        return ""
    key, folded = name, _fold(name)
    while folded != key:
        # Letters and marks that folding brings together may combine.
        key, folded = folded, _fold(folded)
    return key


def _fold(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def check_password(password: str, name: str) -> str:
    """A password that may be used, normalized; raises `Problem`."""
    normalized = unicodedata.normalize("NFKC", password)
    if not PASSWORD_CHARACTERS <= len(normalized) <= PASSWORD_CHARACTERS_MOST:
        raise _weak(
            f"use {PASSWORD_CHARACTERS} to {PASSWORD_CHARACTERS_MOST} characters for a password"
        )
    if len(set(normalized)) < _FEW_CHARACTERS:
        raise _weak("the password repeats a few characters; use more different ones")
    if name_key(name) and name_key(normalized).replace(name_key(name), "") == "":
        raise _weak("the password is the name; use another one")
    return normalized


def _weak(detail: str) -> Problem:
    return Problem(400, "password_weak", detail)


def generate_password() -> str:
    """A password that nobody can guess, to be shown once."""
    return secrets.token_urlsafe(18)


class Passwords:
    """Hashes and verifies, a few at a time."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._slots = asyncio.Semaphore(PASSWORDS_AT_ONCE)
        self._nobody: str | None = None

    async def hash(self, password: str) -> str:
        async with self._slots:
            return await asyncio.to_thread(self._hasher.hash, _to_bytes(password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether a password is the one that was hashed; None stands for nobody's."""
        if self._nobody is None:
            self._nobody = await self.hash(secrets.token_urlsafe())
        async with self._slots:
            matches = await asyncio.to_thread(
                self._matches, stored or self._nobody, _to_bytes(password)
            )
        return matches and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Whether a hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, stored: str, password: bytes) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False


def _to_bytes(password: str) -> bytes:
    """What is hashed: the same for every way to type the same characters."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")

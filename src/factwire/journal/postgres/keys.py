"""Keys of fixed size for names of any size: what the indexes of the database hold.

A fact's key begins with the time inside its id, where the id is a ULID or a UUID of version 7, so
that new keys meet on the few newest pages of the index; every other id is spread by its hash. The
hash is of the whole id, so that the time decides where a key lies and never whether two are equal.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

_TIME: Final = 6
_FACT: Final = 15
"""Bytes of a fact's key: with its header, an index entry then takes 24 bytes, not 32."""

_BASE32: Final = str.maketrans(
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv"
)
_ULID: Final = 26
_ULID_TIME: Final = 10
_UUID: Final = 36


class Keys:
    """Keys within one journal; those of another journal in the database are others."""

    def __init__(self, journal: int) -> None:
        self._salt = journal.to_bytes(8, "big")
        # Copies of these spare reading the parameters again, half of what a short id costs.
        self._timed = blake2b(digest_size=_FACT - _TIME, salt=self._salt)
        self._timeless = blake2b(digest_size=_FACT, salt=self._salt)

    def fact(self, fact_id: str) -> bytes:
        return self.facts((fact_id,))[0]

    def facts(self, ids: Iterable[str]) -> list[bytes]:
        """The key of each fact."""
        keys: list[bytes] = []
        for fact_id in ids:
            time = _time_of(fact_id)
            digest = self._timeless.copy() if time is None else self._timed.copy()
            digest.update(fact_id.encode("utf-8", "surrogatepass"))
            keys.append(digest.digest() if time is None else time + digest.digest())
        return keys

    def name(self, text: str) -> bytes:
        """The key of a thread, a project or a kind of snapshot."""
        return blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16, salt=self._salt
        ).digest()

    def posting(self, key: str) -> int:
        """The number under which the chunks of a filter key are listed.

        Two keys may share a number; a chunk's own index then tells them apart.
        """
        return _number(self._salt, key)


@lru_cache(maxsize=65_536)
def _number(salt: bytes, key: str) -> int:
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest()
    return int.from_bytes(digest, "big", signed=True)


def _time_of(fact_id: str) -> bytes | None:
    if len(fact_id) == _UUID and fact_id[14] == "7" and fact_id[8] == "-":
        return _hex_time(fact_id[:8] + fact_id[9:13])
    if len(fact_id) >= _ULID:
        return _ulid_time(fact_id[-_ULID : _ULID_TIME - _ULID])
    return None


@lru_cache(maxsize=4_096)
def _ulid_time(text: str) -> bytes | None:
    try:
        return int(text.translate(_BASE32), 32).to_bytes(_TIME, "big")
    except (ValueError, OverflowError):
        return None


def _hex_time(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None

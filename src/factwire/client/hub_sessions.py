"""A person's session at a Hub, in the file where `factwire login` keeps it, for this user alone.

An access token lasts some minutes; the refresh token gets the next pair, and ends the session if it
comes twice. So one program at a time renews: whoever holds the lock reads the file again first, and
takes the tokens that another has renewed meanwhile. No token is ever printed.
"""

import os
import stat
from pathlib import Path
from tempfile import mkstemp
from time import time
from typing import Any, Final

import msgspec

from factwire.client.edge_address import EdgeToken
from factwire.client.errors import NotSignedIn, SessionsUnusable
from factwire.client.limits import SPARE_SECONDS

SESSIONS_FILE: Final = "hub-sessions.json"
_PRIVATE: Final = 0o600
_OTHERS: Final = 0o077


class HubSession(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where somebody is signed in, and the tokens of that; `expires_at` is by this clock."""

    url: str
    person: str
    refresh_token: str
    access_token: str
    expires_at: float

    def __repr__(self) -> str:
        return f"HubSession({self.url!r}, {self.person!r}, …)"

    @property
    def is_fresh(self) -> bool:
        """Whether its access token will last for the next request."""
        return self.expires_at - SPARE_SECONDS > time()

    @property
    def token(self) -> EdgeToken:
        return EdgeToken(self.access_token)


class SignInTokens(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a Hub answers somebody who signs in, or who renews a session."""

    access_token: str
    refresh_token: str
    expires_in: float
    person: dict[str, Any]

    def __repr__(self) -> str:
        return "SignInTokens(…)"

    def to_session(self, url: str) -> HubSession:
        return HubSession(
            url=url,
            person=str(self.person.get("name", "")),
            refresh_token=self.refresh_token,
            access_token=self.access_token,
            expires_at=time() + self.expires_in,
        )


class HubSessions:
    """The sessions that are kept in a data folder, by the address of the Hub."""

    def __init__(self, data: str | os.PathLike[str]) -> None:
        self._folder = Path(data)
        self._file = self._folder / SESSIONS_FILE

    def read(self) -> dict[str, HubSession]:
        """All of them; raises `SessionsUnusable`."""
        try:
            file = os.open(self._file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(file, "rb") as handle:
                _ensure_private(self._file, os.fstat(handle.fileno()))
                return msgspec.json.decode(handle.read(), type=dict[str, HubSession])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SessionsUnusable(f"{self._file} cannot be read: {error.strerror}") from error
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise SessionsUnusable(f"{self._file} is damaged; delete it and sign in") from error

    def find(self, url: str) -> HubSession:
        """The session at a Hub; raises `NotSignedIn`."""
        session = self.read().get(url)
        if session is None:
            raise NotSignedIn(url)
        return session

    def keep(self, url: str, session: HubSession | None) -> None:
        """Keep a session in the place of the one before; None forgets it. Only with the lock."""
        sessions = self.read()
        sessions.pop(url, None)
        if session is not None:
            sessions[url] = session
        file, unfinished = mkstemp(prefix=f".{SESSIONS_FILE}.", dir=self._folder)
        try:
            with os.fdopen(file, "wb") as handle:
                handle.write(msgspec.json.encode(sessions))
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(unfinished, self._file)  # noqa: PTH105 - a name, not a path of ours
        except OSError:
            os.unlink(unfinished)  # noqa: PTH108 - the same
            raise

    def try_lock(self) -> int | None:
        """Be the only program that changes what is kept, until `unlock`; None where another is."""
        # Not every system has it, and only whoever keeps sessions needs it.
        import fcntl  # noqa: PLC0415

        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self._folder / f".{SESSIONS_FILE}.lock"
        file = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _PRIVATE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        return file

    def unlock(self, lock: int) -> None:
        os.close(lock)


def _ensure_private(path: Path, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise SessionsUnusable(f"{path} is not a file")
    if about.st_uid not in (0, os.geteuid()) or stat.S_IMODE(about.st_mode) & _OTHERS:
        raise SessionsUnusable(f"{path} is open to other users; sign out, and sign in again")

"""What goes wrong between a client and an Edge or a Hub, each with a stable `code`.

    ClientError
    ├── MissingExtra       the libraries of `factwire[client]` are not installed
    ├── AddressInvalid     what was given is no address of an Edge
    ├── TokenUnusable      no token was found, or one that fits into no header
    ├── NotSignedIn        nobody is signed in to the Hub, or no longer
    ├── SessionsUnusable   the file of sessions cannot be used
    ├── DeviceUnknown      no device has this name or id
    ├── DeviceAmbiguous    several devices are meant
    ├── EdgeUnreachable    nobody answers there, or no longer
    ├── EdgeProblem        the Edge or the Hub refused, and says why
    ├── UnreadableAnswer   what answered speaks another language
    ├── StreamEnded        a stream was closed in a way that coming again would not help
    ├── CursorLost         a stream cannot go on from this cursor; take a snapshot
    └── PatchFailed        a change does not fit the state that it should change

No message ever holds a token.
"""

from collections.abc import Mapping
from typing import Any, Literal


class ClientError(Exception):
    """The root; `code` never changes, the words may."""

    code = "client_error"


class MissingExtra(ClientError, ImportError):
    """A library is missing that the client needs."""

    code = "missing_extra"

    def __init__(self, library: str) -> None:
        super().__init__(
            f"the client needs {library}, which is not installed; install 'factwire[client]'"
        )


class AddressInvalid(ClientError):
    """What was given is no address of an Edge."""

    code = "address_invalid"


class TokenUnusable(ClientError):
    """No token was found, or one that cannot be one."""

    code = "token_unusable"


class NotSignedIn(ClientError):
    """There is no session at a Hub, or it is over."""

    code = "not_signed_in"

    def __init__(self, url: str, reason: str | None = None) -> None:
        why = "" if reason is None else f" ({reason})"
        super().__init__(f"sign in with `factwire login {url}` first{why}")


class SessionsUnusable(ClientError):
    """The file in which sessions are kept cannot be used."""

    code = "hub_sessions_unusable"


class DeviceUnknown(ClientError):
    """None of the devices that somebody may see is meant."""

    code = "unknown_device"


class DeviceAmbiguous(ClientError):
    """More than one device is meant."""

    code = "device_ambiguous"


Server = Literal["Edge", "Hub"]


class EdgeUnreachable(ClientError):
    """Nobody answers there; `code` says whether an Edge was expected, or a Hub."""

    code = "edge_unreachable"

    def __init__(self, url: str, reason: str, server: Server = "Edge") -> None:
        self.url = url
        self.code = f"{server.lower()}_unreachable"
        start = "start one with 'factwire edge', or " if server == "Edge" else ""
        super().__init__(f"no {server} answers at {url} ({reason}); {start}check the address")


class EdgeProblem(ClientError):
    """The Edge refused. `status` is HTTP's, `members` are what else its document says."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        trace_id: str | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.trace_id = trace_id
        self.members: dict[str, Any] = dict(members or {})
        super().__init__(f"{code}: {detail}")


class UnreadableAnswer(ClientError):
    """What answered is no Edge, or one of another version."""

    code = "unreadable_answer"


class StreamEnded(ClientError):
    """A stream was closed for good; `close_code` is the WebSocket's."""

    code = "stream_ended"

    def __init__(self, close_code: int, reason: str) -> None:
        self.close_code = close_code
        super().__init__(f"the stream was closed with {close_code} ({reason or 'no reason'})")


class CursorLost(ClientError):
    """A stream cannot be resumed exactly. Read the state at `snapshot_url`, then begin a stream at
    `as_of_cursor`; `code` says whether the cursor expired or was never one.
    """

    def __init__(
        self, code: str, message: str, *, snapshot_url: str | None, as_of_cursor: str | None
    ) -> None:
        self.code = code
        self.snapshot_url = snapshot_url
        self.as_of_cursor = as_of_cursor
        super().__init__(f"{code}: {message}")


class PatchFailed(ClientError, ValueError):
    """An operation that cannot be carried out; nothing has changed."""

    code = "patch_failed"

"""What goes wrong between a client and an Edge, each with a stable `code`.

    ClientError
    ├── MissingExtra       the libraries of `factwire[client]` are not installed
    ├── AddressInvalid     what was given is no address of an Edge
    ├── TokenUnusable      no token was found, or one that fits into no header
    ├── EdgeUnreachable    nobody answers there, or no longer
    ├── EdgeProblem        the Edge refused, and says why
    ├── UnreadableAnswer   what answered speaks another language
    ├── StreamEnded        a stream was closed in a way that coming again would not help
    ├── CursorLost         a stream cannot go on from this cursor; take a snapshot
    └── PatchFailed        a change does not fit the state that it should change

No message ever holds a token.
"""

from collections.abc import Mapping
from typing import Any


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


class EdgeUnreachable(ClientError):
    """Nobody answers there."""

    code = "edge_unreachable"

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        super().__init__(
            f"no Edge answers at {url} ({reason}); start one with 'factwire edge', or check the "
            "address"
        )


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

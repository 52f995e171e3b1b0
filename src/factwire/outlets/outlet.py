"""`Outlet`: facts of one thread, encoded for clients of an outside protocol; every outlet by name.

Pure and incremental: what a fact becomes is given at once, and only the facts before it matter.
What comes out is written one object to a line, or as server-sent events.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

import msgspec

from factwire.facts import Fact
from factwire.outlets.ag_ui import AgUiOutlet
from factwire.outlets.ai_sdk import AiSdkOutlet

Framing = Literal["lines", "events"]

DONE: Final = b"data: [DONE]\n\n"
"""What some clients expect at the end of a stream of events."""

_ENCODER: Final = msgspec.json.Encoder()


def frame_item(item: dict[str, Any], framing: Framing) -> bytes:
    """The bytes of one object."""
    encoded = _ENCODER.encode(item)
    return b"data: " + encoded + b"\n\n" if framing == "events" else encoded + b"\n"


class Outlet(Protocol):
    """One stream to one client. Facts come once each, in the order of their thread."""

    def take(self, fact: Fact) -> list[dict[str, Any]]:
        """What the client is told of a fact; often nothing."""
        ...

    def finish(self) -> list[dict[str, Any]]:
        """What it is told when no fact comes any more."""
        ...


class OutletKind(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said of an outlet: `source` is the source that reads its stream back, and `last`
    is what its stream of events ends with.
    """

    name: str
    title: str
    source: str
    make: Callable[[], Outlet]
    last: bytes = b""


class UnknownOutlet(Exception):
    """Nobody encodes for clients of this name."""

    code = "unknown_outlet"

    def __init__(self, name: str) -> None:
        super().__init__(f"expected one of the outlets {', '.join(OUTLETS)}, got {name!r}")


def find_outlet(name: str) -> OutletKind:
    """An outlet by name; raises `UnknownOutlet`."""
    if name not in OUTLETS:
        raise UnknownOutlet(name)
    return OUTLETS[name]


_KINDS: Final = (
    OutletKind(name="ag-ui", title="AG-UI 1.0", source="ag-ui", make=AgUiOutlet),
    OutletKind(name="ai-sdk", title="AI SDK 7", source="ai-sdk", make=AiSdkOutlet, last=DONE),
    OutletKind(
        name="ai-sdk-5",
        title="AI SDK 5",
        source="ai-sdk",
        make=lambda: AiSdkOutlet(version=5),
        last=DONE,
    ),
    OutletKind(
        name="ai-sdk-6",
        title="AI SDK 6",
        source="ai-sdk",
        make=lambda: AiSdkOutlet(version=6),
        last=DONE,
    ),
)
OUTLETS: Final[dict[str, OutletKind]] = {kind.name: kind for kind in _KINDS}
"""Every outlet, by name."""

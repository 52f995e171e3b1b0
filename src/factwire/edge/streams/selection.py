"""`Selection`: which facts a reader wants, and in whose words.

Readers with the same selection share one channel. The cursor belongs to none: it is a place in the
journal and is valid under every selection.
"""

from typing import Literal

import msgspec

from factwire.edge.events import View
from factwire.journal import Filter

Face = Literal["events", "facts"]
Wire = Literal["socket", "sse"]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is read; `types` are types of envelopes and stand for all below them, as classes do."""

    face: Face
    view: View = "runtime"
    filter: Filter | None = None
    types: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """Whether a type of envelope is among those named."""
        return not self.types or any(
            name == wanted or name.startswith(f"{wanted}.") for wanted in self.types
        )

"""The AI SDK's UI message stream, as chunks of version 5, 6 or 7.

A turn is one message of the assistant, and a request to a model begins a step of it. What a version
has no chunk for stands in a data part of ours (`data-factwire-…`), which a client shows or leaves
alone, and which our own source reads back. A subagent never speaks in the answer: its words are
data parts, and its calls are marked as its own.
"""

from typing import Any

from factwire.facts import Fact
from factwire.outlets.ai_sdk_chunks import Address, Chunks
from factwire.outlets.ai_sdk_versions import Version
from factwire.outlets.narrator import Narrator


class AiSdkOutlet:
    """Encodes the facts of one thread; `take` gives the chunks of a fact."""

    def __init__(self, *, version: Version = 7, address: Address | None = None) -> None:
        self._wire = Chunks(version, address or _nowhere)
        self._narrator = Narrator(self._wire)

    def take(self, fact: Fact) -> list[dict[str, Any]]:
        self._narrator.take(fact)
        return self._wire.drain()

    def finish(self) -> list[dict[str, Any]]:
        """No fact comes any more."""
        self._narrator.finish()
        return self._wire.drain()


def _nowhere(ref: str) -> str | None:
    del ref
    return None

"""`Envelope`: a fact in the Edge's words, at the fact's own place in the journal."""

from typing import Any, Final, Literal

import msgspec

VERSION: Final = "v1"


class Scope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """What an event is about; ids that its fact does not have are absent."""

    project_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    item_id: str | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """One event. `id` leads to its fact, `seq` is the fact's, `cursor` is where to resume after it;
    `type` decides what `payload` is. `sent_at` is the fact's own time, which orders nothing.
    """

    version: Literal["v1"]
    id: str
    seq: int
    type: str
    scope: Scope
    trace_id: str
    sent_at: str
    payload: Any
    cursor: str

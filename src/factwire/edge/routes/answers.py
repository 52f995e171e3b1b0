"""Answers that are more than one row, typed, so that the interface is described exactly.

Those whose bytes are put together elsewhere, because they exist already, are here as well: a
handler names them in `opt` under `ANSWERS`.
"""

from typing import Any, Final, Self

import msgspec

from factwire.edge.events import Envelope
from factwire.edge.events.frames import FactFrame
from factwire.edge.events.thing_payloads import Item
from factwire.edge.records.rows import Artifact, Run, Task
from factwire.projection import ProjectionState, TaskSnapshot, ThreadReadModel
from factwire.projection.artifacts import Artifact as ArtifactState
from factwire.runtime.submission import Steered, SteeredAs

ANSWERS: Final = "answers"
"""Key of `opt`: the type of what a handler answers, where its bytes are made elsewhere."""

CONTENT: Final = "content"
"""Key of `opt`: the media type of an answer that is bytes of somebody else's."""

ALSO: Final = "also"
"""Key of `opt`: other statuses that carry the same type."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The root of these answers."""


class ItemPage(Answer, frozen=True):
    """Items of a thread, oldest first; without `next` there are no more. `as_of` is the cursor from
    which the thread's events go on.
    """

    items: list[Item]
    as_of: str
    next: str | None = None


class ThreadState(Answer, frozen=True):
    """The projection of a thread at a cursor; its stream of changes goes on from there."""

    thread_id: str
    as_of: str
    state: ProjectionState


class ThreadOverview(Answer, frozen=True):
    """What a first screen of a thread needs, at a cursor."""

    as_of: str
    read_model: ThreadReadModel


class SteerAnswer(Answer, frozen=True):
    """What became of words for a run that is under way. They wait for it (`pending`), were taken
    (`delivered`), or are a run of their own, which was `started` or is `queued`.
    """

    steer_id: str
    thread_id: str
    turn_id: str
    status: SteeredAs

    @classmethod
    def of(cls, steered: Steered) -> Self:
        return cls(**msgspec.structs.asdict(steered))


class MessageAnswer(Answer, frozen=True):
    """The run that a message led to, or what became of it as a steer."""

    run: Run | None = None
    steered: SteerAnswer | None = None


class ArtifactAnswer(Answer, frozen=True):
    """An artifact, with its versions as the projection of its thread has them."""

    artifact: Artifact
    as_of: str
    details: ArtifactState | None = None


class TaskAnswer(Answer, frozen=True):
    """A task, with its attempts and dependencies as the projection of its thread has them."""

    task: Task
    as_of: str
    snapshot: TaskSnapshot | None = None


class StoredBlob(Answer, frozen=True):
    """Content that was stored, by the ref under which a message can attach it."""

    ref: str
    bytes: int


class EventPage(Answer, frozen=True):
    """Envelopes, oldest first; `cursor` is where the next page begins, `more` whether there is one
    now.
    """

    items: list[Envelope]
    cursor: str
    more: bool


class FactPage(Answer, frozen=True):
    """Facts, oldest first; `cursor` is where the next page begins, `more` whether there is one
    now.
    """

    items: list[FactFrame]
    cursor: str
    more: bool


def declared(kind: type[Any]) -> dict[str, Any]:
    """The `opt` of a handler whose bytes are a `kind`."""
    return {ANSWERS: kind}


def bytes_of(media_type: str = "application/octet-stream") -> dict[str, Any]:
    """The `opt` of a handler that answers with content."""
    return {CONTENT: media_type}

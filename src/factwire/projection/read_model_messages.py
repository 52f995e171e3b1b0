"""Messages in a read model: what was written, with a measure of each text.

A text that was cut on its way reads like a whole one, so each text comes with the length and the
digest of all of it. A text is restored as final, or as one that the next delta continues, only
where they match. Any other reads `stale`: deltas go on behind it, and only a fact with the whole
text makes it good.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, TypeVar

import msgspec

from factwire.projection.hydration import Hydration
from factwire.projection.limits import READ_MODEL_MESSAGES, READ_MODEL_TEXT_CHARACTERS
from factwire.projection.messages import (
    ArtifactCardPart,
    DiagnosticRefPart,
    EvidenceCitationPart,
    Message,
    MessageStatus,
    Part,
    PartState,
    ReasoningPart,
    TextPart,
    ToolPreviewPart,
    kind_of_part,
)
from factwire.projection.views import Text, View

STALE: Final = "stale"

_DIGEST_BYTES: Final = 16


class TextSnapshot(View, tag_field="type", tag="text"):
    """A text, or the first characters of a longer one. `length` and `digest` are those of the
    whole text as far as it was written; where pieces of it may be missing, there are none.
    """

    part_id: str
    message_id: str
    text: str
    state: PartState
    length: int | None = None
    digest: str | None = None


class ReasoningSnapshot(View, tag_field="type", tag="reasoning"):
    """A summary of reasoning, with length and digest as a text has them."""

    part_id: str
    message_id: str
    summary: str
    characters: int
    state: PartState
    length: int | None = None
    digest: str | None = None
    encrypted_ref: str | None = None


SnapshotPart = (
    TextSnapshot
    | ReasoningSnapshot
    | ToolPreviewPart
    | ArtifactCardPart
    | EvidenceCitationPart
    | DiagnosticRefPart
)


class MessageSnapshot(View):
    """One message at the moment of a read model."""

    message_id: str
    role: str
    status: MessageStatus
    parts: list[SnapshotPart]
    sequence: int | None = None
    turn_id: str | None = None
    thread_id: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    task_id: str | None = None
    optimistic_id: str | None = None
    input_refs: list[str] | None = None
    origin_thread_id: str | None = None
    created_at: str | None = None
    completed_at: str | None = None


Target = TypeVar("Target", bound=msgspec.Struct)


def copy_fields(source: msgspec.Struct, kind: type[Target], /, **fields: object) -> Target:
    """Another view with the fields that both have, and those that are passed."""
    names = [name for name in kind.__struct_fields__ if name in source.__struct_fields__]
    shared = {name: getattr(source, name) for name in names if name not in fields}
    return kind(**shared, **fields)


def digest_text(text: str) -> str:
    """What tells a text from any other, and from a piece of it."""
    data = text.encode("utf-8", "surrogatepass")
    return f"blake2b:{blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()}"


def latest_messages(messages: list[Message]) -> list[Message]:
    """The messages of a first screen: the latest, and every earlier one that is still open."""
    cut = max(0, len(messages) - READ_MODEL_MESSAGES)
    still_open = [each for each in messages[:cut] if each.status in ("streaming", STALE)]
    return [*still_open, *messages[cut:]]


def take_snapshot(message: Message, hydration: Hydration) -> MessageSnapshot:
    """A message as it is now; later facts do not change it."""
    lost = has_lost_facts(hydration, message.thread_id)
    lacks_facts = lost or "gap_reported" in hydration.reasons
    parts = [_snapshot_part(part, lacks_facts=lacks_facts) for part in message.parts]
    texts = [part for part in parts if isinstance(part, TextSnapshot | ReasoningSnapshot)]
    status = message.status
    if status == "streaming" and any(part.state == STALE for part in texts):
        status = STALE
    return copy_fields(message, MessageSnapshot, parts=parts, status=status)


def has_lost_facts(hydration: Hydration, thread_id: str | None = None) -> bool:
    """Whether facts are missing before those that a state was made of, on its own thread or on a
    child's. A gap behind the cursor is lost; one before it is still to come, and so are the facts
    after it.
    """
    cursor = hydration.cursor or 0
    return any(
        gap.from_sequence <= cursor if gap.thread_id is None else gap.thread_id == thread_id
        for gap in hydration.gaps
    )


def _snapshot_part(part: Part, *, lacks_facts: bool) -> SnapshotPart:
    if not isinstance(part, TextPart | ReasoningPart):
        return msgspec.structs.replace(part)
    text = str(part.text if isinstance(part, TextPart) else part.summary)
    is_doubtful = part.state == "streaming" and (lacks_facts or part.settles is not None)
    state: PartState = STALE if is_doubtful else part.state
    whole = state != STALE
    measure = {"length": len(text), "digest": digest_text(text)} if whole else {}
    shown = text[:READ_MODEL_TEXT_CHARACTERS]
    if isinstance(part, TextPart):
        return copy_fields(part, TextSnapshot, text=shown, state=state, **measure)
    return copy_fields(part, ReasoningSnapshot, summary=shown, state=state, **measure)


def restore_message(snapshot: MessageSnapshot, existing: Message | None = None) -> Message:
    """The message that a snapshot states. Where the snapshot holds only the beginning of a text
    that is whole in the existing message, that text stays.
    """
    own = {} if existing is None else {_part_key(part): part for part in existing.parts}
    restored = {
        _snapshot_key(part): _restore_part(part, own.get(_snapshot_key(part)))
        for part in snapshot.parts
    }
    parts = [
        restored.pop(key, part)
        for key, part in own.items()
        if key in restored or not isinstance(part, TextPart | ReasoningPart)
    ]
    parts += restored.values()
    status = snapshot.status
    states = {part.state for part in parts if isinstance(part, TextPart | ReasoningPart)}
    if status != "retracted" and STALE in states:
        status = STALE
    return copy_fields(snapshot, Message, parts=parts, status=status)


def texts_in(message: Message) -> Iterator[TextPart | ReasoningPart]:
    """The parts of a message that hold text."""
    for part in message.parts:
        if isinstance(part, TextPart | ReasoningPart):
            yield part


def _part_key(part: Part) -> tuple[str, str]:
    return kind_of_part(part), part.part_id


def _snapshot_key(part: SnapshotPart) -> tuple[str, str]:
    return str(part.__struct_config__.tag), part.part_id


def _restore_part(part: SnapshotPart, existing: Part | None) -> Part:
    if isinstance(part, TextSnapshot):
        before = str(existing.text) if isinstance(existing, TextPart) else ""
        text, state = _restore_text(part, part.text, before)
        return copy_fields(part, TextPart, text=Text(text), state=state)
    if isinstance(part, ReasoningSnapshot):
        before = str(existing.summary) if isinstance(existing, ReasoningPart) else ""
        text, state = _restore_text(part, part.summary, before)
        return copy_fields(part, ReasoningPart, summary=Text(text), state=state)
    return part


def _restore_text(
    part: TextSnapshot | ReasoningSnapshot, stated: str, before: str
) -> tuple[str, PartState]:
    """The text to show, and its state: what the snapshot states of it where it is whole."""
    for text in (stated, before):
        if is_whole(part, text):
            return text, part.state
    return max(stated, before, key=len), STALE


def is_whole(part: TextSnapshot | ReasoningSnapshot, text: str) -> bool:
    """Whether a text is all of what a snapshot measured."""
    return part.length == len(text) and part.digest == digest_text(text)

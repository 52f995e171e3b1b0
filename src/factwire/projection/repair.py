"""Repair: snapshots of messages, patches of shared state, and what a snapshot may settle.

A snapshot stands in for facts that are missing. It never completes a tool or an action, and it
never takes away an open action or a failed tool; only messages can be replaced by one.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.projection import hydration, messages
from factwire.projection.changes import Operation
from factwire.projection.diagnostics import remark
from factwire.projection.json_patch import Document, PatchFailed
from factwire.projection.parts import Message, Part, TextPart
from factwire.projection.reading import listed, number, table, word, words
from factwire.projection.text import Text

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

REPAIRS: Final = frozenset(
    {"snapshot.repaired", "stream.repair.completed", "history.reconstructed"}
)
SNAPSHOTS: Final = frozenset({"snapshot.updated", "state.snapshot", "messages.snapshot"})
PATCHED_ROOT: Final = "shared"


def covered_by(fact: Fact) -> int | None:
    """The last sequence that a fact stands in for, if it is a repair or a snapshot that says so."""
    name = fact.event_class or ""
    if name not in REPAIRS and name not in SNAPSHOTS:
        return None
    stated = number(fact.payload, "toSequence", "to_sequence", "lastSequence")
    if stated is not None:
        # A snapshot cannot know of facts that come after it.
        return int(stated if fact.sequence is None else min(stated, fact.sequence - 1))
    holds_content = name == "messages.snapshot" or isinstance(fact.payload.get("messages"), list)
    if (name in REPAIRS or holds_content) and fact.sequence is not None:
        return fact.sequence - 1
    return None


def messages_snapshot(canvas: "Canvas", fact: Fact) -> None:
    """The messages as they are: named ones are replaced, absent ones taken back.

    What began after the place that the snapshot covers is newer than it, and stays.
    """
    rows = listed(fact.payload.get("messages"))
    for message_id in words(fact.payload.get("retractedMessageIds")):
        messages.retract(canvas, message_id)
    if rows is None:
        return
    covered = covered_by(fact)
    found = _messages(rows, fact)
    named = {message.message_id for message in found}
    newer = [
        message
        for message in canvas.state.messages
        if message.message_id not in named and _is_newer(message, covered)
    ]
    _replace(canvas, [*_kept_parts(canvas, found), *newer])


def window_loaded(canvas: "Canvas", fact: Fact) -> None:
    """Older messages that were fetched: they go before those that are there."""
    rows = listed(fact.payload.get("messages"))
    if rows is None:
        return
    found = _messages(rows, fact)
    known = canvas.memory.names
    older = [message for message in found if message.message_id not in known]
    if older:
        _replace(canvas, [*older, *canvas.state.messages])


def rolled_back(canvas: "Canvas", fact: Fact) -> None:
    """History goes back to a place: what was said after it is taken back."""
    target = number(fact.payload, "toSequence", "to_sequence")
    for message in list(canvas.state.messages):
        after = target is not None and message.sequence is not None and message.sequence > target
        if after:
            messages.retract(canvas, message.message_id)
    for name in ("retractedMessageIds", "removedMessageIds"):
        for message_id in words(fact.payload.get(name)):
            messages.retract(canvas, message_id)
    if isinstance(fact.payload.get("messages"), list):
        messages_snapshot(canvas, fact)


def state_delta(canvas: "Canvas", fact: Fact) -> None:
    """A patch of the shared state, whole or not at all."""
    document = Document({PATCHED_ROOT: canvas.state.shared})
    sent: list[Operation] = []
    try:
        document.patch(_told(document, _checked(_patch_of(fact)), sent))
    except PatchFailed as error:
        remark(canvas, fact, "state_delta_failed", str(error))
        hydration.doubt(canvas, "state_delta_failed")
        return
    canvas.state.shared = document.root[PATCHED_ROOT]
    canvas.ops.extend(sent)


def state_snapshot(canvas: "Canvas", fact: Fact) -> None:
    """A snapshot in the stream: its messages and shared state, where it carries them."""
    shared = table(fact.payload.get(PATCHED_ROOT, fact.payload.get("state")))
    if shared is not None:
        canvas.put(canvas.state, "", PATCHED_ROOT, deepcopy(shared))
    if isinstance(fact.payload.get("messages"), list):
        messages_snapshot(canvas, fact)


def gap_reported(canvas: "Canvas", fact: Fact) -> None:
    remark(canvas, fact, "stream_gap_reported", word(fact.payload, "reason") or fact.title)
    hydration.doubt(canvas, "gap_reported")


def repair_started(canvas: "Canvas", _: Fact) -> None:
    hydration.doubt(canvas, "repair_started")


def _patch_of(fact: Fact) -> object:
    return fact.payload.get("patch", fact.payload.get("operations"))


def _checked(patch: object) -> list[dict[str, Any]]:
    operations = listed(patch)
    if operations is None:
        raise PatchFailed("expected a list of operations")
    return [_allowed(operation) for operation in operations]


def _allowed(operation: object) -> dict[str, Any]:
    fields = table(operation)
    if fields is None:
        raise PatchFailed("expected an operation, which is an object")
    if fields.get("op") == "append":
        raise PatchFailed("append is no operation of JSON Patch")
    for place in (fields.get("path"), fields.get("from", f"/{PATCHED_ROOT}/")):
        if not isinstance(place, str) or place.split("/")[:2] != ["", PATCHED_ROOT]:
            raise PatchFailed(f"only what is under /{PATCHED_ROOT} can be patched, not {place!r}")
    is_root = fields["path"] == f"/{PATCHED_ROOT}"
    if is_root and (fields.get("op") == "remove" or not isinstance(fields.get("value"), dict)):
        raise PatchFailed(f"/{PATCHED_ROOT} is always an object")
    return fields


def _told(
    document: Document, operations: list[dict[str, Any]], sent: list[Operation]
) -> Iterator[dict[str, Any]]:
    """Each operation just before it is carried out, and what copies of the state must do."""
    for operation in operations:
        name, path = operation.get("op"), operation["path"]
        if name in ("move", "copy"):
            source = operation.get("from", "")
            value = deepcopy(document.at(source))
            if name == "move":
                sent.append(Operation("remove", source))
            sent.append(Operation("add", path, value))
        elif name in ("add", "replace"):
            sent.append(Operation(name, path, deepcopy(operation.get("value"))))
        elif name == "remove":
            sent.append(Operation("remove", path))
        yield operation


def _messages(rows: list[Any], fact: Fact) -> list[Message]:
    return [_message(fields, fact) for row in rows if (fields := table(row)) is not None]


def _message(fields: dict[str, Any], fact: Fact) -> Message:
    message_id = word(fields, "messageId", "message_id", "id") or fact.id
    return Message(
        message_id=message_id,
        role=word(fields, "role") or "assistant",
        status="final",
        sequence=fact.sequence,
        parts=[
            TextPart(part_id=part_id, message_id=message_id, text=Text(text), state="final")
            for part_id, text in _texts(fields, message_id)
        ],
        turn_id=word(fields, "turnId", "turn_id"),
        thread_id=fact.thread_id,
        agent_id=word(fields, "agentId", "agent_id"),
        subagent_id=word(fields, "subagentId", "subagent_id"),
        created_at=word(fields, "createdAt", "created_at") or fact.created_at,
        completed_at=word(fields, "completedAt", "completed_at"),
    )


def _texts(row: dict[str, Any], message_id: str) -> list[tuple[str, str]]:
    parts = row.get("parts", row.get("content"))
    if isinstance(parts, str) or parts is None:
        text = parts if isinstance(parts, str) else word(row, "text")
        return [(f"{message_id}:text", text)] if text else []
    found: list[tuple[str, str]] = []
    for item in listed(parts) or ():
        fields = table(item) or {}
        text = word(fields, "text")
        if fields.get("type", "text") == "text" and text is not None:
            own = f"{message_id}:text" + (f":{len(found)}" if found else "")
            found.append((word(fields, "partId", "part_id") or own, text))
    return found


def _is_newer(message: Message, covered: int | None) -> bool:
    if message.status == "streaming" or covered is None:
        return message.status == "streaming"
    return message.sequence is not None and message.sequence > covered


def _kept_parts(canvas: "Canvas", found: list[Message]) -> list[Message]:
    """Snapshots carry text; the tools, cards and citations of a known message stay in it."""
    for message in found:
        place = canvas.memory.names.get(message.message_id)
        if place is None:
            continue
        known = canvas.state.messages[place]
        others: list[Part] = [part for part in known.parts if not isinstance(part, TextPart)]
        message.parts = [*message.parts, *others]
        message.sequence = known.sequence
        message.turn_id = message.turn_id or known.turn_id
        message.optimistic_id = known.optimistic_id
    return found


def _replace(canvas: "Canvas", found: list[Message]) -> None:
    canvas.put(canvas.state, "", "messages", found)
    canvas.memory.index_messages(canvas.state.messages)

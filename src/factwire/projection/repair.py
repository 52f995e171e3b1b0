"""Repair: snapshots of messages, patches of shared state, and what a snapshot may settle.

A snapshot stands in for facts that are missing. It never completes a tool or an action, and it
never takes away an open action or a failed tool; only messages can be replaced by one.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.inspection import carries_messages, repaired_range
from factwire.facts.json_patch import InvalidPatch, JsonDocument
from factwire.facts.json_values import list_at, number_at, object_at, text_at, texts_of
from factwire.facts.limits import NESTING_DEPTH, PAYLOAD_CHARACTERS, SEQUENCE_MAX
from factwire.projection import hydration, messages
from factwire.projection.changes import Operation
from factwire.projection.diagnostics import add_remark
from factwire.projection.messages import Message, Part, PartState, TextPart
from factwire.projection.payload_fields import shorten_detail
from factwire.projection.views import Text

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft
    from factwire.projection.hydration import Lane

REPAIRS: Final = frozenset(
    {"snapshot.repaired", "stream.repair.completed", "history.reconstructed"}
)
SNAPSHOTS: Final = frozenset({"snapshot.updated", "state.snapshot", "messages.snapshot"})
PATCHED_ROOT: Final = "shared"


def covered_sequence(fact: Fact) -> int | None:
    """The last sequence that a fact stands in for, if it is a repair or a snapshot that says so."""
    name = fact.event_class or ""
    if name not in REPAIRS and name not in SNAPSHOTS:
        return None
    stated = _last_sequence(fact)
    if stated is not None:
        # A snapshot cannot know of facts that come after it.
        last = SEQUENCE_MAX if fact.sequence is None else fact.sequence - 1
        return max(-SEQUENCE_MAX, int(min(stated, last)))
    if is_window(fact):
        return None
    holds_content = name == "messages.snapshot" or carries_messages(fact)
    if (name in REPAIRS or holds_content) and fact.sequence is not None:
        return fact.sequence - 1
    return None


def _last_sequence(fact: Fact) -> float | None:
    return number_at(fact.payload, "toSequence", "to_sequence", "lastSequence")


def is_window(fact: Fact) -> bool:
    """Whether messages of a UI are, or may be, a window of history, which covers nothing but what
    it carries: they state neither how far they reach nor that they are all there are.
    """
    is_whole = fact.phase in (None, "reconciling") or _last_sequence(fact) is not None
    return fact.event_class == "messages.snapshot" and not is_whole


def cover_lane(lane: "Lane", fact: Fact) -> None:
    """Note what a fact stands in for: the messages that it carries, and where it is a repair,
    everything in the range that it states. One that carries no messages stands in for nothing.
    """
    covered = covered_sequence(fact)
    if covered is None or not carries_messages(fact):
        return
    stated = repaired_range(fact) if fact.event_class in REPAIRS else None
    if stated is None:
        lane.cover_messages(covered)
    else:
        lane.cover(*stated)


def lacks_facts(draft: "StateDraft", lanes: "list[Lane]", fact: Fact) -> bool:
    """Whether facts from before a snapshot or a repair are missing, be it that they were passed
    over because it stands in for them. What is still held comes after it.
    """
    if draft.state.hydration.reasons:
        return True
    stated = repaired_range(fact) if fact.event_class in REPAIRS else None
    return any(
        lane.lost
        or lane.uncovered
        or lane.earlier
        or (stated is not None and lane.misses_between(*stated))
        for lane in lanes
    )


_SETTLED_ELSEWHERE: Final = frozenset({"state_delta_failed", "parent_left_out"})
"""Doubts about what no message that a repair carries can stand in for."""


def settle_repair(draft: "StateDraft", lane: "Lane", lanes: "Iterable[Lane]", fact: Fact) -> None:
    """End what was in doubt as far as a repair covers it: everything in the range that it states
    the messages of, and a gap that was reported where no fact of the range is missing. A repair on
    the thread of a child says nothing of this one, and the other way round.
    """
    if fact.event_class == "stream.repair.completed":
        hydration.clear_doubt(draft, hydration.name_doubt(draft, fact, "repair_started"))
    stated, is_child = repaired_range(fact), lane.thread_id is not None
    doubted = None if is_child else draft.state.hydration.doubted_at
    if stated is None or (doubted is not None and doubted > stated[1]):
        return
    if not carries_messages(fact):
        if not lane.misses_between(*stated):
            hydration.clear_doubt(draft, hydration.name_doubt(draft, fact, "gap_reported"))
        return
    lacks_beginning = (
        any(each.lacks_beginning() for each in lanes if each.thread_id is not None)
        if is_child
        else stated[0] > 1
    )
    for reason in draft.state.hydration.reasons:
        starts_late = reason.endswith("starts_late") and lacks_beginning
        is_here = hydration.is_of_child(reason) is is_child and reason not in _SETTLED_ELSEWHERE
        if is_here and not starts_late:
            hydration.clear_doubt(draft, reason)


def apply_messages_snapshot(draft: "StateDraft", fact: Fact) -> None:
    """The messages as they are: named ones are replaced, absent ones taken back.

    What began after the place that the snapshot covers is newer than it, and stays. The snapshot is
    the source's own word and counts, but text that it takes away is remarked.
    """
    rows = list_at(fact.payload.get("messages"))
    retract_named(draft, fact)
    if rows is None or _is_outdated(draft, fact):
        return
    covered = covered_sequence(fact)
    found = _build_messages(draft, rows, fact)
    named = {message.message_id for message in found}
    newer = [
        message
        for message in draft.state.messages
        if message.message_id not in named and _is_newer(message, covered)
    ]
    if fact.event_class != "history.rollback.completed":
        _remark_lost_text(draft, fact, [*found, *newer])
    _replace_messages(draft, [*found, *newer])
    if covered is not None and covered >= (draft.state.hydration.doubted_at or covered):
        hydration.clear_doubt(draft, "messages_missing")


def retract_named(draft: "StateDraft", fact: Fact) -> None:
    """Take back the messages that a fact says no longer count."""
    for message_id in texts_of(fact.payload.get("retractedMessageIds")):
        messages.retract_message(draft, message_id)


def _remark_lost_text(draft: "StateDraft", fact: Fact, kept: list[Message]) -> None:
    """Name the messages of which a snapshot shows less text than facts did."""
    lengths: dict[str, int] = {}
    for message in kept:
        length = _text_length(message)
        lengths[message.message_id] = max(length, lengths.get(message.message_id, 0))
    shown = draft.state.messages
    lost = [
        each.message_id for each in shown if _text_length(each) > lengths.get(each.message_id, 0)
    ]
    if lost:
        names = shorten_detail(", ".join(lost))
        message = f"the snapshot leaves out or shortens {len(lost)} that facts had shown: {names}"
        add_remark(draft, fact, "snapshot_lacks_text", message)


def _text_length(message: Message) -> int:
    return sum(len(str(part.text)) for part in message.parts if isinstance(part, TextPart))


def add_older_messages(draft: "StateDraft", fact: Fact) -> None:
    """Older messages that were fetched: they go before those that are there."""
    rows = list_at(fact.payload.get("messages"))
    if rows is None:
        return
    found = _build_messages(draft, rows, fact)
    existing = draft.memory.names
    older = [message for message in found if message.message_id not in existing]
    for message in older:
        message.sequence = None  # Said before all that is here: no rollback takes it for new.
    if older:
        _replace_messages(draft, [*older, *draft.state.messages])


def merge_messages(draft: "StateDraft", fact: Fact) -> None:
    """Messages that may be all or some of those that were said: they repair ended ones that they
    name, and are added in front of all or beside those that they stand next to.
    """
    found = _build_messages(draft, list_at(fact.payload.get("messages")) or [], fact)
    named = {each.message_id: each for each in found if each.message_id in draft.memory.names}
    added: dict[str | None, list[Message]] = {}
    neighbour: str | None = None
    for message in found:
        if message.message_id in named:
            neighbour = message.message_id
        else:
            message.sequence = None
            added.setdefault(neighbour, []).append(message)
    first = next(iter(named), None)
    merged: list[Message] = [] if first else added.pop(None, [])
    for message in draft.state.messages:
        if message.message_id == first:
            merged += added.pop(None, [])
        stays = message.status == "retracted" or _is_unfinished(draft, message)
        merged.append(message if stays else named.get(message.message_id, message))
        merged += added.get(message.message_id, [])
    _remark_lost_text(draft, fact, merged)
    if found:
        _replace_messages(draft, merged)


def roll_back_messages(draft: "StateDraft", fact: Fact) -> None:
    """History goes back to a place: what was said after it is taken back."""
    target = number_at(fact.payload, "toSequence", "to_sequence")
    for message in list(draft.state.messages):
        after = target is not None and message.sequence is not None and message.sequence > target
        if after:
            messages.retract_message(draft, message.message_id)
    for name in ("retractedMessageIds", "removedMessageIds"):
        for message_id in texts_of(fact.payload.get(name)):
            messages.retract_message(draft, message_id)
    if isinstance(fact.payload.get("messages"), list):
        apply_messages_snapshot(draft, fact)


def patch_shared_state(draft: "StateDraft", fact: Fact) -> None:
    """A patch of the shared state, whole or not at all."""
    document = JsonDocument({PATCHED_ROOT: draft.state.shared})
    sent: list[Operation] = []
    try:
        document.patch(_apply_operations(document, _check_patch(_patch_of(fact)), sent))
    except InvalidPatch as error:
        add_remark(draft, fact, "state_delta_failed", shorten_detail(str(error)) or "")
        hydration.add_doubt(draft, "state_delta_failed", fact.sequence)
        return
    draft.state.shared = document.root[PATCHED_ROOT]
    draft.ops.extend(sent)


def apply_state_snapshot(draft: "StateDraft", fact: Fact) -> None:
    """A snapshot in the stream: its messages and shared state, where it carries them."""
    shared = object_at(fact.payload.get(PATCHED_ROOT, fact.payload.get("state")))
    if shared is not None and not _is_outdated(draft, fact):
        draft.put(draft.state, "", PATCHED_ROOT, deepcopy(shared))
        hydration.clear_doubt(draft, "state_delta_failed")
    if isinstance(fact.payload.get("messages"), list):
        apply_messages_snapshot(draft, fact)


def _is_outdated(draft: "StateDraft", fact: Fact) -> bool:
    """Whether a snapshot is older than a state that misses nothing, and so has nothing to add."""
    covered, now = covered_sequence(fact), draft.state.hydration
    if covered is None or now.cursor is None or covered >= now.cursor:
        return False
    if draft.memory.lacks_facts:
        return False
    message = f"a snapshot up to {covered} came when {now.cursor} was known; it was left aside"
    add_remark(draft, fact, "snapshot_outdated", message, severity="info")
    return True


def report_gap(draft: "StateDraft", fact: Fact) -> None:
    add_remark(draft, fact, "stream_gap_reported", text_at(fact.payload, "reason") or fact.title)
    reason = hydration.name_doubt(draft, fact, "gap_reported")
    is_numbered = fact.sequence is not None and not hydration.is_of_child(reason)
    hydration.add_doubt(draft, reason, (fact.sequence or 0) - 1 if is_numbered else None)


def start_repair(draft: "StateDraft", fact: Fact) -> None:
    hydration.add_doubt(draft, hydration.name_doubt(draft, fact, "repair_started"))


def _patch_of(fact: Fact) -> object:
    return fact.payload.get("patch", fact.payload.get("operations"))


def _check_patch(patch: object) -> list[dict[str, Any]]:
    operations = list_at(patch)
    if operations is None:
        raise InvalidPatch("expected a list of operations")
    return [_check_operation(operation) for operation in operations]


def _check_operation(operation: object) -> dict[str, Any]:
    fields = object_at(operation)
    if fields is None:
        raise InvalidPatch("expected an operation, which is an object")
    if fields.get("op") == "append":
        raise InvalidPatch("append is no operation of JSON Patch")
    for place in (fields.get("path"), fields.get("from", f"/{PATCHED_ROOT}/")):
        if not isinstance(place, str) or place.split("/")[:2] != ["", PATCHED_ROOT]:
            raise InvalidPatch(f"only what is under /{PATCHED_ROOT} can be patched, not {place!r}")
    is_root = fields["path"] == f"/{PATCHED_ROOT}"
    if is_root and (fields.get("op") == "remove" or not isinstance(fields.get("value"), dict)):
        raise InvalidPatch(f"/{PATCHED_ROOT} is always an object")
    return fields


def _apply_operations(
    document: JsonDocument, operations: list[dict[str, Any]], sent: list[Operation]
) -> Iterator[dict[str, Any]]:
    """Each operation just before it is carried out, and what copies of the state must do."""
    for operation in operations:
        name, path = operation.get("op"), operation["path"]
        if name in ("move", "copy"):
            source = operation.get("from", "")
            found = document.at(source)
            _check_growth(path, found, copied=name == "copy")
            value = deepcopy(found)
            if name == "move":
                sent.append(Operation("remove", source))
            sent.append(Operation("add", path, value))
        elif name in ("add", "replace"):
            _check_growth(path, operation.get("value"))
            sent.append(Operation(name, path, deepcopy(operation.get("value"))))
        elif name == "remove":
            sent.append(Operation("remove", path))
        yield operation


def _check_growth(path: str, value: object, *, copied: bool = False) -> None:
    """Keep a state from growing in a few patches into what nobody can read or hold."""
    if path.count("/") + _nesting_depth(value) > NESTING_DEPTH:
        raise InvalidPatch(f"{path[:80]} would be nested deeper than {NESTING_DEPTH} levels")
    if copied and len(msgspec.json.encode(value)) > PAYLOAD_CHARACTERS:
        raise InvalidPatch(f"only up to {PAYLOAD_CHARACTERS} characters can be copied")


def _nesting_depth(value: object) -> int:
    """How deep lists and objects are nested in a value."""
    level, depth = [value], 0
    while level and depth <= NESTING_DEPTH:
        level = [child for item in level for child in _child_values(item)]
        depth += 1
    return depth


def _child_values(value: object) -> list[Any]:
    members = object_at(value)
    return list_at(value) or [] if members is None else list(members.values())


def _build_messages(draft: "StateDraft", rows: list[Any], fact: Fact) -> list[Message]:
    """One message for each id that the rows name; a row that names none is known by its place."""
    found: dict[str, Message] = {}
    for index, row in enumerate(rows):
        fields = object_at(row)
        if fields is not None:
            own = f"{fact.id}:{index}" if index else fact.id
            message_id = text_at(fields, "messageId", "message_id", "id") or own
            place = draft.memory.names.get(message_id)
            existing = None if place is None else draft.state.messages[place]
            found[message_id] = _build_message(draft, fields, fact, message_id, existing)
    return list(found.values())


_STATED_STATES: Final[dict[str, PartState]] = {
    "streaming": "streaming",
    "running": "streaming",
    "final": "final",
    "completed": "final",
}


def _build_message(
    draft: "StateDraft",
    fields: dict[str, Any],
    fact: Fact,
    message_id: str,
    existing: Message | None,
) -> Message:
    """Snapshots carry text; what else is known of a message stays as and where it is."""
    open_still = existing is not None and _is_unfinished(draft, existing)
    was_cut = existing is not None and existing.status == "interrupted"
    status = _STATED_STATES.get(
        text_at(fields, "status") or "",
        "streaming" if open_still else "interrupted" if was_cut else "final",
    )
    parts = existing.parts if existing else []
    texts = {
        part_id: TextPart(part_id=part_id, message_id=message_id, text=Text(text), state=status)
        for part_id, text in _read_texts(fields, message_id, parts)
    }
    message = Message(
        message_id=message_id,
        role=text_at(fields, "role") or (existing.role if existing else "assistant"),
        status=status,
        sequence=existing.sequence if existing else fact.sequence,
        parts=_merge_parts(texts, parts),
        turn_id=text_at(fields, "turnId", "turn_id"),
        thread_id=existing.thread_id if existing else fact.thread_id,
        agent_id=text_at(fields, "agentId", "agent_id"),
        subagent_id=text_at(fields, "subagentId", "subagent_id"),
        created_at=text_at(fields, "createdAt", "created_at"),
        completed_at=text_at(fields, "completedAt", "completed_at"),
    )
    for field in _KEPT_FIELDS if existing else ():
        setattr(message, field, getattr(message, field) or getattr(existing, field))
    message.created_at = message.created_at or fact.created_at
    return message


def _is_unfinished(draft: "StateDraft", message: Message) -> bool:
    """Whether more may be said in a message; in a stale one as long as its turn is active."""
    active = draft.state.runtime.active_turn_id
    if message.status == "stale":
        return active is not None and message.turn_id == active
    return message.status == "streaming"


_KEPT_FIELDS: Final = (
    *("turn_id", "agent_id", "subagent_id", "task_id", "optimistic_id", "input_refs"),
    *("created_at", "completed_at", "settles"),
)


def _merge_parts(texts: dict[str, TextPart], existing: list[Part]) -> list[Part]:
    """Texts in the places where they stand; one whose end is known but not yet shown goes on."""
    merged: list[Part] = []
    for part in existing:
        if not isinstance(part, TextPart):
            merged.append(part)
        elif part.part_id in texts:
            text = texts.pop(part.part_id)
            text.state = text.state if part.state in ("streaming", "stale") else part.state
            text.settles = part.settles
            merged.append(text)
    return [*merged, *texts.values()]


def _read_texts(
    row: dict[str, Any], message_id: str, existing: list[Part]
) -> Iterator[tuple[str, str]]:
    """The texts of a row; one without an id is the text that stands in its place."""
    ids = [part.part_id for part in existing if isinstance(part, TextPart)]
    for place, item in enumerate(_read_text_rows(row)):
        own = f"{message_id}:text" + (f":{place}" if place else "")
        known_id = ids[place] if place < len(ids) else own
        yield text_at(item, "partId", "part_id") or known_id, text_at(item, "text") or ""


def _read_text_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    parts = row.get("parts", row.get("content"))
    if isinstance(parts, str) or parts is None:
        rows = [{"text": parts if isinstance(parts, str) else row.get("text")}]
    else:
        rows = [object_at(item) or {} for item in list_at(parts) or ()]
    return [item for item in rows if item.get("type", "text") == "text" and text_at(item, "text")]


def _is_newer(message: Message, covered: int | None) -> bool:
    if message.status == "streaming" or covered is None:
        return message.status == "streaming"
    return message.sequence is not None and message.sequence > covered


def _replace_messages(draft: "StateDraft", found: list[Message]) -> None:
    draft.put(draft.state, "", "messages", found)
    draft.memory.index_messages(draft.state.messages)

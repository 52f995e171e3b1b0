"""Rows that a read model carries, merged into a state: messages, tasks, artifacts, evidence,
reviews and subagents.

A row that the state lacks is added. Where facts were missed, the row of the read model is the newer
one and replaces the state's; else the state has seen every fact that the read model has, and keeps
its own. What a child's thread reports is newer in the state, whose order of that thread no read
model of the parent covers.

A text that was cut on its way reads like a whole one, so each text comes with the length and the
digest of all of it. A text is restored as final, or as one that the next delta continues, only
where they match. Any other reads `stale`: deltas go on behind it, and only a fact with the whole
text makes it good.
"""

from collections.abc import Iterator
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from factwire.facts.json_patch import escape_key, same
from factwire.projection import artifacts, messages, subagents, tasks, team
from factwire.projection.hydration import LACKING_REASONS, Hydration
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
from factwire.projection.subagents import SubagentThread
from factwire.projection.tasks import ProjectedTask
from factwire.projection.team import RosterNode, WorkItem
from factwire.projection.timeline import part_entry_key
from factwire.projection.views import Text, View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft
    from factwire.projection.read_models import ThreadReadModel


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
    lacks_facts = lost or not LACKING_REASONS.isdisjoint(hydration.reasons)
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


class RowStatus(NamedTuple):
    """What the timeline and the graph have to show of a row: the key of its entry and node, the
    status of the entry, and the word that the node has for it.
    """

    key: str
    status: str
    node: str


class MergedRows(NamedTuple):
    """The rows that a read model carried, by kind and id, and those whose status it changed."""

    stated: set[str]
    changed: list[RowStatus]


class _Table(NamedTuple):
    """Where the rows of one list of a read model stand in a state: its attribute and its path."""

    kind: str
    field: str
    root: str
    path: str


_TABLES: Final = (
    _Table("task", "tasks", "tasks", tasks.TASKS_PATH),
    _Table("artifact", "artifacts", "artifacts", artifacts.ARTIFACTS_PATH),
    _Table("evidence", "evidence", "evidence.items", artifacts.EVIDENCE_ITEMS_PATH),
    _Table("review", "reviews", "evidence.reviews", artifacts.REVIEWS_PATH),
    _Table("subagent", "subagents", "subagents.threads", subagents.SUBAGENT_THREADS_PATH),
)

_ENTRY_STATUSES: Final = {
    **dict.fromkeys(("completed", "closed", "archived", "final"), "completed"),
    **dict.fromkeys(("failed", "timed_out", "lost"), "failed"),
    **dict.fromkeys(("cancelled", "canceled", "interrupted"), "canceled"),
    "blocked": "blocked",
    STALE: STALE,
}
"""State of a task, a teammate or a text → status of its entry; in any other state it runs."""


def merge_rows(draft: "StateDraft", model: "ThreadReadModel", *, missed: bool) -> MergedRows:
    """Bring every list that a read model carries into the state."""
    merged = MergedRows(set(), [])
    for table in _TABLES:
        _merge_table(draft, model, table, merged, missed=missed)
    _merge_messages(draft, model, merged, missed=missed)
    return merged


def message_key(message: Message | MessageSnapshot) -> str:
    """What a message goes by among the stated rows."""
    return f"message:{message.turn_id or ''}:{message.message_id}"


def _merge_table(
    draft: "StateDraft",
    model: "ThreadReadModel",
    table: _Table,
    merged: MergedRows,
    *,
    missed: bool,
) -> None:
    existing: dict[str, Any] = attrgetter(table.root)(draft.state)
    rows: list[Any] = getattr(model, table.field) or []
    for row in rows:
        key: str = getattr(row, f"{table.kind}_id")
        merged.stated.add(f"{table.kind}:{key}")
        before = existing.get(key)
        if before is not None and (not missed or _is_of_child(draft, before) or same(before, row)):
            continue
        draft.create(existing, table.path, key, row)
        _note_status(merged, f"{table.kind}:{key}", row.status)
        if isinstance(row, ProjectedTask):
            _show_work_item(draft, row)
            for attempt in row.attempts:
                _note_status(merged, f"attempt:{attempt.attempt_id}", attempt.status)
        elif isinstance(row, SubagentThread):
            _show_member(draft, row)


def _note_status(merged: MergedRows, key: str, status: str) -> None:
    merged.changed.append(RowStatus(key, _ENTRY_STATUSES.get(status, "running"), status))


def _is_of_child(draft: "StateDraft", row: object) -> bool:
    """Whether a row comes from a thread of its own."""
    own = (None, draft.state.thread_id)
    return isinstance(row, SubagentThread | Message) and row.thread_id not in own


def _merge_messages(
    draft: "StateDraft", model: "ThreadReadModel", merged: MergedRows, *, missed: bool
) -> None:
    if model.messages is None:
        return
    found = list(draft.state.messages)
    earlier: dict[int, list[Message]] = {}
    unplaced: list[Message] = []
    for snapshot in model.messages:
        merged.stated.add(message_key(snapshot))
        place = draft.memory.message_place(snapshot.turn_id, snapshot.message_id)
        before = None if place is None else draft.state.messages[place]
        if place is None:
            unplaced.append(restore_message(snapshot))
            continue
        earlier.setdefault(place, []).extend(unplaced)
        unplaced = []
        if missed and before is not None and not _is_of_child(draft, before):
            found[place] = restore_message(snapshot, before)
            for part in texts_in(found[place]):
                kind = messages.kind_of_part(part)
                key = f"{kind}:{part_entry_key(found[place], part)}"
                merged.changed.append(_text_status(key, part.state))
    # What the state lacks goes before the message that follows it in the read model.
    ordered = [each for place, m in enumerate(found) for each in (*earlier.get(place, ()), m)]
    draft.put(draft.state, "", "messages", [*ordered, *unplaced])
    draft.memory.index_messages(draft.state.messages)


def _text_status(key: str, state: str) -> RowStatus:
    status = _ENTRY_STATUSES.get(state, "running")
    return RowStatus(key, status, status)


def _show_member(draft: "StateDraft", thread: SubagentThread) -> None:
    """Bring the roster, and who is active, in line with a teammate."""
    key, nodes = thread.subagent_id, draft.state.team_workbench.roster_nodes
    path = f"{team.TEAM_PATH}/rosterNodes"
    if key not in nodes:
        node = RosterNode(member_id=key, status=thread.status, kind=_member_kind(thread))
        draft.create(nodes, path, key, node)
    draft.fill(
        nodes[key],
        f"{path}/{escape_key(key)}",
        status=thread.status,
        name=thread.name or thread.title,
        role=thread.role,
        task_id=thread.task_id,
        parent_id=thread.parent_subagent_id,
    )
    active = draft.state.subagents.active_thread_ids
    others = [other for other in active if other != key]
    if thread.status in subagents.ACTIVE_STATES:
        others = active if key in active else [*active, key]
    draft.put(draft.state.subagents, subagents.SUBAGENTS_PATH, "active_thread_ids", others)


def _member_kind(thread: SubagentThread) -> str:
    if thread.topology in ("remote_teammate", "background_teammate"):
        return thread.topology
    return "worker" if thread.worker_id == thread.subagent_id else "subagent"


def _show_work_item(draft: "StateDraft", task: ProjectedTask) -> None:
    """Bring the board in line with a task."""
    key, items = task.task_id, draft.state.team_workbench.work_items
    path = f"{team.TEAM_PATH}/workItems"
    if key not in items:
        draft.create(items, path, key, WorkItem(task_id=key, status=task.status))
    place = f"{path}/{escape_key(key)}"
    draft.fill(
        items[key],
        place,
        status=task.status,
        title=task.title or task.objective,
        assignee=task.assignee or task.delegated_to,
        parent_task_id=task.parent_task_id,
    )
    waits_for = [other for other, at in (task.dependencies or {}).items() if at != "completed"]
    draft.put(items[key], place, "blocked_by", waits_for or None)

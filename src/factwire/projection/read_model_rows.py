"""Rows that a read model carries, merged into a state: messages, tasks, artifacts, evidence,
reviews and subagents.

A row that the state lacks is added. Where facts were missed, the row of the read model is the newer
one and replaces the state's; else the state has seen every fact that the read model has, and keeps
its own. What a child's thread reports is newer in the state, whose order of that thread no read
model of the parent covers.
"""

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from factwire.facts.json_patch import escape_key, same
from factwire.projection import artifacts, messages, subagents, tasks, team
from factwire.projection.messages import Message
from factwire.projection.read_model_messages import (
    STALE,
    MessageSnapshot,
    restore_message,
    texts_in,
)
from factwire.projection.subagents import SubagentThread
from factwire.projection.tasks import ProjectedTask
from factwire.projection.team import RosterNode, WorkItem
from factwire.projection.timeline import part_entry_key

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft
    from factwire.projection.read_models import ThreadReadModel


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
    for snapshot in model.messages:
        merged.stated.add(message_key(snapshot))
        place = draft.memory.message_place(snapshot.turn_id, snapshot.message_id)
        before = None if place is None else draft.state.messages[place]
        if place is None:
            found.append(restore_message(snapshot))
        elif missed and before is not None and not _is_of_child(draft, before):
            found[place] = restore_message(snapshot, before)
            for part in texts_in(found[place]):
                kind = messages.kind_of_part(part)
                key = f"{kind}:{part_entry_key(found[place], part)}"
                merged.changed.append(_text_status(key, part.state))
    draft.put(draft.state, "", "messages", found)
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

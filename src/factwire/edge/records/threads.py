"""Threads: met with their first fact, named, archived, deleted."""

from typing import TYPE_CHECKING, Final

from factwire.edge.records.rows import Thread, ThreadStatus
from factwire.facts import Fact, id_of
from factwire.projection.reading import word

if TYPE_CHECKING:
    from factwire.edge.records.records import Records

_STATUSES: Final[dict[str, ThreadStatus]] = {"active": "active", "archived": "archived"}


def thread_of(fact: Fact) -> str | None:
    return id_of(fact, "threadId")


def met(records: "Records", seq: int, fact: Fact, thread_id: str | None) -> None:
    """Know a thread from its first fact on, and what each later one says of its place."""
    if thread_id is None or fact.event_class == "thread.deleted":
        return
    row = records.threads.get(thread_id)
    if row is None:
        row = records.threads.add(
            thread_id,
            Thread(
                seq=seq,
                created_at=fact.created_at,
                updated_at=fact.created_at,
                thread_id=thread_id,
                status="active",
                activity="idle",
                runtime_id=fact.runtime_id,
            ),
        )
    row.updated_at = fact.created_at
    row.project_id = row.project_id or id_of(fact, "projectId")
    row.conversation_id = row.conversation_id or id_of(fact, "conversationId")


def _described(records: "Records", _: int, fact: Fact) -> None:
    row = records.threads.get(thread_of(fact) or "")
    if row is None:
        return
    said = fact.payload
    row.title = word(said, "title") or row.title
    row.agent_id = word(said, "agentId") or row.agent_id
    row.parent_thread_id = word(said, "parentThreadId") or row.parent_thread_id
    row.from_item_id = word(said, "fromItemId") or row.from_item_id
    row.status = _STATUSES.get(word(said, "status") or "", row.status)


def _deleted(records: "Records", _: int, fact: Fact) -> None:
    thread_id = thread_of(fact)
    if thread_id is None:
        return
    records.deleted[thread_id] = None
    records.threads.remove(thread_id)
    for table in (
        records.runs,
        records.approvals,
        records.artifacts,
        records.tasks,
        records.previews,
        records.evidence,
    ):
        for key in [key for key, row in table.rows.items() if row.thread_id == thread_id]:
            table.remove(key)


HANDLERS = {
    "thread.created": _described,
    "thread.started": _described,
    "thread.updated": _described,
    "thread.forked": _described,
    "thread.deleted": _deleted,
}

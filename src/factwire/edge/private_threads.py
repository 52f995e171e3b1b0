"""Private threads, for whoever comes by way of a Hub: they do not exist.

Only the Edge knows which threads are private, so the Edge decides. A relayed request that names
something of a private thread, in its path or in its body, gets the answer that an unknown id gets.
What an answer lists beside that leaves out what belongs to private threads.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from factwire.edge.edge_context import EdgeContext
from factwire.edge.records import Records
from factwire.edge.records.thread_records import find_row
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.serving.asgi import Problem
from factwire.serving.paging import RowTable

IsPrivate = Callable[[str | None], bool]
"""Whether a thread is private."""

BODY_IDS: Final = {"threadId": "thread_id", "runId": "run_id"}
"""Members of bodies that name something of a thread → the names that they have in paths."""

UNKNOWN: Final = {
    "thread_id": ("unknown_thread", "no thread has this id"),
    "run_id": ("unknown_run", "no run has this id"),
    "approval_id": ("unknown_approval", "no approval has this id"),
    "evidence_id": ("unknown_evidence", "no evidence pack has this id"),
    "preview_id": ("unknown_preview", "no preview has this id"),
    "rule_id": ("unknown_standing_rule", "no standing rule {} holds"),
}
"""Name of an id that leads to a thread → the code and the detail for one that does not exist."""

_TABLES: Final[dict[str, Callable[[Records], RowTable[Any]]]] = {
    "run_id": lambda records: records.runs,
    "approval_id": lambda records: records.approvals,
    "evidence_id": lambda records: records.evidence,
    "preview_id": lambda records: records.previews,
}


async def read_privacy(edge: EdgeContext) -> IsPrivate:
    """What tells which threads are private now, those below private ones included."""
    journal = edge.journal
    marked = await journal.private_threads() if isinstance(journal, SqliteJournal) else ()

    def is_private(thread_id: str | None) -> bool:
        seen = set[str]()
        while thread_id is not None and thread_id not in seen:
            seen.add(thread_id)
            row = edge.records.threads.get(thread_id)
            if thread_id in marked or (row is not None and row.private):
                return True
            thread_id = None if row is None else row.parent_thread_id
        return False

    return is_private


async def ensure_public(edge: EdgeContext, ids: Mapping[str, str], body: Any) -> None:
    """Raise `Problem` where a request names something of a private thread; `ids` are those of its
    path.
    """
    is_private = await read_privacy(edge)
    named = list(ids.items())
    if isinstance(body, dict):
        members: dict[str, Any] = body  # pyright: ignore[reportUnknownVariableType]
        named += [(BODY_IDS[key], str(members[key])) for key in BODY_IDS if key in members]
    for name, value in named:
        if name in UNKNOWN and is_private(await _find_thread(edge, name, value)):
            code, detail = UNKNOWN[name]
            raise Problem(404, code, detail.format(value))


async def _find_thread(edge: EdgeContext, name: str, value: str) -> str | None:
    if name == "thread_id":
        return value
    if name == "rule_id":
        rules = await edge.runtime.list_standing_rules()
        return next((rule.thread_id for rule in rules if rule.rule_id == value), None)
    row = find_row(_TABLES[name](edge.records), value)
    return None if row is None else row.thread_id

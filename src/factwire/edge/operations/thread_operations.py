"""Projects, conversations and threads: made, named, archived, forked, deleted.

A deleted thread is gone from every list and answer; its facts stay in the journal, which is never
rewritten, until retention takes them.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import FORKED_TEXT_CHARACTERS, FORKED_VERSIONS
from factwire.edge.operations import preview_operations, worktree_operations
from factwire.edge.records import Records
from factwire.facts import Person
from factwire.facts.resources import Conversation, Project, Thread
from factwire.journal import Cursor
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.projection import ProjectionState, conversation
from factwire.projection.history_window import ForkedHistory, build_forked_history
from factwire.projection.messages import Message
from factwire.runtime.thread_states import ProjectedThread, ThreadStates
from factwire.serving.asgi import Problem
from factwire.serving.streams import read_cursor


async def add_project(
    edge: EdgeContext,
    project_id: str,
    name: str,
    work_dir: str | None,
    *,
    by: Person,
    trace_id: str,
) -> Project:
    """Make a project; one with this id already is the one that was asked for before."""
    known = edge.records.projects.get(project_id)
    if known is not None:
        return known
    payload: dict[str, Any] = {"name": name}
    if work_dir is not None:
        payload["workDir"] = str(edge.runtime.workspaces.resolve(work_dir))
    await _write_project_fact(
        edge, "project.created", project_id, payload, by=by, trace_id=trace_id
    )
    return find_project(edge, project_id)


async def update_project(
    edge: EdgeContext, project_id: str, changes: dict[str, str], *, by: Person, trace_id: str
) -> Project:
    """Rename a project or change its folder."""
    row = find_project(edge, project_id)
    payload: dict[str, Any] = {**_row_fields(row, "name", "work_dir", "created_at"), **changes}
    if "workDir" in changes:
        payload["workDir"] = str(edge.runtime.workspaces.resolve(changes["workDir"]))
    if changes:
        await _write_project_fact(
            edge, "project.updated", project_id, payload, by=by, trace_id=trace_id
        )
    return find_project(edge, project_id)


async def remove_project(edge: EdgeContext, project_id: str, *, by: Person, trace_id: str) -> None:
    """Remove a project; refused while it has active threads."""
    find_project(edge, project_id)
    threads = edge.records.threads.newest(project_id=project_id, status="active")
    if next(threads, None) is not None:
        raise Problem(
            409,
            "project_in_use",
            "active threads belong to this project; archive or delete them first",
        )
    await _write_project_fact(edge, "project.deleted", project_id, {}, by=by, trace_id=trace_id)


def find_project(edge: EdgeContext, project_id: str) -> Project:
    """A project; raises `Problem`."""
    row = edge.records.projects.get(project_id)
    if row is None:
        raise Problem(404, "unknown_project", "no project has this id")
    return row


async def _write_project_fact(
    edge: EdgeContext,
    event_class: str,
    project_id: str,
    payload: dict[str, Any],
    *,
    by: Person,
    trace_id: str,
) -> None:
    fields = {"projectId": project_id, **payload}
    await edge.append(edge.build_fact(event_class, fields, trace_id, by=by, project_id=project_id))


def _row_fields(row: Project | Thread, *names: str) -> dict[str, Any]:
    """Fields of a row under their names on the wire, so that a change of it is reported whole."""
    whole = msgspec.to_builtins(row)
    wire_names = (field.encode_name for field in msgspec.structs.fields(row) if field.name in names)
    return {name: whole[name] for name in wire_names if name in whole}


async def add_conversation(
    edge: EdgeContext,
    conversation_id: str,
    title: str | None,
    project_id: str | None,
    *,
    by: Person,
    trace_id: str,
) -> Conversation:
    """Make a conversation; one with this id already is the one that was asked for before."""
    known = edge.records.conversations.get(conversation_id)
    if known is not None:
        return known
    if project_id is not None:
        find_project(edge, project_id)
    fields = {"conversationId": conversation_id, "title": title, "projectId": project_id}
    payload = {name: value for name, value in fields.items() if value is not None}
    ids = {"conversation_id": conversation_id, "project_id": project_id}
    await edge.append(edge.build_fact("conversation.created", payload, trace_id, by=by, **ids))
    return find_conversation(edge, conversation_id)


def find_conversation(edge: EdgeContext, conversation_id: str) -> Conversation:
    """A conversation; raises `Problem`."""
    row = edge.records.conversations.get(conversation_id)
    if row is None:
        raise Problem(404, "unknown_conversation", "no conversation has this id")
    return row


async def add_conversation_member(
    edge: EdgeContext,
    conversation_id: str,
    member_id: str,
    member_type: str,
    *,
    by: Person,
    trace_id: str,
) -> Conversation:
    """Add a member to a conversation."""
    payload = {
        "conversationId": conversation_id,
        "memberId": member_id,
        "memberType": member_type,
    }
    ids = {"conversation_id": conversation_id}
    fact = edge.build_fact("conversation.member.added", payload, trace_id, by=by, **ids)
    await edge.append(fact)
    return find_conversation(edge, conversation_id)


class NewThread(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread begins with."""

    thread_id: str
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    agent_id: str | None = None
    private: bool = False
    by: Person | None = None


async def add_thread(edge: EdgeContext, new: NewThread, trace_id: str) -> Thread:
    """Make a thread; one with this id already is the one that was asked for before."""
    known = edge.records.threads.get(new.thread_id)
    if known is not None:
        return known
    _ensure_never_used(edge, new.thread_id)
    if new.project_id is not None:
        find_project(edge, new.project_id)
    if new.agent_id is not None:
        edge.runtime.agent(new.agent_id)
    if new.private:
        await _mark_private(edge, new.thread_id)
    await edge.write(
        new.thread_id,
        ("thread.created", {**_thread_fields(new), "status": "active"}),
        trace_id=trace_id,
        by=new.by,
        project_id=new.project_id,
        conversation_id=new.conversation_id,
    )
    return edge.find_thread(new.thread_id)


async def update_thread(
    edge: EdgeContext, thread_id: str, changes: dict[str, Any], *, by: Person, trace_id: str
) -> Thread:
    """Rename, archive or restore a thread, or make it private."""
    row = edge.find_own_thread(thread_id)
    fresh = {name: value for name, value in changes.items() if getattr(row, name) != value}
    if fresh.get("private"):
        await _mark_private(edge, thread_id)
    if fresh:
        payload = {**describe_thread(edge.records, thread_id), **fresh}
        await edge.write(thread_id, ("thread.updated", payload), trace_id=trace_id, by=by)
    return edge.find_thread(thread_id)


async def _mark_private(edge: EdgeContext, thread_id: str) -> None:
    """Keep what follows of a thread from being uploaded, before any of it is written. Only journals
    that can be uploaded need to know.
    """
    if isinstance(edge.journal, SqliteJournal):
        await edge.journal.mark_private(thread_id)


def describe_thread(records: Records, thread_id: str) -> dict[str, Any]:
    """What every change of a thread reports of it; nothing of one that is not listed."""
    row = records.threads.get(thread_id)
    return {} if row is None else _row_fields(row, *_THREAD_FIELDS)


_THREAD_FIELDS: Final = (
    "thread_id",
    "project_id",
    "conversation_id",
    "title",
    "status",
    "agent_id",
    "private",
    "created_at",
)


async def remove_thread(edge: EdgeContext, thread_id: str, *, by: Person, trace_id: str) -> None:
    """Take a thread off every list, stop its previews and remove the worktrees of its runs;
    refused while a turn runs on it.
    """
    row = edge.find_own_thread(thread_id)
    if row.activity in ("running", "waiting"):
        raise Problem(409, "active_run_exists", "a run is active on this thread; cancel it first")
    await preview_operations.stop_thread_previews(edge, thread_id, trace_id, by)
    await worktree_operations.remove_thread_worktrees(edge, thread_id)
    gone = ("thread.deleted", {"threadId": thread_id})
    await edge.write(thread_id, gone, trace_id=trace_id, by=by)


async def read_state_at(
    edge: EdgeContext, states: ThreadStates, thread_id: str, at: str | None
) -> ProjectedThread:
    """A thread now, or as it was at a cursor, an event or a fact; raises `CursorError`."""
    return await states.at(thread_id, await find_moment(edge, at))


async def find_moment(edge: EdgeContext, at: str | None) -> Cursor | None:
    """The place that a cursor, an event or a fact names; None is now. Raises `CursorError`."""
    return None if at is None else await read_cursor(edge.journal, at)


async def add_fork(
    edge: EdgeContext,
    states: ThreadStates,
    parent_id: str,
    new: NewThread,
    *,
    from_item_id: str | None,
    at: str | None,
    trace_id: str,
) -> Thread:
    """Make a thread that begins with the conversation, the calls and the artifacts of another, as
    they were then.
    """
    parent = edge.find_thread(parent_id)
    known = edge.records.threads.get(new.thread_id)
    if known is not None:
        return known
    if parent.private:
        await _mark_private(edge, new.thread_id)
    seen = await read_state_at(edge, states, parent_id, at)
    state = seen.projection.state
    history = build_forked_history(state, _messages_until(state, from_item_id))
    origin = {"originThreadId": parent_id}
    windows = [("history.window.loaded", {**origin, **rows}) for rows in _split_windows(history)]
    forked = {
        "threadId": new.thread_id,
        "parentThreadId": parent_id,
        "fromItemId": from_item_id,
        "fromCursor": str(seen.cursor),
        "title": new.title or parent.title,
        "agentId": new.agent_id or parent.agent_id,
        "private": parent.private or None,
    }
    payload = {name: value for name, value in forked.items() if value is not None}
    await edge.write(
        new.thread_id,
        ("thread.forked", payload),
        *windows,
        trace_id=trace_id,
        by=new.by,
        project_id=new.project_id or parent.project_id,
    )
    return edge.find_thread(new.thread_id)


def _messages_until(state: ProjectionState, item_id: str | None) -> list[Message]:
    """What was said up to an item, and with it."""
    messages = conversation(state)
    if item_id is None:
        return messages
    message_id = item_id.partition("/")[0]
    for place, message in enumerate(messages):
        if message.message_id == message_id:
            return messages[: place + 1]
    raise Problem(404, "unknown_item", "no message of this thread has this id")


def _split_windows(history: ForkedHistory) -> Iterator[dict[str, Any]]:
    """A history in facts of a fair size: calls and artifacts, and then the messages, the newest
    first, because each goes before what is there.
    """
    lists = (
        ("toolCalls", history.tool_calls),
        ("artifacts", history.artifacts),
        ("messages", history.messages[::-1]),
    )
    for name, found in lists:
        rows: list[dict[str, Any]] = []
        size = 0
        for row in (_shorten_row(msgspec.to_builtins(each)) for each in found):
            characters = len(msgspec.json.encode(row))
            if rows and size + characters > FORKED_TEXT_CHARACTERS:
                yield {name: rows[::-1] if name == "messages" else rows}
                rows, size = [], 0
            rows.append(row)
            size += characters
        if rows:
            yield {name: rows[::-1] if name == "messages" else rows}


def _shorten_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row that fits into a fact. A text that is cut no longer matches its digest, and so is shown
    as incomplete; of an artifact with many versions the latest are kept.
    """
    for part in row.get("parts", ()):
        if "text" in part:
            part["text"] = part["text"][:FORKED_TEXT_CHARACTERS]
    if "versions" in row:
        row["versions"] = row["versions"][-FORKED_VERSIONS:]
    return row


def _ensure_never_used(edge: EdgeContext, thread_id: str) -> None:
    if edge.records.is_deleted(thread_id):
        raise Problem(410, "thread_deleted", "a thread with this id was deleted; use another id")


def _thread_fields(new: NewThread) -> dict[str, Any]:
    known = {
        "threadId": new.thread_id,
        "projectId": new.project_id,
        "conversationId": new.conversation_id,
        "title": new.title,
        "agentId": new.agent_id,
        "private": new.private or None,
    }
    return {name: value for name, value in known.items() if value is not None}

"""Threads: made, named, archived, forked, deleted.

A deleted thread is gone from every list and answer; its facts stay in the journal, which is never
rewritten, until retention takes them.
"""

from typing import Any

import msgspec

from factwire.edge.limits import FORKED_TEXT_CHARACTERS
from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.rows import Thread
from factwire.edge.states import States
from factwire.edge.work import previews, projects, worktrees
from factwire.projection import ProjectionState, conversation
from factwire.projection.parts import TextPart


class NewThread(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread begins with."""

    thread_id: str
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    agent_id: str | None = None


async def create(machine: Machine, new: NewThread, trace_id: str) -> Thread:
    """Make a thread; one with this id already is the one that was asked for before."""
    known = machine.records.threads.get(new.thread_id)
    if known is not None:
        return known
    _ensure_never_used(machine, new.thread_id)
    if new.project_id is not None:
        projects.find(machine, new.project_id)
    if new.agent_id is not None:
        machine.runtime.agent(new.agent_id)
    await machine.write(
        new.thread_id,
        ("thread.created", {**_described(new), "status": "active"}),
        trace_id=trace_id,
        project_id=new.project_id,
        conversation_id=new.conversation_id,
    )
    return machine.thread(new.thread_id)


async def change(
    machine: Machine, thread_id: str, changes: dict[str, str], trace_id: str
) -> Thread:
    """Rename a thread, archive it or take it out of the archive."""
    row = machine.own_thread(thread_id)
    fresh = {name: value for name, value in changes.items() if _now(row, name) != value}
    if fresh:
        said = {"threadId": thread_id, **fresh}
        await machine.write(thread_id, ("thread.updated", said), trace_id=trace_id)
    return machine.thread(thread_id)


async def delete(machine: Machine, thread_id: str, trace_id: str) -> None:
    """Take a thread off every list, stop its previews and remove the worktrees of its runs;
    refused while a turn runs on it.
    """
    row = machine.own_thread(thread_id)
    if row.activity in ("running", "waiting"):
        raise Problem(409, "active_run_exists", "a run is active on this thread; cancel it first")
    await previews.stop_of_thread(machine, thread_id, trace_id)
    await worktrees.remove_of_thread(machine, thread_id)
    await machine.write(thread_id, ("thread.deleted", {"threadId": thread_id}), trace_id=trace_id)


async def fork(
    machine: Machine,
    states: States,
    parent_id: str,
    new: NewThread,
    *,
    from_item_id: str | None,
    at: str | None,
    trace_id: str,
) -> Thread:
    """Make a thread that begins with the conversation of another, as it stood then."""
    parent = machine.thread(parent_id)
    known = machine.records.threads.get(new.thread_id)
    if known is not None:
        return known
    seen = await states.at(parent_id, at)
    messages = _until(seen.projection.state, from_item_id)
    windows = [("history.window.loaded", {"messages": rows}) for rows in _windows(messages)]
    forked = {
        "threadId": new.thread_id,
        "parentThreadId": parent_id,
        "fromItemId": from_item_id,
        "fromCursor": str(seen.cursor),
        "title": new.title or parent.title,
        "agentId": new.agent_id or parent.agent_id,
    }
    said = {name: value for name, value in forked.items() if value is not None}
    await machine.write(
        new.thread_id,
        ("thread.forked", said),
        *windows,
        trace_id=trace_id,
        project_id=new.project_id or parent.project_id,
    )
    return machine.thread(new.thread_id)


def _until(state: ProjectionState, item_id: str | None) -> list[dict[str, Any]]:
    """What was said up to an item, and with it."""
    said: list[dict[str, Any]] = []
    for message in conversation(state):
        texts = [str(part.text) for part in message.parts if isinstance(part, TextPart)]
        if any(texts):
            said.append(_row(message.message_id, message.role, "\n\n".join(texts)))
        if item_id is not None and item_id.partition("/")[0] == message.message_id:
            return said
    if item_id is not None:
        raise Problem(404, "unknown_item", "no message of this thread has this id")
    return said


def _row(message_id: str, role: str, text: str) -> dict[str, Any]:
    row: dict[str, Any] = {"messageId": message_id, "role": role, "text": text}
    if len(text) > FORKED_TEXT_CHARACTERS:
        row |= {"text": text[:FORKED_TEXT_CHARACTERS] + "…", "truncated": True}
    return row


def _windows(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The messages in facts of a fair size, the newest first: each goes before what is there."""
    windows: list[list[dict[str, Any]]] = []
    size = FORKED_TEXT_CHARACTERS
    for row in reversed(messages):
        if size + len(row["text"]) > FORKED_TEXT_CHARACTERS:
            windows.append([])
            size = 0
        windows[-1].insert(0, row)
        size += len(row["text"])
    return windows


def _ensure_never_used(machine: Machine, thread_id: str) -> None:
    if thread_id in machine.records.deleted:
        raise Problem(410, "thread_deleted", "a thread of this id was deleted; take another id")


def _described(new: NewThread) -> dict[str, str]:
    known = {
        "threadId": new.thread_id,
        "projectId": new.project_id,
        "conversationId": new.conversation_id,
        "title": new.title,
        "agentId": new.agent_id,
    }
    return {name: value for name, value in known.items() if value is not None}


def _now(row: Thread, name: str) -> str | None:
    return {"title": row.title, "status": row.status}[name]

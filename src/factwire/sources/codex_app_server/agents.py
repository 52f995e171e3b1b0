"""Subagents: threads that a thread set to work, and the calls that did it."""

from typing import Any, Final

from factwire.projection.reading import table, word, words
from factwire.sources.codex_app_server.session import Session

_ENDED: Final = {
    "completed": ("subagent.completed", None),
    "shutdown": ("subagent.completed", None),
    "interrupted": ("subagent.failed", "interrupted"),
    "errored": ("subagent.failed", "provider_error"),
    "failed": ("subagent.failed", "provider_error"),
    "notFound": ("subagent.failed", "not_found"),
}
"""State of an agent → what it ends with, and why it failed."""


def end_agent(session: Session, thread: str, state: str, message: str | None = None) -> None:
    """A subagent is done, if this state is an end."""
    ending = _ENDED.get(state)
    if ending is not None and thread in session.tell.subagents:
        event_class, category = ending
        why = message or ("it ended: " + state if category else None)
        session.tell.subagent_end(thread, event_class, failureCategory=category, message=why)


def sub_agent_activity(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    del speaker
    thread, kind = word(item, "agentThreadId"), word(item, "kind") or ""
    if thread is None:
        session.tell.unknown("activity of no agent", item)
    elif kind == "started":
        path = word(item, "agentPath")
        name = path.rpartition("/")[2] if path else None
        session.open_agent(thread, name=name, title=path, toolCallId=item_id or None)
    elif kind == "interacted" and ended:
        session.open_agent(thread)
        session.tell.within(thread, "subagent.progress", {"message": "it was written to"})
    elif ended:
        end_agent(session, thread, kind)


def collab_call(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    """A call to other agents; what it says of their state is taken as it stands."""
    name, receivers = word(item, "tool") or "collab", words(item.get("receiverThreadIds"))
    args = {"prompt": word(item, "prompt"), "receiverThreadIds": receivers}
    session.tell.tool(item_id, name, args, subagent_id=speaker)
    if not ended:
        return
    if name == "spawnAgent":
        for thread in receivers:
            about = {"objective": word(item, "prompt"), "toolCallId": item_id}
            session.open_agent(thread, **about)
    if word(item, "status") == "failed":
        session.tell.tool_failed(item_id, "tool_error", "the call to the other agent failed")
    else:
        session.tell.tool_result(item_id, item.get("agentsStates"))
    for thread, state in (table(item.get("agentsStates")) or {}).items():
        row = table(state) or {}
        end_agent(session, thread, word(row, "status") or "", word(row, "message"))

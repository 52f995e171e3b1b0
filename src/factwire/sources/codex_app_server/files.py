"""`fileChange` items: a patch as a tool call, and each file that it changed."""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.codex_app_server.session import Session, named

_CHANGES: Final = {"add": "created", "delete": "deleted", "update": "modified"}


def file_change(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> str | None:
    """Tell a patch; gives its status where it ended without a change."""
    changes = [row for row in map(table, listed(item.get("changes")) or ()) if row]
    session.tell.tool(item_id, "fileChange", {"changes": changes}, subagent_id=speaker)
    status = word(item, "status")
    if not ended or status == "declined":
        return status if ended else None
    if status != "completed":
        session.tell.tool_failed(item_id, "patch_failed", "the changes were not applied")
        return None
    for change in changes:
        _changed(session, speaker, item_id, change)
    session.tell.tool_result(item_id, summary=f"{len(changes)} files changed")
    return None


def _changed(session: Session, speaker: str | None, item_id: str, change: dict[str, Any]) -> None:
    path, kind = word(change, "path") or "unknown", table(change.get("kind")) or {}
    what = word(kind, "type") or named(change.get("kind")) or ""
    said = {
        "path": path,
        "change": _CHANGES.get(what, "modified"),
        "diff": word(change, "diff"),
        "movedTo": word(kind, "move_path"),
    }
    ids = {"tool_call_id": item_id, "artifact_id": f"file:{path}"}
    session.tell.within(speaker, "file.changed", said, **ids)

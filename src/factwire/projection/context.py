"""Context: what the model was given, how full it is, and where history was folded away.

A compaction is a boundary with a summary; nothing of what it folds is said again.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Context as ContextPayload
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.reading import detail_of, joined, listed, read, refs_of, turn_of, word
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/context"


class ContextItem(View):
    """Something that was selected, attached or missing."""

    event_id: str
    status: str
    title: str
    kind: str | None = None
    message: str | None = None
    failure_category: str | None = None
    refs: list[str] | None = None
    turn_id: str | None = None
    created_at: str | None = None


class Compaction(View):
    """One boundary: before it, history is a summary. `ended_by` are classes that told its end."""

    event_id: str
    status: str
    compaction_id: str | None = None
    turn_id: str | None = None
    sequence: int | None = None
    trigger: str | None = None
    summary: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    failure_category: str | None = None
    refs: list[str] | None = None
    started_at: str | None = None
    completed_at: str | None = None
    ended_by: list[str] | None = None


class Context(View):
    """The context as its facts tell it."""

    items: list[ContextItem]
    compactions: list[Compaction]
    status: str
    usage_percent: float | None = None
    tokens: int | None = None
    tool_catalog: list[Any] | None = None


_STATUS: Final = {
    "context.resolved": "resolved",
    "context.attached": "attached",
    "context.failed": "failed",
    "context.changed": "changed",
}
_COMPACTION: Final = {
    "context.compaction.started": "running",
    "context.compaction.completed": "completed",
    "context.compaction.failed": "failed",
    "history.compacted": "completed",
}


def nothing() -> Context:
    return Context(items=[], compactions=[], status="unknown")


def changed(canvas: "Canvas", fact: Fact) -> None:
    context, said = canvas.state.context, read(fact, ContextPayload)
    status = _STATUS[fact.event_class or ""]
    canvas.put(context, PATH, "status", status)
    canvas.fill(context, PATH, usage_percent=said.usage_percent, tokens=said.tokens_after)
    item = ContextItem(
        event_id=fact.id,
        status=status,
        title=fact.title,
        kind=word(fact.payload, "kind", "source"),
        message=detail_of(said.message or said.summary),
        failure_category=said.failure_category,
        refs=refs_of(fact) or None,
        turn_id=turn_of(fact),
        created_at=fact.created_at,
    )
    canvas.push(context.items, f"{PATH}/items", item, LANE_EVENTS_KEPT)


def catalog_resolved(canvas: "Canvas", fact: Fact) -> None:
    canvas.fill(canvas.state.context, PATH, tool_catalog=listed(fact.payload.get("tools")))


def compacted(canvas: "Canvas", fact: Fact) -> None:
    """The start, end or failure of a compaction; an end without a start is a boundary too."""
    context, said = canvas.state.context, read(fact, ContextPayload)
    status = _COMPACTION[fact.event_class or ""]
    last = context.compactions[-1] if context.compactions else None
    if last is None or not _is_about(last, fact, said, status):
        last = _boundary(canvas, fact, status)
    path = f"{PATH}/compactions/{len(context.compactions) - 1}"
    canvas.put(last, path, "status", status)
    canvas.fill(
        last,
        path,
        compaction_id=said.compaction_id,
        trigger=said.trigger,
        summary=detail_of(said.summary),
        tokens_before=said.tokens_before,
        tokens_after=said.tokens_after,
        failure_category=said.failure_category,
        refs=refs_of(fact) or None,
        completed_at=None if status == "running" else fact.created_at,
        ended_by=None if status == "running" else joined(last.ended_by, [fact.event_class or ""]),
    )
    canvas.fill(context, PATH, usage_percent=said.usage_percent, tokens=said.tokens_after)


def _is_about(last: Compaction, fact: Fact, said: ContextPayload, status: str) -> bool:
    """Whether a fact tells of the last compaction: by its id, or else as the end that it waits for
    or as the other of the two classes that tell the same end.
    """
    if said.compaction_id is not None and last.compaction_id is not None:
        return said.compaction_id == last.compaction_id
    if status == "running":
        return False
    if last.status in ("running", "stale"):
        return True
    told = last.ended_by or ()
    here = last.turn_id == turn_of(fact)
    return here and last.status == status == "completed" and fact.event_class not in told


def _boundary(canvas: "Canvas", fact: Fact, status: str) -> Compaction:
    boundary = Compaction(
        event_id=fact.id,
        status=status,
        turn_id=turn_of(fact),
        sequence=fact.sequence,
        started_at=fact.created_at,
    )
    canvas.push(canvas.state.context.compactions, f"{PATH}/compactions", boundary)
    return boundary

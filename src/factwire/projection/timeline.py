"""The process timeline: what happened, in order, one entry for each thing that happened.

The facts of one tool call, action, part or task are one entry that goes on; any other fact is an
entry of its own. Deltas add nothing after the first. An entry whose fact lacks what its class needs
is degraded, and never reads as completed.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from factwire.facts.class_rows import ClassRow
from factwire.facts.fact import Fact
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.artifacts import artifact_ids
from factwire.projection.asides import ASIDE, COUNTED
from factwire.projection.changes import Operation
from factwire.projection.evidence import evidence_ids
from factwire.projection.parts import Message, Part
from factwire.projection.processes import process_of
from factwire.projection.reading import (
    detail_of,
    joined,
    other_id,
    refs_of,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
    word,
)
from factwire.projection.subagents import teammate_of
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/timeline"

_ENDED: Final = frozenset({"completed", "failed", "canceled"})


class TimelineEntry(View):
    """One thing that happened. `source_event_ids` names its facts, of deltas the first."""

    entry_id: str
    sequence: int | None
    kind: str
    event_class: str
    phase: str
    owner: str
    surface: str
    status: str
    title: str
    source_event_ids: list[str]
    detail: str | None = None
    refs: list[str] | None = None
    degraded: bool | None = None
    turn_id: str | None = None
    subagent_id: str | None = None
    created_at: str | None = None
    completed_at: str | None = None


def note(canvas: "Canvas", fact: Fact, row: ClassRow, *, degraded: bool = False) -> None:
    """Write a fact down: into the entry of its subject, or as an entry of its own."""
    subject = None if degraded else _subject(canvas, fact)
    key = subject or f"fact:{fact.id}"
    place = canvas.memory.entries.get(key)
    if place is None:
        _begin(canvas, fact, row, key, degraded=degraded)
    else:
        _go_on(canvas, fact, row, place)


def _begin(canvas: "Canvas", fact: Fact, row: ClassRow, key: str, *, degraded: bool) -> None:
    status = UNKNOWN if degraded else fact.status
    if fact.event_class in ASIDE:
        status = "running"
    entry = TimelineEntry(
        entry_id=key,
        sequence=fact.sequence,
        kind=fact.kind,
        event_class=fact.event_class or UNKNOWN,
        phase=fact.phase or row.phase,
        owner=fact.owner or row.owner,
        surface=fact.surface or row.surface,
        status=status,
        title=fact.title,
        source_event_ids=[fact.id],
        detail=_detail(fact),
        refs=refs_of(fact) or None,
        degraded=degraded or None,
        turn_id=turn_of(fact),
        subagent_id=subagent_of(fact),
        created_at=fact.created_at,
        completed_at=_end(fact) if status in _ENDED else None,
    )
    canvas.memory.entries[key] = len(canvas.state.timeline)
    canvas.push(canvas.state.timeline, PATH, entry)


def _go_on(canvas: "Canvas", fact: Fact, row: ClassRow, place: int) -> None:
    entry, path = canvas.state.timeline[place], f"{PATH}/{place}"
    if fact.event_class in COUNTED:
        return
    entry.source_event_ids.append(fact.id)
    canvas.ops.append(Operation("add", f"{path}/sourceEventIds/-", fact.id))
    if fact.event_class in ASIDE:
        return
    if entry.status != fact.status:
        canvas.put(entry, path, "status", fact.status)
    if fact.status in _ENDED:
        canvas.put(entry, path, "completed_at", _end(fact))
    elif entry.completed_at is not None:
        canvas.put(entry, path, "completed_at", None)
    canvas.put(entry, path, "event_class", fact.event_class)
    if entry.title != fact.title:
        canvas.put(entry, path, "title", fact.title)
    phase = fact.phase or row.phase
    if phase not in (UNKNOWN, entry.phase):
        canvas.put(entry, path, "phase", phase)
    detail, refs = _detail(fact), refs_of(fact)
    if detail is not None:
        canvas.put(entry, path, "detail", detail)
    if refs:
        canvas.put(entry, path, "refs", joined(entry.refs, refs))


def _detail(fact: Fact) -> str | None:
    if fact.detail:
        return detail_of(fact.detail)
    payload = fact.payload
    if "message" in payload or "summary" in payload or "reason" in payload:
        return detail_of(word(payload, "message", "summary", "reason"))
    return None


def _end(fact: Fact) -> str:
    return fact.completed_at or fact.created_at


def _subject(canvas: "Canvas", fact: Fact) -> str | None:
    place, find, prefix = _rule(fact.event_class or "")
    found = place(canvas) if place else find(fact) if find else None
    return None if found is None else f"{prefix}:{found}"


_Find = Callable[[Fact], str | None]


def _part(canvas: "Canvas") -> str | None:
    handle = canvas.part
    return None if handle is None else part_key(handle.message, handle.part)


def part_key(message: Message, part: Part) -> str:
    """What tells a part from any other of the thread."""
    turn = _quoted(message.turn_id or "")
    return f"{turn}:{_quoted(message.message_id)}:{_quoted(part.part_id)}"


def _quoted(name: str) -> str:
    return name.replace("%", "%25").replace(":", "%3A") if ":" in name or "%" in name else name


def _compaction(canvas: "Canvas") -> str:
    return str(len(canvas.state.context.compactions))


_BY_PLACE: Final[dict[str, Callable[["Canvas"], str | None]]] = {
    "model.delta": _part,
    "model.completed": _part,
    "text.delta": _part,
    "text.final": _part,
    "reasoning.started": _part,
    "reasoning.delta": _part,
    "reasoning.summary": _part,
    "reasoning.completed": _part,
    "context.compaction.started": _compaction,
    "context.compaction.completed": _compaction,
    "context.compaction.failed": _compaction,
    "history.compacted": _compaction,
}
"""Classes whose subject is known only once the fact is in the state."""


def _run(fact: Fact) -> str | None:
    return fact.run_id or turn_of(fact)


def _named(wire: str, attribute: str, *payload: str) -> _Find:
    def find(fact: Fact) -> str | None:
        return word(fact.payload, *payload) or other_id(fact, wire, attribute)

    return find


def _first(find: Callable[[Fact], list[str]]) -> _Find:
    return lambda fact: next(iter(find(fact)), None)


def _of_thread(fact: Fact) -> str:
    """What a thread has one of at a time: its entry begins again with the next."""
    return fact.thread_id or ""


def _no_subject(_: Fact) -> None:
    return None


_BY_FAMILY: Final[dict[str, _Find]] = {
    "turn": turn_of,
    "plan": turn_of,
    "tool": tool_of,
    "action": _named("actionId", "action_id"),
    "process": process_of,
    "command": process_of,
    "patch": _named("toolCallId", "tool_call_id", "patchId", "patch_id"),
    "test": _named("toolCallId", "tool_call_id", "testRunId", "test_run_id"),
    "hook": lambda fact: word(fact.payload, "hookId", "hook_id"),
    "artifact": _first(artifact_ids),
    "evidence": _first(evidence_ids),
    "review": _named("reviewId", "review_id"),
    "task": task_of,
    "job": _named("jobId", "job_id"),
    "subagent": teammate_of,
    "handoff": _named("handoffId", "handoff_id"),
}

_PERMISSION: Final = _named("actionId", "action_id")
_TRIAL: Final = _named("evidenceId", "evidence_id", "trialId")
_ATTEMPT: Final = _named("attemptId", "attempt_id", "attemptId", "runId")

_BY_CLASS: Final[dict[str, _Find]] = {
    "run.status": _run,
    "run.started": turn_of,
    "run.finished": turn_of,
    "run.failed": turn_of,
    "worker.started": teammate_of,
    "worker.completed": teammate_of,
    "task.attempt.started": _ATTEMPT,
    "task.attempt.completed": _ATTEMPT,
    "task.attempt.failed": _ATTEMPT,
    "tool.catalog.resolved": _no_subject,
    "permission.requested": _PERMISSION,
    "permission.resolved": _PERMISSION,
    "permission.denied": _PERMISSION,
    "benchmark.trial.started": _TRIAL,
    "benchmark.trial.completed": _TRIAL,
    "benchmark.trial.failed": _TRIAL,
    "stream.repair.started": _of_thread,
    "stream.repair.completed": _of_thread,
    "history.rollback.started": _of_thread,
    "history.rollback.completed": _of_thread,
}

_PREFIX: Final = {
    "model.delta": "text",
    "model.completed": "text",
    "text.delta": "text",
    "text.final": "text",
    "worker.started": "subagent",
    "worker.completed": "subagent",
    "context.compaction.started": "compaction",
    "context.compaction.completed": "compaction",
    "context.compaction.failed": "compaction",
    "history.compacted": "compaction",
    "task.attempt.started": "attempt",
    "task.attempt.completed": "attempt",
    "task.attempt.failed": "attempt",
    "benchmark.trial.started": "trial",
    "benchmark.trial.completed": "trial",
    "benchmark.trial.failed": "trial",
    "stream.repair.started": "repair",
    "stream.repair.completed": "repair",
    "history.rollback.started": "rollback",
    "history.rollback.completed": "rollback",
    "run.started": "turn",
    "run.finished": "turn",
    "run.failed": "turn",
}


@lru_cache(maxsize=1_024)
def _rule(name: str) -> tuple[Callable[["Canvas"], str | None] | None, _Find | None, str]:
    """How the subject of a class is found, and what its entries are called."""
    family = name.partition(".")[0]
    find = _BY_CLASS.get(name) or _BY_FAMILY.get(family)
    return _BY_PLACE.get(name), find, _PREFIX.get(name) or family

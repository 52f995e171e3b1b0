"""The process timeline: what happened, in order, one entry for each thing that happened.

The facts of one tool call, action, part or task are one entry that goes on; any other fact is an
entry of its own. Deltas add nothing after the first. An entry whose fact lacks what its class needs
is degraded, and never reads as completed.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from factwire.facts.classes.specification import EventClass
from factwire.facts.fact import Fact
from factwire.facts.json_values import text_at
from factwire.facts.outcomes import (
    ENDED_STATUSES,
    LASTING_FAMILIES,
    OPEN_STATUSES,
    meaning_of_status,
    status_of_silent,
)
from factwire.facts.refs import refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.artifacts import artifact_ids, evidence_ids
from factwire.projection.changes import Operation
from factwire.projection.coding import process_of
from factwire.projection.messages import part_entry_key
from factwire.projection.payload_fields import (
    other_id,
    shorten_detail,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
)
from factwire.projection.subagents import teammate_of
from factwire.projection.tasks import COUNTED_CLASSES, STATUSLESS_CLASSES
from factwire.projection.turns import run_key, turn_key
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

TIMELINE_PATH: Final = "/timeline"


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
    failure_category: str | None = None
    recovery_hint: str | None = None
    degraded: bool | None = None
    turn_id: str | None = None
    subagent_id: str | None = None
    created_at: str | None = None
    completed_at: str | None = None


def record_entry(
    draft: "StateDraft",
    fact: Fact,
    row: EventClass,
    status: str | None,
    refs: list[str],
    *,
    degraded: bool = False,
) -> None:
    """Write a fact down: into the entry of its subject, or as an entry of its own. `status` and
    `refs` are those that the fact states.
    """
    subject = None if degraded else _subject_key(draft, fact)
    key = subject or f"fact:{fact.id}"
    place = draft.memory.entries.get(key)
    if place is None:
        _begin_entry(draft, fact, row, key, status, refs=refs, degraded=degraded)
        return
    if refs:
        draft.extend(draft.state.timeline[place], f"{TIMELINE_PATH}/{place}", "refs", refs)
    if fact.event_class not in COUNTED_CLASSES:
        _continue_entry(draft, fact, row, place, status)


def _begin_entry(
    draft: "StateDraft",
    fact: Fact,
    row: EventClass,
    key: str,
    stated: str | None,
    *,
    refs: list[str],
    degraded: bool,
) -> None:
    status = status_of_silent(fact) if stated is None else stated
    if degraded:
        status = UNKNOWN
    if fact.event_class in STATUSLESS_CLASSES:
        status = "running"
    category, hint = _read_failure(fact, stated)
    entry = TimelineEntry(
        entry_id=key,
        sequence=fact.sequence,
        kind=fact.kind,
        event_class=fact.event_class or UNKNOWN,
        phase=_phase_of(fact, row, status),
        owner=fact.owner or row.owner,
        surface=fact.surface or row.surface,
        status=status,
        title=fact.title,
        source_event_ids=[fact.id],
        detail=_entry_detail(fact),
        refs=refs or None,
        failure_category=category,
        recovery_hint=hint,
        degraded=degraded or None,
        turn_id=turn_of(fact),
        subagent_id=subagent_of(fact),
        created_at=fact.created_at,
        completed_at=_end_time(fact) if status in ENDED_STATUSES else None,
    )
    place = draft.memory.entries[key] = len(draft.state.timeline)
    if status in OPEN_STATUSES:
        draft.memory.track_entry(entry, place)
    draft.push(draft.state.timeline, TIMELINE_PATH, entry)


def _continue_entry(
    draft: "StateDraft", fact: Fact, row: EventClass, place: int, status: str | None
) -> None:
    entry, path = draft.state.timeline[place], f"{TIMELINE_PATH}/{place}"
    entry.source_event_ids.append(fact.id)
    draft.ops.append(Operation("add", f"{path}/sourceEventIds/-", fact.id))
    if fact.event_class in STATUSLESS_CLASSES or draft.overruled == fact.id:
        return
    if status is not None:
        ended = _end_time(fact) if status in ENDED_STATUSES else None
        if status in OPEN_STATUSES and turn_of(fact) not in (None, entry.turn_id):
            # What goes on in another turn ends with that one.
            draft.memory.open_entries.get(entry.turn_id, {}).pop(place, None)
            draft.put(entry, path, "turn_id", turn_of(fact))
        set_entry_status(draft, place, status, ended)
    draft.put(entry, path, "event_class", fact.event_class)
    category, hint = _read_failure(fact, status)
    if category != entry.failure_category or hint != entry.recovery_hint:
        draft.put(entry, path, "failure_category", category)
        draft.put(entry, path, "recovery_hint", hint)
    if entry.title != fact.title:
        draft.put(entry, path, "title", fact.title)
    phase = _phase_of(fact, row, status)
    if phase not in (UNKNOWN, entry.phase):
        draft.put(entry, path, "phase", phase)
    detail = _entry_detail(fact)
    if detail is not None:
        draft.put(entry, path, "detail", detail)


def add_streamed_refs(draft: "StateDraft", fact: Fact) -> None:
    """The refs of a piece that continues its entry; nothing else about the entry changes."""
    refs = refs_of(fact)
    place = draft.memory.entries.get(_subject_key(draft, fact) or "") if refs else None
    if place is not None:
        draft.extend(draft.state.timeline[place], f"{TIMELINE_PATH}/{place}", "refs", refs)


ENDED_PHASES: Final = {"completed": "completed", "failed": "failed", "canceled": "cancelled"}
"""Status of something that has ended → its phase."""


def _phase_of(fact: Fact, row: EventClass, status: str | None) -> str:
    """The phase of what a fact is about; what begins and ends is in no other phase once it has
    ended.
    """
    ended = ENDED_PHASES.get(meaning_of_status(status or UNKNOWN))
    is_lasting = (fact.event_class or "").partition(".")[0] in LASTING_FAMILIES
    if ended is not None and (is_lasting or ended != "completed"):
        return ended
    stated = fact.phase or row.phase
    return UNKNOWN if ended is None and stated in ENDED_PHASES.values() else stated


def _entry_detail(fact: Fact) -> str | None:
    if fact.detail:
        return shorten_detail(fact.detail)
    payload = fact.payload
    if "message" in payload or "summary" in payload or "reason" in payload:
        return shorten_detail(text_at(payload, "message", "summary", "reason"))
    return None


def _read_failure(fact: Fact, status: str | None) -> tuple[str | None, str | None]:
    """Why something failed and what could help, as the fact that ends it states it."""
    payload = fact.payload
    if status != "failed":
        return None, None
    return text_at(payload, "failureCategory"), text_at(payload, "recoveryHint")


def end_entry(draft: "StateDraft", place: int, status: str, completed_at: str | None) -> None:
    """Put an entry into the status, and so the phase, that the end of something else means for
    it.
    """
    set_entry_status(draft, place, status, completed_at)
    phase = ENDED_PHASES.get(status, UNKNOWN)
    draft.put(draft.state.timeline[place], f"{TIMELINE_PATH}/{place}", "phase", phase)


def set_entry_status(
    draft: "StateDraft", place: int, status: str, completed_at: str | None
) -> None:
    """Put an entry into a status, and keep track of which ones are open."""
    entry = draft.state.timeline[place]
    if entry.status != status or entry.completed_at != completed_at:
        path = f"{TIMELINE_PATH}/{place}"
        draft.put(entry, path, "status", status)
        draft.put(entry, path, "completed_at", completed_at)
    draft.memory.track_entry(entry, place)


def _end_time(fact: Fact) -> str:
    return fact.completed_at or fact.created_at


def _subject_key(draft: "StateDraft", fact: Fact) -> str | None:
    place, find, prefix = _entry_rule(fact.event_class or "")
    found = place(draft) if place else find(fact) if find else None
    if found is None:
        return None
    # The thread shares the entries of turns and runs with those who work beside it.
    if prefix == "turn":
        found = turn_key(draft, fact)
    elif prefix == "run":
        found = run_key(draft, fact, found)
    return f"{prefix}:{found}"


_Find = Callable[[Fact], str | None]


def _part_subject(draft: "StateDraft") -> str | None:
    handle = draft.part
    return None if handle is None else part_entry_key(handle.message, handle.part)


def _compaction_subject(draft: "StateDraft") -> str:
    return str(len(draft.state.context.compactions))


_BY_PLACE: Final[dict[str, Callable[["StateDraft"], str | None]]] = {
    "model.delta": _part_subject,
    "model.completed": _part_subject,
    "text.delta": _part_subject,
    "text.final": _part_subject,
    "reasoning.started": _part_subject,
    "reasoning.delta": _part_subject,
    "reasoning.summary": _part_subject,
    "reasoning.completed": _part_subject,
    "context.compaction.started": _compaction_subject,
    "context.compaction.completed": _compaction_subject,
    "context.compaction.failed": _compaction_subject,
    "history.compacted": _compaction_subject,
}
"""Classes whose subject is known only once the fact is in the state."""


def _run_of(fact: Fact) -> str | None:
    return fact.run_id or turn_of(fact)


def _subject_by_id(wire: str, attribute: str, *payload: str) -> _Find:
    def find(fact: Fact) -> str | None:
        return text_at(fact.payload, *payload) or other_id(fact, wire, attribute)

    return find


def _first_of(find: Callable[[Fact], list[str]]) -> _Find:
    return lambda fact: next(iter(find(fact)), None)


def _thread_subject(fact: Fact) -> str:
    """What a thread has one of at a time: its entry begins again with the next."""
    return fact.thread_id or ""


def _no_subject(_: Fact) -> None:
    return None


_BY_FAMILY: Final[dict[str, _Find]] = {
    "turn": turn_of,
    "plan": turn_of,
    "tool": tool_of,
    "action": _subject_by_id("actionId", "action_id"),
    "process": process_of,
    "command": process_of,
    "patch": _subject_by_id("toolCallId", "tool_call_id", "patchId", "patch_id"),
    "test": _subject_by_id("toolCallId", "tool_call_id", "testRunId", "test_run_id"),
    "hook": lambda fact: text_at(fact.payload, "hookId", "hook_id"),
    "artifact": _first_of(artifact_ids),
    "evidence": _first_of(evidence_ids),
    "review": _subject_by_id("reviewId", "review_id"),
    "task": task_of,
    "job": _subject_by_id("jobId", "job_id"),
    "subagent": teammate_of,
    "handoff": _subject_by_id("handoffId", "handoff_id"),
}

_PERMISSION: Final = _subject_by_id("actionId", "action_id")
_TRIAL: Final = _subject_by_id("evidenceId", "evidence_id", "trialId")
_ATTEMPT: Final = _subject_by_id("attemptId", "attempt_id", "attemptId", "runId")

_BY_CLASS: Final[dict[str, _Find]] = {
    "run.status": _run_of,
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
    "stream.repair.started": _thread_subject,
    "stream.repair.completed": _thread_subject,
    "history.rollback.started": _thread_subject,
    "history.rollback.completed": _thread_subject,
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
def _entry_rule(name: str) -> tuple[Callable[["StateDraft"], str | None] | None, _Find | None, str]:
    """How the subject of a class is found, and what its entries are called."""
    family = name.partition(".")[0]
    find = _BY_CLASS.get(name) or _BY_FAMILY.get(family)
    return _BY_PLACE.get(name), find, _PREFIX.get(name) or family

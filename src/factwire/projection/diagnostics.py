"""Diagnostics: what a person may want to look into, kept apart from the conversation.

They are bounded, the oldest going first; a counter says how many there were. A fact may be one
itself, under a code of its own; `DIAGNOSTIC_CODES` are those that a projection adds.
"""

from typing import TYPE_CHECKING, Final, Literal

from factwire.facts.classes.payloads import DiagnosticPayload
from factwire.facts.fact import Fact
from factwire.facts.json_values import text_at
from factwire.facts.refs import ref_at, refs_of
from factwire.projection.limits import DIAGNOSTICS_KEPT
from factwire.projection.messages import DiagnosticRefPart, add_reference, message_beside
from factwire.projection.payload_fields import (
    drop_placeholder_time,
    read_payload,
    shorten_detail,
    tool_of,
    turn_of,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

DIAGNOSTICS_PATH: Final = "/diagnostics"
DIAGNOSTIC_ITEMS_PATH: Final = "/diagnostics/items"

DiagnosticCode = Literal[
    "conflicting_fact",
    "sequence_conflict",
    "window_overflow",
    "foreign_thread",
    "unknown_event_type",
    "missing_scope_id",
    "state_delta_failed",
    "snapshot_outdated",
    "stream_gap_reported",
    "lineage_missing",
    "teammate_unnamed",
    "tool_unclosed_at_turn_end",
    "part_ambiguous",
    "action_already_decided",
    "snapshot_lacks_text",
    "unreadable_row",
]

DIAGNOSTIC_CODES: Final[dict[DiagnosticCode, str]] = {
    "conflicting_fact": "an id was used again with different content; the first one counts",
    "sequence_conflict": "two facts claim the same sequence; the first one counts",
    "window_overflow": (
        "too many facts were held after a gap, so they were applied without the missing ones"
    ),
    "foreign_thread": "facts of an unrelated thread were ignored",
    "unknown_event_type": "a fact of an unknown class is shown only in the timeline",
    "missing_scope_id": "a fact without a required id is shown only in the timeline",
    "state_delta_failed": "a patch does not apply to the application's state, which is unchanged",
    "snapshot_outdated": "a snapshot is older than the state, which is complete; it was ignored",
    "stream_gap_reported": "the source reports missing facts",
    "lineage_missing": "no fact states which task a subagent works on",
    "teammate_unnamed": "a fact about a teammate does not name it",
    "tool_unclosed_at_turn_end": "a turn that was not cancelled ended with an open tool call",
    "part_ambiguous": "a text does not name its part while several are open; it is kept apart",
    "action_already_decided": "an answered action was answered differently; the first one counts",
    "snapshot_lacks_text": "a snapshot of the messages took away text that facts had shown",
    "unreadable_row": "a row of an earlier history cannot be read and was left out",
}
"""What each code of a projection's own remarks means."""

_SEVERITY: Final = {
    "runtime.error": "error",
    "model.failed": "error",
    "tool.failed": "warning",
    "tool.result": "warning",
    "hook.failed": "warning",
    "permission.denied": "warning",
    "runtime.warning": "warning",
    "rate_limit.hit": "warning",
    "quota.low": "warning",
    "quota.blocked": "error",
    "routing.not_possible": "error",
    "context.failed": "warning",
    "context.compaction.failed": "warning",
    "sandbox.violation": "error",
    "sandbox.blocked": "warning",
    "run.persistence_error": "error",
}


_CODE_OF_CLASS: Final = {"tool.result": "tool.failed"}
"""A result is a diagnostic only where it states a failure."""


class Diagnostic(View):
    """One remark; `code` is stable, `message` is for people."""

    diagnostic_id: str
    code: str
    severity: str
    message: str
    event_id: str
    sequence: int | None = None
    turn_id: str | None = None
    subject: str | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None
    raw_ref: str | None = None
    refs: list[str] | None = None
    created_at: str | None = None


class Diagnostics(View):
    """The newest remarks by id, and how many there have been."""

    items: dict[str, Diagnostic]
    total: int
    errors: int
    warnings: int


def empty_diagnostics() -> Diagnostics:
    return Diagnostics(items={}, total=0, errors=0, warnings=0)


def add_remark(
    draft: "StateDraft",
    fact: Fact,
    code: DiagnosticCode,
    message: str,
    *,
    severity: str = "warning",
    subject: str | None = None,
) -> Diagnostic:
    """Say something about a fact that the fact does not say itself."""
    diagnostic = Diagnostic(
        diagnostic_id=f"{code}:{fact.id}" if subject is None else f"{code}:{fact.id}:{subject}",
        code=code,
        severity=severity,
        message=message,
        event_id=fact.id,
        sequence=fact.sequence,
        turn_id=turn_of(fact),
        subject=subject,
        created_at=drop_placeholder_time(fact).created_at,
    )
    keep_diagnostic(draft, diagnostic)
    return diagnostic


def record_diagnostic(draft: "StateDraft", fact: Fact) -> None:
    """A fact that is a diagnostic itself; errors and warnings of a run get a way to them."""
    payload, name = read_payload(fact, DiagnosticPayload), fact.event_class or ""
    severity = payload.severity or _SEVERITY.get(name) or "info"
    raw_ref = ref_at(fact.payload, "rawRef")
    diagnostic = Diagnostic(
        diagnostic_id=fact.id,
        code=payload.code
        or payload.failure_category
        or text_at(fact.payload, "reasonCode")
        or _CODE_OF_CLASS.get(name, name),
        severity=severity,
        message=shorten_detail(payload.message or fact.detail or fact.title) or name,
        event_id=fact.id,
        sequence=fact.sequence,
        turn_id=turn_of(fact),
        subject=tool_of(fact),
        failure_category=payload.failure_category,
        recovery_hint=payload.recovery_hint,
        raw_ref=raw_ref,
        refs=[ref for ref in refs_of(fact) if ref != raw_ref] or None,
        created_at=fact.created_at,
    )
    keep_diagnostic(draft, diagnostic)
    if name in ("runtime.warning", "runtime.error") and turn_of(fact) is not None:
        _reference_diagnostic(draft, fact, diagnostic)


def _reference_diagnostic(draft: "StateDraft", fact: Fact, diagnostic: Diagnostic) -> None:
    part = DiagnosticRefPart(
        part_id=f"diagnostic:{diagnostic.diagnostic_id}",
        message_id=message_beside(draft, fact),
        diagnostic_id=diagnostic.diagnostic_id,
    )
    add_reference(draft, fact, part)


def keep_diagnostic(draft: "StateDraft", diagnostic: Diagnostic) -> None:
    """Take in a remark; past the limit the oldest makes room."""
    kept = draft.state.diagnostics
    draft.create(kept.items, DIAGNOSTIC_ITEMS_PATH, diagnostic.diagnostic_id, diagnostic)
    if len(kept.items) > DIAGNOSTICS_KEPT:
        draft.remove(kept.items, DIAGNOSTIC_ITEMS_PATH, next(iter(kept.items)))
    draft.count(kept, DIAGNOSTICS_PATH, "total")
    if diagnostic.severity in ("error", "warning"):
        draft.count(kept, DIAGNOSTICS_PATH, f"{diagnostic.severity}s")


def drop_remark(draft: "StateDraft", diagnostic_id: str) -> None:
    """Take back a remark that turned out to be wrong."""
    kept = draft.state.diagnostics
    remark = kept.items.get(diagnostic_id)
    if remark is not None:
        draft.remove(kept.items, DIAGNOSTIC_ITEMS_PATH, diagnostic_id)
        draft.count(kept, DIAGNOSTICS_PATH, "total", -1)
        if remark.severity in ("error", "warning"):
            draft.count(kept, DIAGNOSTICS_PATH, f"{remark.severity}s", -1)

"""What our own outlets put into protocols that have no word for it, read back.

A note is a class, a payload and ids, as a client was told them. It comes from outside like anything
else: only classes are believed that begin and end nothing, and only with what their class needs.
"""

from typing import Any, Final

from factwire.facts import Fact, class_issues
from factwire.facts.ids import ATTRIBUTES
from factwire.projection.reading import word
from factwire.sources.telling import START, Telling

_FAMILIES: Final = frozenset(
    {
        "artifact",
        "channel",
        "context",
        "evidence",
        "handoff",
        "history",
        "hook",
        "limit",
        "permission",
        "plan",
        "queue",
        "quota",
        "rate_limit",
        "review",
        "runtime",
        "sandbox",
        "task",
        "worker",
    }
)
_CLASSES: Final = frozenset(
    {
        "file.changed",
        "file.read",
        "state.delta",
        "state.snapshot",
        "subagent.input",
        "subagent.progress",
        "subagent.status",
    }
)
_TOLD_BY_THEIR_CALL: Final = frozenset({"command", "patch", "test"})
"""Families that begin and end things inside of a call, whose result says how it went."""
_IDS: Final = (
    "subagentId",
    "taskId",
    "toolCallId",
    "artifactId",
    "evidenceId",
    "handoffId",
    "attemptId",
    "reviewId",
)
_NOT_SAID: Final = frozenset({*_IDS, "class", "refIds"})


def retell(tell: Telling, content: dict[str, Any]) -> None:
    """Tell a note again; one that cannot be believed is a warning with a ref."""
    event_class = word(content, "class") or ""
    family = event_class.partition(".")[0]
    if family in _TOLD_BY_THEIR_CALL:
        return
    if family not in _FAMILIES and event_class not in _CLASSES:
        tell.unknown(f"a note of {event_class}", content)
        return
    ids = {ATTRIBUTES[name]: value for name in _IDS if (value := word(content, name))}
    said = {name: value for name, value in content.items() if name not in _NOT_SAID}
    if class_issues(_probe(event_class, said, ids)):
        tell.unknown(f"a note of {event_class} that lacks what it needs", content)
    elif not (event_class.startswith("task.") and "subagent_id" in ids):
        # The task of a subagent is told with the subagent.
        tell.fact(event_class, said, **ids)


def _probe(event_class: str, said: dict[str, Any], ids: dict[str, Any]) -> Fact:
    return Fact(
        id="probe",
        kind="state",
        status="pending",
        title=event_class,
        created_at=START,
        schema_version="probe",
        runtime_id="probe",
        event_class=event_class,
        payload=said,
        **ids,
    )

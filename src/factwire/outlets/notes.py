"""Notes: facts that neither protocol has a word for, and that a client can still show.

A lasting note is a thing with an id, and comes again when the thing changes; a passing one is news
and is not kept. What is in no row stays inside: it is about the journal, or for people who look
into one.
"""

from typing import Final

import msgspec

from factwire.facts import Fact, id_of


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of note. `id_name` is the id of the thing that a lasting one is about."""

    name: str
    id_name: str | None = None


_BY_FAMILY: Final[dict[str, Note]] = {
    "artifact": Note(name="artifact", id_name="artifactId"),
    "channel": Note(name="channel", id_name="channelId"),
    "command": Note(name="command"),
    "context": Note(name="context"),
    "evidence": Note(name="evidence", id_name="evidenceId"),
    "handoff": Note(name="handoff", id_name="handoffId"),
    "history": Note(name="context"),
    "hook": Note(name="hook"),
    "limit": Note(name="limit"),
    "patch": Note(name="patch"),
    "permission": Note(name="permission"),
    "plan": Note(name="plan", id_name="partId"),
    "queue": Note(name="queue"),
    "quota": Note(name="limit"),
    "rate_limit": Note(name="limit"),
    "review": Note(name="review", id_name="reviewId"),
    "sandbox": Note(name="permission"),
    "subagent": Note(name="subagent-news"),
    "task": Note(name="task", id_name="taskId"),
    "test": Note(name="test"),
    "worker": Note(name="worker", id_name="workerId"),
}
_BY_CLASS: Final[dict[str, Note]] = {
    "action.updated": Note(name="action-news"),
    "file.changed": Note(name="artifact", id_name="artifactId"),
    "file.read": Note(name="file"),
    "runtime.error": Note(name="diagnostic"),
    "runtime.warning": Note(name="diagnostic"),
}
_IDS: Final = (
    ("subagentId", "subagent_id"),
    ("taskId", "task_id"),
    ("toolCallId", "tool_call_id"),
    ("artifactId", "artifact_id"),
    ("evidenceId", "evidence_id"),
    ("handoffId", "handoff_id"),
    ("actionId", "action_id"),
    ("attemptId", "attempt_id"),
    ("reviewId", "review_id"),
)
_REFS: Final = (
    ("refIds", "ref_ids"),
    ("artifactRefs", "artifact_refs"),
    ("evidenceRefs", "evidence_refs"),
)


def note_of(event_class: str) -> Note | None:
    """The note that facts of a class are."""
    return _BY_CLASS.get(event_class) or _BY_FAMILY.get(event_class.partition(".")[0])


def thing_of(fact: Fact, note: Note) -> str | None:
    """The id of what a lasting note is about; a passing one, or one without an id, has none."""
    return id_of(fact, note.id_name) if note.id_name else None


def content_of(fact: Fact) -> dict[str, object]:
    """What a note says: the class and the payload, with the ids of what it is about."""
    ids = {name: value for name, field in _IDS if (value := getattr(fact, field)) is not None}
    refs = {name: list(value) for name, field in _REFS if (value := getattr(fact, field))}
    return {**fact.payload, **ids, **refs, "class": fact.event_class}

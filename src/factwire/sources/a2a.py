"""A2A 1.0: what a remote agent streams about a task, over HTTP or JSON-RPC.

The agent works elsewhere, so it is a remote teammate: its task is a task, its words stand in its
own transcript. A task that needs something from a person ends its stream and is gone on with by
another; both can stand in one recording. An answer without a task is a message and nothing else.
"""

from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word
from factwire.sources.moments import moment_of_text
from factwire.sources.source import Source
from factwire.sources.telling import Telling


class A2a:
    """Converts the streams of one recording. `drafts` has the text of artifacts that grow."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.drafts: dict[str, list[str]] = {}
        self.titles: dict[str, str] = {}
        self.is_waiting = False

    def take(self, item: dict[str, Any]) -> None:
        """One response; those of JSON-RPC stand in an envelope."""
        error = table(item.get("error"))
        if error is not None:
            if not self.tell.is_open:
                self.tell.begin()
            self.tell.fail("provider_error", word(error, "message") or "the remote agent failed")
            return
        response = table(item.get("result")) or item
        for kind, handle in _RESPONSES.items():
            told = table(response.get(kind))
            if told is not None:
                handle(self, told)
                return
        self.tell.unknown("a response of no known kind", item)

    def finish(self) -> None:
        """A task that waits was left at its question, and not cut off."""
        if self.is_waiting:
            self.is_waiting = False
            self.tell.complete(stopReason="interrupt")

    def begin(self, task_id: str, prompt: str | None = None, context: str | None = None) -> None:
        """A task that is not known yet is one for a remote teammate."""
        if not self.tell.is_open:
            self.tell.begin(prompt)
        if task_id in self.tell.subagents:
            return
        said = {"topology": "remote_teammate", "remoteTaskId": task_id}
        self.tell.subagent(task_id, task_id=task_id, **said)
        ids = {"task_id": task_id, "subagent_id": task_id, "remote_task_id": task_id}
        self.tell.fact("channel.connected", said, channel_id=context or task_id, **ids)

    def end(self, task_id: str, event_class: str, **said: Any) -> None:
        """The remote task is over; artifacts that it left unfinished are as they are."""
        for artifact_id in list(self.drafts):
            _finish_artifact(self, task_id, artifact_id)
        self.tell.subagent_end(task_id, event_class, **said)


def _task(a2a: A2a, task: dict[str, Any]) -> None:
    """A task as it stands: the first of a stream, or where a subscription begins."""
    task_id = word(task, "id") or "task"
    prompt = None
    for message in map(table, listed(task.get("history")) or ()):
        if message and word(message, "role") == "ROLE_USER":
            prompt = _text(message.get("parts")) or prompt
    a2a.begin(task_id, prompt, word(task, "contextId"))
    for artifact in map(table, listed(task.get("artifacts")) or ()):
        _artifact(a2a, {"taskId": task_id, "artifact": artifact, "lastChunk": True})
    _status(a2a, {"taskId": task_id, "status": task.get("status")})


def _message(a2a: A2a, message: dict[str, Any]) -> None:
    """An answer; without a task it is the whole of its stream."""
    task_id, message_id = word(message, "taskId"), word(message, "messageId") or "message"
    if task_id is not None:
        a2a.begin(task_id, context=word(message, "contextId"))
    a2a.tell.text_end(message_id, _text(message.get("parts")), subagent_id=task_id)
    if task_id is None:
        a2a.tell.complete()


def _status(a2a: A2a, update: dict[str, Any]) -> None:
    task_id, status = word(update, "taskId") or "task", table(update.get("status")) or {}
    a2a.tell.at = moment_of_text(word(status, "timestamp")) or a2a.tell.at
    a2a.begin(task_id, context=word(update, "contextId"))
    state = (word(status, "state") or "").removeprefix("TASK_STATE_")
    said = _say(a2a, task_id, table(status.get("message")) or {})
    handle = _STATES.get(state)
    if handle is None:
        a2a.tell.unknown(f"state {state}", update)
    else:
        handle(a2a, task_id, said)


def _say(a2a: A2a, task_id: str, message: dict[str, Any]) -> str | None:
    """The words that come with a state."""
    text = _text(message.get("parts"))
    if not text:
        return None
    message_id = word(message, "messageId") or f"{task_id}:status"
    a2a.tell.text_end(message_id, text, subagent_id=task_id)
    return text


def _submitted(a2a: A2a, task_id: str, said: str | None) -> None:
    del said
    _task_fact(a2a, task_id, "task.accepted")


def _working(a2a: A2a, task_id: str, said: str | None) -> None:
    """The task is worked on; if it had waited, somebody has answered."""
    for action_id in [key for key in a2a.tell.actions if key == f"{task_id}:input"]:
        a2a.tell.answered(action_id, "answered")
    _task_fact(a2a, task_id, "task.resumed" if a2a.is_waiting else "task.started", detail=said)
    a2a.is_waiting = False


def _input(a2a: A2a, task_id: str, said: str | None) -> None:
    _wait(a2a, task_id, said, "clarification")


def _auth(a2a: A2a, task_id: str, said: str | None) -> None:
    _wait(a2a, task_id, said, "credential_request")


def _wait(a2a: A2a, task_id: str, said: str | None, action_type: str) -> None:
    asked = {"actionType": action_type, **({"prompt": said} if said else {})}
    a2a.tell.ask(f"{task_id}:input", asked, subagent_id=task_id)
    _task_fact(a2a, task_id, "task.waiting", reason="input")
    a2a.is_waiting = True


def _completed(a2a: A2a, task_id: str, said: str | None) -> None:
    a2a.is_waiting = False
    a2a.end(task_id, "subagent.completed", summary=said)
    a2a.tell.complete()


def _failed(a2a: A2a, task_id: str, said: str | None) -> None:
    _stop(a2a, task_id, "remote_task_failed", said or "the remote task failed")


def _rejected(a2a: A2a, task_id: str, said: str | None) -> None:
    _stop(a2a, task_id, "remote_task_rejected", said or "the remote agent took no such task")


def _stop(a2a: A2a, task_id: str, category: str, message: str) -> None:
    a2a.is_waiting = False
    a2a.end(task_id, "subagent.failed", failureCategory=category, message=message)
    a2a.tell.fail(category, message)


def _canceled(a2a: A2a, task_id: str, said: str | None) -> None:
    a2a.is_waiting = False
    a2a.end(task_id, "subagent.failed", failureCategory="cancelled", message=said or "cancelled")
    a2a.tell.cancel("cancelled")


def _artifact(a2a: A2a, update: dict[str, Any]) -> None:
    """A piece of an artifact. Text is gathered until it is whole; all else is named by a ref."""
    task_id, artifact = word(update, "taskId") or "task", table(update.get("artifact")) or {}
    a2a.begin(task_id, context=word(update, "contextId"))
    artifact_id = word(artifact, "artifactId") or "artifact"
    if update.get("append") is not True or artifact_id not in a2a.drafts:
        a2a.drafts[artifact_id] = []
    a2a.titles[artifact_id] = word(artifact, "name") or a2a.titles.get(artifact_id) or artifact_id
    a2a.drafts[artifact_id].append(_text(artifact.get("parts")))
    refs = _others(a2a, artifact)
    if refs or update.get("lastChunk") is not True:
        _artifact_fact(a2a, task_id, artifact_id, {"status": "draft"}, refs)
    if update.get("lastChunk") is True:
        _finish_artifact(a2a, task_id, artifact_id)


def _finish_artifact(a2a: A2a, task_id: str, artifact_id: str) -> None:
    text = "".join(a2a.drafts.pop(artifact_id, ()))
    said = {"status": "ready"}
    if text:
        said["contentRef"] = a2a.tell.keep(text.encode("utf-8", "replace"))
    _artifact_fact(a2a, task_id, artifact_id, said, ())


def _artifact_fact(
    a2a: A2a, task_id: str, artifact_id: str, said: dict[str, str], refs: tuple[str, ...]
) -> None:
    told = {"kind": "document", "title": a2a.titles.get(artifact_id) or artifact_id, **said}
    ids = {"artifact_id": artifact_id, "task_id": task_id, "subagent_id": task_id}
    a2a.tell.fact("artifact.changed", told, ref_ids=refs, **ids)


def _others(a2a: A2a, artifact: dict[str, Any]) -> tuple[str, ...]:
    """Refs of the parts that are no text: bytes and data are kept, an address is its own ref."""
    parts = [
        part
        for part in map(table, listed(artifact.get("parts")) or ())
        if part and _OTHER & part.keys()
    ]
    if not parts:
        return ()
    held = [raw.encode("utf-8", "replace") for raw in _each(parts, "raw")]
    held += [msgspec.json.encode(part["data"]) for part in parts if part.get("data") is not None]
    return (*map(a2a.tell.keep, held), *_each(parts, "url"))


def _each(parts: list[dict[str, Any]], field: str) -> list[str]:
    return [value for part in parts if (value := word(part, field))]


def _task_fact(a2a: A2a, task_id: str, event_class: str, **said: str | None) -> None:
    told = {key: value for key, value in said.items() if value}
    ids = {"task_id": task_id, "subagent_id": task_id, "remote_task_id": task_id}
    a2a.tell.fact(event_class, told, **ids)


def _text(parts: object) -> str:
    return "".join(word(part, "text") or "" for part in map(table, listed(parts) or ()) if part)


_OTHER: Final = frozenset({"raw", "data", "url"})
_RESPONSES: Final = {
    "task": _task,
    "message": _message,
    "statusUpdate": _status,
    "artifactUpdate": _artifact,
}
_STATES: Final = {
    "SUBMITTED": _submitted,
    "WORKING": _working,
    "INPUT_REQUIRED": _input,
    "AUTH_REQUIRED": _auth,
    "COMPLETED": _completed,
    "FAILED": _failed,
    "REJECTED": _rejected,
    "CANCELED": _canceled,
}

SOURCE: Final = Source(
    name="a2a",
    title="A2A",
    framing="events",
    versions="1.0",
    converter=A2a,
    maps={
        "task": "turn.submitted, turn.started, task.created, subagent.started, channel.connected",
        "SUBMITTED, WORKING": "task.accepted, task.started, task.resumed",
        "INPUT_REQUIRED": "action.required (clarification), task.waiting",
        "AUTH_REQUIRED": "action.required (credential_request), task.waiting",
        "COMPLETED": "subagent.completed, task.completed, turn.completed",
        "FAILED, REJECTED": "subagent.failed, task.failed, turn.failed",
        "CANCELED": "subagent.failed, task.failed, turn.canceled",
        "message, the message of a status": "model.completed, in the teammate's transcript",
        "message without a task": "model.completed, turn.completed",
        "artifactUpdate": "artifact.changed, with a ref to the whole when it is",
        "an error of JSON-RPC": "turn.failed",
    },
    lacks=("text deltas", "tools", "usage", "what was answered"),
)

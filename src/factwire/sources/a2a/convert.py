"""A2A 1.0: what a remote agent streams about a task, over HTTP or JSON-RPC.

The agent works elsewhere, so it is a remote teammate: its task is a task, its words stand in its
own transcript. A task that needs something from a person ends its stream and is gone on with by
another; both can stand in one recording. An answer without a task is a message and nothing else.
"""

from typing import Any, Final

import msgspec

from factwire.facts.json_values import list_at, object_at, objects_of, text_at
from factwire.sources.a2a.data_parts import DataParts, is_thought
from factwire.sources.kit.fact_builder import FactBuilder, parse_iso_time
from factwire.sources.source_registry import Source


class A2a:
    """Converts the streams of one recording. `drafts` has the text of artifacts that grow."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.drafts: dict[str, list[str]] = {}
        self.titles: dict[str, str] = {}
        self.is_waiting = False
        self.data = DataParts(builder)

    def take(self, item: dict[str, Any]) -> None:
        """One response; those of JSON-RPC stand in an envelope."""
        error = object_at(item.get("error"))
        if error is not None:
            if not self.builder.is_open:
                self.builder.begin_turn()
            self.builder.fail_turn(
                "provider_error", text_at(error, "message") or "the remote agent failed"
            )
            return
        response = object_at(item.get("result")) or item
        for kind, handle in _RESPONSES.items():
            payload = object_at(response.get(kind))
            if payload is not None:
                handle(self, payload)
                return
        self.builder.warn_unknown("a response of an unknown kind", item)

    def finish(self) -> None:
        """A task that waits was left at its question, and not cut off."""
        if self.is_waiting:
            self.is_waiting = False
            self.builder.complete_turn(stopReason="interrupt")

    def begin_turn(
        self, task_id: str, prompt: str | None = None, context: str | None = None
    ) -> None:
        """A task that is not known yet is one for a remote teammate."""
        if not self.builder.is_open:
            self.builder.begin_turn(prompt)
            self.data.reset()
        if task_id in self.builder.subagents:
            return
        payload = {"topology": "remote_teammate", "remoteTaskId": task_id}
        self.builder.start_subagent(task_id, task_id=task_id, **payload)
        ids = {"task_id": task_id, "subagent_id": task_id, "remote_task_id": task_id}
        self.builder.add_fact("channel.connected", payload, channel_id=context or task_id, **ids)

    def end_turn(self, task_id: str, event_class: str, **extra_fields: Any) -> None:
        """The remote task is over; artifacts that it left unfinished are as they are."""
        for artifact_id in list(self.drafts):
            _finish_artifact(self, task_id, artifact_id)
        self.builder.end_subagent(task_id, event_class, **extra_fields)


def _on_task(a2a: A2a, task: dict[str, Any]) -> None:
    """A task as it stands: the first of a stream, or where a subscription begins."""
    task_id = text_at(task, "id") or "task"
    prompt = None
    for message in map(object_at, list_at(task.get("history")) or ()):
        if message and text_at(message, "role") == "ROLE_USER":
            prompt = _parts_text(message.get("parts")) or prompt
    a2a.begin_turn(task_id, prompt, text_at(task, "contextId"))
    for artifact in map(object_at, list_at(task.get("artifacts")) or ()):
        _on_artifact(a2a, {"taskId": task_id, "artifact": artifact, "lastChunk": True})
    _on_status(a2a, {"taskId": task_id, "status": task.get("status")})


def _on_message(a2a: A2a, message: dict[str, Any]) -> None:
    """An answer; without a task it is the whole of its stream."""
    task_id, message_id = text_at(message, "taskId"), text_at(message, "messageId") or "message"
    if task_id is not None:
        a2a.begin_turn(task_id, context=text_at(message, "contextId"))
    text = _take_parts(a2a, task_id, message_id, message)
    a2a.builder.end_text(message_id, text, subagent_id=task_id)
    if task_id is None:
        a2a.builder.complete_turn()


def _on_status(a2a: A2a, update: dict[str, Any]) -> None:
    task_id, status = text_at(update, "taskId") or "task", object_at(update.get("status")) or {}
    a2a.builder.at = parse_iso_time(text_at(status, "timestamp")) or a2a.builder.at
    a2a.begin_turn(task_id, context=text_at(update, "contextId"))
    state = (text_at(status, "state") or "").removeprefix("TASK_STATE_")
    text = _add_message(a2a, task_id, object_at(status.get("message")) or {})
    a2a.data.take_usage(task_id, update)
    handle = _STATES.get(state)
    if handle is None:
        a2a.builder.warn_unknown(f"state {state}", update)
    else:
        handle(a2a, task_id, text)


def _add_message(a2a: A2a, task_id: str, message: dict[str, Any]) -> str | None:
    """The words that come with a state."""
    message_id = text_at(message, "messageId") or f"{task_id}:status"
    text = _take_parts(a2a, task_id, message_id, message)
    if not text:
        return None
    a2a.builder.end_text(message_id, text, subagent_id=task_id)
    return text


def _take_parts(a2a: A2a, task_id: str | None, message_id: str, message: dict[str, Any]) -> str:
    """Tell what a message holds besides words; the words."""
    parts = message.get("parts")
    for part in objects_of(parts):
        if is_thought(part) and (thought := text_at(part, "text")):
            a2a.builder.add_reasoning(message_id, thought, subagent_id=task_id)
    a2a.data.keep_data(task_id, a2a.data.take_calls(task_id, parts))
    a2a.data.take_usage(task_id, message)
    return _parts_text(parts)


def _on_submitted(a2a: A2a, task_id: str, text: str | None) -> None:
    del text
    _task_fact(a2a, task_id, "task.accepted")


def _on_working(a2a: A2a, task_id: str, text: str | None) -> None:
    """The task is worked on; if it had waited, somebody has answered."""
    for action_id in [key for key in a2a.builder.actions if key == f"{task_id}:input"]:
        a2a.builder.resolve_action(action_id, "answered")
    _task_fact(a2a, task_id, "task.resumed" if a2a.is_waiting else "task.started", detail=text)
    a2a.is_waiting = False


def _on_input(a2a: A2a, task_id: str, text: str | None) -> None:
    _wait(a2a, task_id, text, "clarification")


def _on_auth(a2a: A2a, task_id: str, text: str | None) -> None:
    _wait(a2a, task_id, text, "credential_request")


def _wait(a2a: A2a, task_id: str, text: str | None, action_type: str) -> None:
    request = {"actionType": action_type, **({"prompt": text} if text else {})}
    a2a.builder.require_action(f"{task_id}:input", request, subagent_id=task_id)
    _task_fact(a2a, task_id, "task.waiting", reason="input")
    a2a.is_waiting = True


def _on_completed(a2a: A2a, task_id: str, text: str | None) -> None:
    a2a.is_waiting = False
    a2a.end_turn(task_id, "subagent.completed", summary=text)
    a2a.builder.complete_turn()


def _on_failed(a2a: A2a, task_id: str, text: str | None) -> None:
    _stop(a2a, task_id, "remote_task_failed", text or "the remote task failed")


def _on_rejected(a2a: A2a, task_id: str, text: str | None) -> None:
    _stop(a2a, task_id, "remote_task_rejected", text or "the remote agent rejected the task")


def _stop(a2a: A2a, task_id: str, category: str, message: str) -> None:
    a2a.is_waiting = False
    a2a.end_turn(task_id, "subagent.failed", failureCategory=category, message=message)
    a2a.builder.fail_turn(category, message)


def _on_canceled(a2a: A2a, task_id: str, text: str | None) -> None:
    a2a.is_waiting = False
    a2a.end_turn(
        task_id, "subagent.failed", failureCategory="cancelled", message=text or "cancelled"
    )
    a2a.builder.cancel_turn("cancelled")


def _on_artifact(a2a: A2a, update: dict[str, Any]) -> None:
    """A piece of an artifact. Text is gathered until it is whole; all else is named by a ref."""
    task_id, artifact = text_at(update, "taskId") or "task", object_at(update.get("artifact")) or {}
    a2a.begin_turn(task_id, context=text_at(update, "contextId"))
    artifact_id = text_at(artifact, "artifactId") or "artifact"
    if update.get("append") is not True or artifact_id not in a2a.drafts:
        a2a.drafts[artifact_id] = []
    a2a.titles[artifact_id] = (
        text_at(artifact, "name") or a2a.titles.get(artifact_id) or artifact_id
    )
    a2a.drafts[artifact_id].append(_parts_text(artifact.get("parts")))
    others = a2a.data.take_calls(task_id, artifact.get("parts"))
    a2a.data.take_usage(task_id, update)
    refs = _other_refs(a2a, artifact, others)
    if refs or update.get("lastChunk") is not True:
        _artifact_fact(a2a, task_id, artifact_id, {"status": "draft"}, refs)
    if update.get("lastChunk") is True:
        _finish_artifact(a2a, task_id, artifact_id)


def _finish_artifact(a2a: A2a, task_id: str, artifact_id: str) -> None:
    text = "".join(a2a.drafts.pop(artifact_id, ()))
    payload = {"status": "ready"}
    if text:
        payload["contentRef"] = a2a.builder.keep(text.encode("utf-8", "replace"))
    _artifact_fact(a2a, task_id, artifact_id, payload, ())


def _artifact_fact(
    a2a: A2a, task_id: str, artifact_id: str, payload: dict[str, str], refs: tuple[str, ...]
) -> None:
    fields = {"kind": "document", "title": a2a.titles.get(artifact_id) or artifact_id, **payload}
    ids = {"artifact_id": artifact_id, "task_id": task_id, "subagent_id": task_id}
    a2a.builder.add_fact("artifact.changed", fields, ref_ids=refs, **ids)


def _other_refs(a2a: A2a, artifact: dict[str, Any], data: list[dict[str, Any]]) -> tuple[str, ...]:
    """Refs of the parts that are no text: bytes and data are kept, an address is its own ref."""
    parts = [part for part in objects_of(artifact.get("parts")) if _OTHER & part.keys()]
    held = [raw.encode("utf-8", "replace") for raw in _part_values(parts, "raw")]
    held += [msgspec.json.encode(part["data"]) for part in data]
    return (*map(a2a.builder.keep, held), *_part_values(parts, "url"))


def _part_values(parts: list[dict[str, Any]], field: str) -> list[str]:
    return [value for part in parts if (value := text_at(part, field))]


def _task_fact(a2a: A2a, task_id: str, event_class: str, **extra_fields: str | None) -> None:
    payload = {key: value for key, value in extra_fields.items() if value}
    ids = {"task_id": task_id, "subagent_id": task_id, "remote_task_id": task_id}
    a2a.builder.add_fact(event_class, payload, **ids)


def _parts_text(parts: object) -> str:
    return "".join(
        text_at(part, "text") or "" for part in objects_of(parts) if not is_thought(part)
    )


_OTHER: Final = frozenset({"raw", "url"})
_RESPONSES: Final = {
    "task": _on_task,
    "message": _on_message,
    "statusUpdate": _on_status,
    "artifactUpdate": _on_artifact,
}
_STATES: Final = {
    "SUBMITTED": _on_submitted,
    "WORKING": _on_working,
    "INPUT_REQUIRED": _on_input,
    "AUTH_REQUIRED": _on_auth,
    "COMPLETED": _on_completed,
    "FAILED": _on_failed,
    "REJECTED": _on_rejected,
    "CANCELED": _on_canceled,
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
        "artifactUpdate": "artifact.changed, with a ref to the content once it is complete",
        "data parts of ADK's calls and results": "tool.started, tool.result",
        "other data parts": "artifact.changed, with a ref to the content",
        "adk_thought, adk_usage_metadata": "reasoning.delta, cost.recorded",
        "an error of JSON-RPC": "turn.failed",
    },
    lacks=("text deltas", "tools and usage of agents other than ADK's", "the answers"),
)

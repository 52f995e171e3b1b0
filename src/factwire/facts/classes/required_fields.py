"""The ids and fields that a fact of a class must carry to be about something.

A requirement is met by any one of its sources. Nothing is taken from text, and nothing is
invented: a fact that lacks what its class requires is reported, and shown as degraded.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from factwire.facts.fact import Fact, id_of
from factwire.facts.shapes import Shape

Source = Callable[[Fact], bool]

_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


class RequiredField(msgspec.Struct, frozen=True):
    """One thing that a class needs; `path` is where it is missed, relative to the fact."""

    path: str
    expected: str
    sources: tuple[Source, ...]

    def is_met(self, fact: Fact) -> bool:
        """Whether one of the sources is there."""
        return any(source(fact) for source in self.sources)


def _id(name: str) -> Source:
    return lambda fact: id_of(fact, name) is not None


def _text(*names: str) -> Source:
    def present(fact: Fact) -> bool:
        return any(isinstance(value := fact.payload.get(n), str) and bool(value) for n in names)

    return present


def _whole_number(name: str) -> Source:
    return lambda fact: type(fact.payload.get(name)) is int


def _non_empty(*names: str) -> Source:
    """A payload field that says something: not absent, null or empty; false and zero do."""
    return lambda fact: any(fact.payload.get(name) not in _EMPTY for name in names)


def _list(attribute: str, *payload_names: str) -> Source:
    in_payload = _non_empty(*payload_names)
    return lambda fact: bool(getattr(fact, attribute)) or in_payload(fact)


_TOOL = RequiredField("toolCallId", "toolCallId", (_id("toolCallId"),))
_ACTION = RequiredField("actionId", "actionId", (_id("actionId"),))
_THREAD = RequiredField("threadId", "threadId", (_id("threadId"),))
_TURN = RequiredField("turnId", "turnId", (_id("turnId"),))
_TASK = RequiredField("taskId", "taskId", (_id("taskId"),))
_TASK_OR_JOB = RequiredField("taskId", "taskId or jobId", (_id("taskId"), _id("jobId")))
_ARTIFACT = RequiredField(
    "artifactId",
    "artifactId or artifactRefs",
    (_id("artifactId"), _list("artifact_refs", "artifactRefs", "artifact_refs")),
)
_EVIDENCE = RequiredField(
    "evidenceId",
    "evidenceId or evidenceRefs",
    (_id("evidenceId"), _list("evidence_refs", "evidenceRefs", "evidence_refs")),
)
_REVIEW = RequiredField("reviewId", "reviewId", (_id("reviewId"),))
_SUBAGENT = RequiredField("subagentId", "subagentId", (_id("subagentId"),))
_HANDOFF = RequiredField("handoffId", "handoffId", (_id("handoffId"),))
_ATTEMPT = RequiredField("attemptId", "runId or attemptId", (_id("runId"), _id("attemptId")))
_PROJECT = RequiredField("projectId", "projectId", (_id("projectId"),))
_CONVERSATION = RequiredField("conversationId", "conversationId", (_id("conversationId"),))
_PARENT_THREAD = RequiredField("parentThreadId", "parentThreadId", (_id("parentThreadId"),))
_ITEM = RequiredField("itemId", "itemId", (_id("itemId"),))
_RUN = RequiredField("runId", "runId", (_id("runId"),))
_MEMBER = RequiredField("payload.memberId", "payload.memberId", (_text("memberId"),))
_RUNNER = RequiredField("payload.runnerId", "payload.runnerId", (_text("runnerId"),))
_PREVIEW = RequiredField("payload.previewId", "payload.previewId", (_text("previewId"),))
_PATH = RequiredField("payload.path", "payload.path", (_text("path"),))
_REASON = RequiredField(
    "payload.reasonCode", "payload.reasonCode", (_text("reasonCode", "reason_code"),)
)
_CATEGORY = RequiredField(
    "payload.failureCategory",
    "payload.failureCategory",
    (_text("failureCategory", "failure_category"),),
)
_PATCH = RequiredField(
    "payload.patchId",
    "payload.patchId or toolCallId",
    (_text("patchId", "patch_id"), _id("toolCallId")),
)
_COMMAND = RequiredField(
    "payload.commandId",
    "payload.commandId or toolCallId",
    (_text("commandId", "command_id"), _id("toolCallId")),
)
_TEST = RequiredField(
    "payload.testRunId",
    "payload.testRunId or toolCallId",
    (_text("testRunId", "test_run_id"), _id("toolCallId")),
)
_OUTPUT_REF = RequiredField(
    "refIds",
    "a ref to the output",
    (_list("ref_ids", "ref", "refId", "refIds", "outputRef", "output_ref", "textRef"),),
)
_EXIT = RequiredField(
    "payload.exitCode",
    "a whole number in payload.exitCode, or payload.status",
    (_whole_number("exitCode"), _whole_number("exit_code"), _text("status")),
)
_RESULT = RequiredField(
    "payload.result",
    "payload.result or payload.status",
    (_non_empty("result", "resultRef", "payloadRef"), _text("status")),
)

REQUIRED_KEYS: Final = frozenset(
    [
        *("path", "status", "result", "exitCode", "exit_code"),
        *("reasonCode", "reason_code", "failureCategory", "failure_category"),
        *("patchId", "patch_id", "commandId", "command_id", "testRunId", "test_run_id"),
        *("artifactRefs", "artifact_refs", "evidenceRefs", "evidence_refs"),
        *("memberId", "runnerId", "previewId"),
    ]
)
"""Payload keys, besides the ids, by which a need is met."""

_BY_FAMILY: Final[dict[str, tuple[RequiredField, ...]]] = {
    "tool": (_TOOL,),
    "action": (_ACTION,),
    "artifact": (_ARTIFACT,),
    "evidence": (_EVIDENCE,),
    "review": (_EVIDENCE, _REVIEW),
    "patch": (_PATCH,),
    "command": (_COMMAND,),
    "test": (_TEST,),
    "task": (_TASK,),
    "subagent": (_SUBAGENT, _TASK),
    "handoff": (_HANDOFF,),
    "project": (_PROJECT,),
    "conversation": (_CONVERSATION,),
    "message": (_ITEM,),
    "item": (_ITEM,),
    "runner": (_RUNNER,),
    "preview": (_PREVIEW,),
}

_BY_CLASS: Final[dict[str, tuple[RequiredField, ...]]] = {
    "task.changed": (_TASK_OR_JOB,),
    "file.read": (_PATH,),
    "file.changed": (_ARTIFACT, _PATH),
    "patch.failed": (_CATEGORY,),
    "command.output": (_OUTPUT_REF,),
    "command.exited": (_EXIT,),
    "test.completed": (_RESULT,),
    "sandbox.blocked": (_REASON,),
    "permission.denied": (_REASON,),
    "task.attempt.started": (_ATTEMPT,),
    "task.attempt.completed": (_ATTEMPT,),
    "task.attempt.failed": (_ATTEMPT,),
    "conversation.member.added": (_MEMBER,),
    "thread.created": (_THREAD,),
    "thread.deleted": (_THREAD,),
    "thread.forked": (_THREAD, _PARENT_THREAD),
    "run.persistence_error": (_RUN,),
}

_EXEMPT: Final = frozenset({"tool.catalog.resolved", "task.changed"})
"""Classes to which their family's needs do not apply."""

_IN_RUNTIME_EVENTS: Final = frozenset({"turn", "model", "reasoning", "permission", "sandbox"})


@lru_cache(maxsize=4096)
def required_fields_of(event_class: str, shape: Shape = "facts") -> tuple[RequiredField, ...]:
    """What a fact of this class must carry when it comes in this shape."""
    family = event_class.partition(".")[0]
    fields = () if event_class in _EXEMPT else _BY_FAMILY.get(family, ())
    if shape == "runtime-event" and family in _IN_RUNTIME_EVENTS:
        fields = (_THREAD, _TURN, *fields)
    return fields + _BY_CLASS.get(event_class, ())


def missing_fields(fact: Fact, shape: Shape = "facts") -> list[RequiredField]:
    """The needs of its class that a fact does not meet."""
    if fact.event_class is None:
        return []
    return [need for need in required_fields_of(fact.event_class, shape) if not need.is_met(fact)]

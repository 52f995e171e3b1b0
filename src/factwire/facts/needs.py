"""What a class needs to be about something: the ids and fields a fact must carry.

A need is met by any one of its sources. Nothing is taken from text, and nothing is invented: a fact
that lacks what its class needs is reported, and shown as degraded.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import id_of
from factwire.facts.shapes import Shape

Source = Callable[[Fact], bool]

_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


class Need(msgspec.Struct, frozen=True):
    """One thing that a class needs; `path` is where it is missed, relative to the fact."""

    path: str
    wanted: str
    sources: tuple[Source, ...]

    def met(self, fact: Fact) -> bool:
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


def _filled(*names: str) -> Source:
    """A payload field that says something: not absent, null or empty; false and zero do."""
    return lambda fact: any(fact.payload.get(name) not in _EMPTY for name in names)


def _list(attribute: str, *payload_names: str) -> Source:
    in_payload = _filled(*payload_names)
    return lambda fact: bool(getattr(fact, attribute)) or in_payload(fact)


_TOOL = Need("toolCallId", "toolCallId", (_id("toolCallId"),))
_ACTION = Need("actionId", "actionId", (_id("actionId"),))
_THREAD = Need("threadId", "threadId", (_id("threadId"),))
_TURN = Need("turnId", "turnId", (_id("turnId"),))
_TASK = Need("taskId", "taskId", (_id("taskId"),))
_TASK_OR_JOB = Need("taskId", "taskId or jobId", (_id("taskId"), _id("jobId")))
_ARTIFACT = Need(
    "artifactId",
    "artifactId or artifactRefs",
    (_id("artifactId"), _list("artifact_refs", "artifactRefs", "artifact_refs")),
)
_EVIDENCE = Need(
    "evidenceId",
    "evidenceId or evidenceRefs",
    (_id("evidenceId"), _list("evidence_refs", "evidenceRefs", "evidence_refs")),
)
_REVIEW = Need("reviewId", "reviewId", (_id("reviewId"),))
_SUBAGENT = Need("subagentId", "subagentId", (_id("subagentId"),))
_HANDOFF = Need("handoffId", "handoffId", (_id("handoffId"),))
_ATTEMPT = Need("attemptId", "runId or attemptId", (_id("runId"), _id("attemptId")))
_PROJECT = Need("projectId", "projectId", (_id("projectId"),))
_CONVERSATION = Need("conversationId", "conversationId", (_id("conversationId"),))
_PARENT_THREAD = Need("parentThreadId", "parentThreadId", (_id("parentThreadId"),))
_ITEM = Need("itemId", "itemId", (_id("itemId"),))
_RUN = Need("runId", "runId", (_id("runId"),))
_MEMBER = Need("payload.memberId", "payload.memberId", (_text("memberId"),))
_RUNNER = Need("payload.runnerId", "payload.runnerId", (_text("runnerId"),))
_PREVIEW = Need("payload.previewId", "payload.previewId", (_text("previewId"),))
_PATH = Need("payload.path", "payload.path", (_text("path"),))
_REASON = Need("payload.reasonCode", "payload.reasonCode", (_text("reasonCode", "reason_code"),))
_CATEGORY = Need(
    "payload.failureCategory",
    "payload.failureCategory",
    (_text("failureCategory", "failure_category"),),
)
_PATCH = Need(
    "payload.patchId",
    "payload.patchId or toolCallId",
    (_text("patchId", "patch_id"), _id("toolCallId")),
)
_COMMAND = Need(
    "payload.commandId",
    "payload.commandId or toolCallId",
    (_text("commandId", "command_id"), _id("toolCallId")),
)
_TEST = Need(
    "payload.testRunId",
    "payload.testRunId or toolCallId",
    (_text("testRunId", "test_run_id"), _id("toolCallId")),
)
_OUTPUT_REF = Need(
    "refIds",
    "a ref to the output",
    (_list("ref_ids", "ref", "refId", "refIds", "outputRef", "output_ref", "textRef"),),
)
_EXIT = Need(
    "payload.exitCode",
    "a whole number in payload.exitCode, or payload.status",
    (_whole_number("exitCode"), _whole_number("exit_code"), _text("status")),
)
_RESULT = Need(
    "payload.result",
    "payload.result or payload.status",
    (_filled("result", "resultRef", "payloadRef"), _text("status")),
)

NEEDED_KEYS: Final = frozenset(
    [
        *("path", "status", "result", "exitCode", "exit_code"),
        *("reasonCode", "reason_code", "failureCategory", "failure_category"),
        *("patchId", "patch_id", "commandId", "command_id", "testRunId", "test_run_id"),
        *("artifactRefs", "artifact_refs", "evidenceRefs", "evidence_refs"),
        *("memberId", "runnerId", "previewId"),
    ]
)
"""Payload keys, besides the ids, by which a need is met."""

_BY_FAMILY: Final[dict[str, tuple[Need, ...]]] = {
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

_BY_CLASS: Final[dict[str, tuple[Need, ...]]] = {
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
def needs_of(event_class: str, shape: Shape = "facts") -> tuple[Need, ...]:
    """What a fact of this class must carry when it comes in this shape."""
    family = event_class.partition(".")[0]
    needs = () if event_class in _EXEMPT else _BY_FAMILY.get(family, ())
    if shape == "runtime-event" and family in _IN_RUNTIME_EVENTS:
        needs = (_THREAD, _TURN, *needs)
    return needs + _BY_CLASS.get(event_class, ())


def missing_needs(fact: Fact, shape: Shape = "facts") -> list[Need]:
    """The needs of its class that a fact does not meet."""
    if fact.event_class is None:
        return []
    return [need for need in needs_of(fact.event_class, shape) if not need.met(fact)]

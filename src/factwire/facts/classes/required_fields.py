"""The ids and fields that a fact of a class must carry to be about something.

A requirement is met by any one of its sources. Nothing is taken from text, and nothing is
invented: a fact that lacks what its class requires is reported, and shown as degraded.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from factwire.facts.fact import Fact, id_of

_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


class FieldSource(msgspec.Struct, frozen=True):
    """One place where a requirement may be met; spilling keeps `kept_keys` in the payload."""

    is_in: Callable[[Fact], bool]
    kept_keys: tuple[str, ...] = ()


class RequiredField(msgspec.Struct, frozen=True):
    """One thing that a class needs; `path` is where it is missed, relative to the fact."""

    path: str
    expected: str
    sources: tuple[Callable[[Fact], bool], ...]
    kept_keys: tuple[str, ...] = ()
    """Payload keys, besides the ids, by which it is met."""

    def is_met(self, fact: Fact) -> bool:
        """Whether one of the sources is there."""
        return any(source(fact) for source in self.sources)


def _require(path: str, expected: str, *sources: FieldSource) -> RequiredField:
    keys = tuple(key for source in sources for key in source.kept_keys)
    return RequiredField(path, expected, tuple(source.is_in for source in sources), keys)


def _require_id(name: str) -> RequiredField:
    return _require(name, name, _id(name))


def _id(name: str) -> FieldSource:
    return FieldSource(lambda fact: id_of(fact, name) is not None)


def _text(*names: str) -> FieldSource:
    def present(fact: Fact) -> bool:
        return any(isinstance(value := fact.payload.get(n), str) and bool(value) for n in names)

    return FieldSource(present, names)


def _whole_number(name: str) -> FieldSource:
    return FieldSource(lambda fact: type(fact.payload.get(name)) is int, (name,))


def _non_empty(*names: str, refs: tuple[str, ...] = ()) -> FieldSource:
    """A payload field that says something: not absent, null or empty; false and zero do. `refs` are
    as good, and need not be kept: spilling leaves a ref of its own.
    """
    everywhere = (*names, *refs)
    return FieldSource(
        lambda fact: any(fact.payload.get(name) not in _EMPTY for name in everywhere), names
    )


def _list(attribute: str, in_payload: FieldSource) -> FieldSource:
    """Refs in a list of the fact itself, or else in its payload."""
    is_in = in_payload.is_in
    return FieldSource(
        lambda fact: bool(getattr(fact, attribute)) or is_in(fact), in_payload.kept_keys
    )


TOOL_CALL: Final = _require_id("toolCallId")
ACTION: Final = _require_id("actionId")
THREAD: Final = _require_id("threadId")
TURN: Final = _require_id("turnId")
TASK: Final = _require_id("taskId")
TASK_OR_JOB: Final = _require("taskId", "taskId or jobId", _id("taskId"), _id("jobId"))
ARTIFACT: Final = _require(
    "artifactId",
    "artifactId or artifactRefs",
    _id("artifactId"),
    _list("artifact_refs", _non_empty("artifactRefs", "artifact_refs")),
)
EVIDENCE: Final = _require(
    "evidenceId",
    "evidenceId or evidenceRefs",
    _id("evidenceId"),
    _list("evidence_refs", _non_empty("evidenceRefs", "evidence_refs")),
)
REVIEW: Final = _require_id("reviewId")
SUBAGENT: Final = _require_id("subagentId")
HANDOFF: Final = _require_id("handoffId")
ATTEMPT: Final = _require("attemptId", "runId or attemptId", _id("runId"), _id("attemptId"))
PROJECT: Final = _require_id("projectId")
CONVERSATION: Final = _require_id("conversationId")
PARENT_THREAD: Final = _require_id("parentThreadId")
ITEM: Final = _require_id("itemId")
RUN: Final = _require_id("runId")
MEMBER: Final = _require("payload.memberId", "payload.memberId", _text("memberId"))
RUNNER: Final = _require("payload.runnerId", "payload.runnerId", _text("runnerId"))
PREVIEW: Final = _require("payload.previewId", "payload.previewId", _text("previewId"))
PATH: Final = _require("payload.path", "payload.path", _text("path"))
REASON_CODE: Final = _require(
    "payload.reasonCode", "payload.reasonCode", _text("reasonCode", "reason_code")
)
FAILURE_CATEGORY: Final = _require(
    "payload.failureCategory",
    "payload.failureCategory",
    _text("failureCategory", "failure_category"),
)
PATCH: Final = _require(
    "payload.patchId",
    "payload.patchId or toolCallId",
    _text("patchId", "patch_id"),
    _id("toolCallId"),
)
COMMAND: Final = _require(
    "payload.commandId",
    "payload.commandId or toolCallId",
    _text("commandId", "command_id"),
    _id("toolCallId"),
)
TEST_RUN: Final = _require(
    "payload.testRunId",
    "payload.testRunId or toolCallId",
    _text("testRunId", "test_run_id"),
    _id("toolCallId"),
)
OUTPUT_REF: Final = _require(
    "refIds",
    "a ref to the output",
    _list(
        "ref_ids",
        _non_empty(refs=("ref", "refId", "refIds", "outputRef", "output_ref", "textRef")),
    ),
)
EXIT_CODE: Final = _require(
    "payload.exitCode",
    "a whole number in payload.exitCode, or payload.status",
    _whole_number("exitCode"),
    _whole_number("exit_code"),
    _text("status"),
)
RESULT: Final = _require(
    "payload.result",
    "payload.result or payload.status",
    _non_empty("result", refs=("resultRef", "payloadRef")),
    _text("status"),
)

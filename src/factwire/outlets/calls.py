"""What a fact says of a call or of a question, as every outlet tells it."""

from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.projection.reading import table, word

APPROVALS: Final = {
    "allow": True,
    "allowed": True,
    "approve": True,
    "approved": True,
    "deny": False,
    "denied": False,
    "reject": False,
    "rejected": False,
}
"""Decisions that are a plain yes or no; any other word is told as it stands."""

UNNAMED_TOOL: Final = "tool"
"""The name of a tool that nobody named, where a protocol needs one."""

_INSTEAD_OF_OUTPUT: Final = ("summary", "outputRef", "exitCode")


class Call(msgspec.Struct, kw_only=True):
    """A call that is open. `is_whole` says that a client has its arguments."""

    call_id: str
    name: str
    title: str | None = None
    args: Any = None
    speaker: str | None = None
    is_whole: bool = False
    is_denied: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a person has not answered."""

    action_id: str
    call_id: str | None
    speaker: str | None
    said: dict[str, Any]

    @property
    def action_type(self) -> str:
        return word(self.said, "actionType") or "structured_input"

    @property
    def prompt(self) -> str | None:
        return word(self.said, "prompt", "message")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How a question was closed; without a decision nobody answered it."""

    decision: str | None
    reason: str | None = None
    response: Any = None

    @property
    def is_approval(self) -> bool | None:
        """Yes or no, if it is one of them."""
        return APPROVALS.get(self.decision or "")


def result_of(fact: Fact) -> Any:
    """What a call gave: its output, or what stands for an output that is elsewhere."""
    said = fact.payload
    if said.get("output") is not None:
        return said["output"]
    return {name: said[name] for name in _INSTEAD_OF_OUTPUT if said.get(name) is not None} or None


def failure_of(fact: Fact) -> tuple[str, str]:
    """The category of a failure, and a sentence about it."""
    category = word(fact.payload, "failureCategory") or "tool_error"
    return category, word(fact.payload, "message", "summary") or category


def answer_of(fact: Fact) -> Answer:
    """What was decided, or why nothing was."""
    said = fact.payload
    closed = fact.event_class == "action.resolved"
    fallback = None if closed else (fact.event_class or "").rpartition(".")[2]
    return Answer(
        decision=(word(said, "decision") or "unknown") if closed else None,
        reason=word(said, "reason") or fallback,
        response=said.get("response"),
    )


def usage_of(said: dict[str, Any]) -> dict[str, Any]:
    """The counts of a payload that counts something."""
    return {name: said[name] for name in _COUNTS if _is_count(said.get(name))}


def shared_patch(fact: Fact) -> list[dict[str, Any]]:
    """The operations of a patch that are about the application's own state."""
    found = [
        table(each) for each in fact.payload.get("patch") or fact.payload.get("operations") or ()
    ]
    return [
        {
            **operation,
            **{
                name: path.removeprefix(_SHARED)
                for name in ("path", "from")
                if (path := word(operation, name))
            },
        }
        for operation in found
        if operation and operation.get("op") in _OPERATIONS and _is_shared(operation)
    ]


_SHARED: Final = "/shared"
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_COUNTS: Final = (
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "reasoningTokens",
    "cachedInputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "totalCostUsd",
)


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_shared(operation: dict[str, Any]) -> bool:
    paths = [word(operation, name) for name in ("path", "from")]
    return bool(paths[0]) and all(
        path == _SHARED or path.startswith(f"{_SHARED}/") for path in paths if path
    )

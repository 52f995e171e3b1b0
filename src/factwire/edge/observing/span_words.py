"""What spans say: their names and attributes, by OpenTelemetry's conventions where there are any.

Names, ids, categories and counts; nothing that a person or a model wrote.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Final, Literal

import msgspec
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from factwire.edge.limits import SPAN_CHARACTERS
from factwire.facts import Fact
from factwire.projection.reading import number, tool_of, word

Told = Mapping[str, "str | int | float | bool | None"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MOST: Final = 2**63


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What one class of facts means for a part of a run: `named` are its id's two spellings."""

    family: Literal["model", "tool", "approval"]
    named: tuple[str, str]
    began: Callable[[Fact], tuple[str, Told]]
    ended: Callable[[Fact], Told] = lambda _: {}
    kind: SpanKind = SpanKind.INTERNAL
    fails: bool = False


def moment(text: str | None) -> int:
    """A time as nanoseconds since 1970; now, where the text names none."""
    try:
        return (datetime.fromisoformat(text or "") - _EPOCH) // _MICROSECOND * 1_000
    except (ValueError, TypeError, OverflowError):
        return time_ns()


def moment_of(fact: Fact) -> int:
    """When what a fact tells was so."""
    return moment(fact.completed_at or fact.created_at)


def known(span: Span, told: Told) -> None:
    """Put what is known on a span, none of it long, and no number that does not go over a wire."""
    for name, value in told.items():
        if isinstance(value, str):
            span.set_attribute(name, value[:SPAN_CHARACTERS])
        elif value is not None and abs(value) < _MOST:
            span.set_attribute(name, value)


def error_of(span: Span, fact: Fact, *, failed: bool) -> None:
    """What failed has a category; the sentence for people stays where it is."""
    if failed:
        known(span, {"error.type": word(fact.payload, "failureCategory") or "unknown"})
        span.set_status(Status(StatusCode.ERROR))


def usage_of(fact: Fact) -> Told:
    return {
        "gen_ai.response.model": word(fact.payload, "model"),
        "gen_ai.usage.input_tokens": number(fact.payload, "inputTokens"),
        "gen_ai.usage.output_tokens": number(fact.payload, "outputTokens"),
    }


def _model(fact: Fact) -> tuple[str, Told]:
    model = word(fact.payload, "model")
    return _name("chat", model), {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.provider.name": word(fact.payload, "provider"),
    }


def _answered(fact: Fact) -> Told:
    return {**usage_of(fact), "factwire.finish_reason": word(fact.payload, "finishReason")}


def _tool(fact: Fact) -> tuple[str, Told]:
    tool = word(fact.payload, "toolName")
    return _name("execute_tool", tool), {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": tool_of(fact),
    }


def _approval(fact: Fact) -> tuple[str, Told]:
    return "factwire.approval", {
        "factwire.approval.id": fact.action_id,
        "factwire.approval.kind": word(fact.payload, "actionType"),
        "gen_ai.tool.call.id": tool_of(fact),
    }


def _decided(fact: Fact) -> Told:
    closed = (fact.event_class or "").removeprefix("action.")
    return {"factwire.approval.decision": word(fact.payload, "decision") or closed}


def _name(verb: str, what: str | None) -> str:
    return verb if what is None else f"{verb} {what[:SPAN_CHARACTERS]}"


def _model_step(*, fails: bool = False) -> Step:
    named = "messageId", "message_id"
    return Step(
        family="model",
        named=named,
        began=_model,
        ended=_answered,
        kind=SpanKind.CLIENT,
        fails=fails,
    )


def _tool_step(*, fails: bool = False) -> Step:
    return Step(family="tool", named=("toolCallId", "tool_call_id"), began=_tool, fails=fails)


def _approval_step() -> Step:
    named = "actionId", "action_id"
    return Step(family="approval", named=named, began=_approval, ended=_decided)


STEPS: Final[dict[str, Step]] = {
    "model.requested": _model_step(),
    "model.completed": _model_step(),
    "model.failed": _model_step(fails=True),
    "tool.started": _tool_step(),
    "tool.result": _tool_step(),
    "tool.failed": _tool_step(fails=True),
    "action.required": _approval_step(),
    **dict.fromkeys(
        ("action.resolved", "action.expired", "action.cancelled", "action.canceled"),
        _approval_step(),
    ),
}
"""Class → the part of a run that it begins or ends."""

STOPPED: Final = frozenset(STEPS) - {"model.requested", "tool.started", "action.required"}
"""The classes that end one."""

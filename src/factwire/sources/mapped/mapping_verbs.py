"""What an item can become, where somebody has to keep the books: turns, texts, calls, decisions,
teammates, usage.

A verb has the name of the fact that it tells. What the mapping gives no id for is numbered when it
begins, and is the one that is open when it goes on or ends.
"""

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.sources.kit.fact_builder import FactBuilder

Ids = dict[str, str]
Fields = dict[str, Any]


class VerbContext(Protocol):
    """What verbs know of the converter that they work for."""

    builder: FactBuilder
    has_begun: bool
    reasoning: tuple[str | None, str] | None
    sums: dict[str, float]

    def next_id(self, family: str) -> str:
        """The next id of a family that the stream gives none for."""
        ...


class MappingVerb(msgspec.Struct, frozen=True, kw_only=True):
    """How an item is told: which ids and fields it takes, which of those it needs, and whether
    other fields may stand beside them.
    """

    apply: Callable[[VerbContext, Ids, Fields], None]
    ids: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    takes_extra: bool = False


def _begin_turn(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.has_begun = True
    context.builder.begin_turn(payload.pop("prompt", None), turn_id=ids.get("turnId"), **payload)


def _complete_turn(context: VerbContext, _: Ids, payload: Fields) -> None:
    context.builder.complete_turn(**payload)


def _fail_turn(context: VerbContext, _: Ids, payload: Fields) -> None:
    """A failure before any turn is that of the first; one after a turn ends nothing twice."""
    builder = context.builder
    category = payload.pop("failureCategory", "provider_error")
    message, hint = payload.pop("message", "the agent failed"), payload.pop("recoveryHint", None)
    if not builder.is_open and context.has_begun:
        builder.add_fact(
            "runtime.error", {"code": category, "message": message, "recoveryHint": hint}
        )
        return
    if not builder.is_open:
        _begin_turn(context, {}, {})
    builder.fail_turn(category, message, hint, **payload)


def _cancel_turn(context: VerbContext, _: Ids, payload: Fields) -> None:
    context.builder.cancel_turn(payload.pop("reason", "requested"), **payload)


def _add_text(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.add_text(_find_message(context, ids), payload["delta"], **_message_ids(ids))


def _end_text(context: VerbContext, ids: Ids, payload: Fields) -> None:
    text = payload.pop("text", None)
    context.builder.end_text(_find_message(context, ids), text, **_message_ids(ids), **payload)


def _add_reasoning(context: VerbContext, ids: Ids, payload: Fields) -> None:
    """Reasoning that has no id of its own stands in the message that it leads to."""
    message = _find_message(context, ids)
    context.reasoning = (ids.get("subagentId"), message)
    context.builder.add_reasoning(message, payload["delta"], **_message_ids(ids))


def _add_summary(context: VerbContext, ids: Ids, payload: Fields) -> None:
    message = _find_message(context, ids)
    context.reasoning = (ids.get("subagentId"), message)
    context.builder.add_reasoning_summary(message, payload["summary"], **_message_ids(ids))


def _start_tool(context: VerbContext, ids: Ids, payload: Fields) -> None:
    call = ids.get("toolCallId") or context.next_id("tool")
    who = ids.get("subagentId")
    of = {"subagent_id": who} if who else {}
    context.builder.start_tool(
        call, payload.get("toolName"), payload.get("args"), title=payload.get("title"), **of
    )


def _add_tool_args(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.add_tool_args(_find_call(context, ids), payload["delta"])


def _add_tool_output(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.add_tool_output(
        _find_call(context, ids), payload["delta"], payload.get("stream")
    )


def _report_tool_progress(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.report_tool_progress(_find_call(context, ids), **payload)


def _complete_tool(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.complete_tool(_find_call(context, ids), payload.pop("output", None), **payload)


def _fail_tool(context: VerbContext, ids: Ids, payload: Fields) -> None:
    category = payload.pop("failureCategory", "tool_error")
    message = payload.pop("message", "the tool failed")
    context.builder.fail_tool(_find_call(context, ids), category, message, **payload)


def _require_action(context: VerbContext, ids: Ids, payload: Fields) -> None:
    action = ids.get("actionId") or context.next_id("action")
    fields = {"tool_call_id": ids.get("toolCallId"), "subagent_id": ids.get("subagentId")}
    context.builder.require_action(
        action, payload, **{name: value for name, value in fields.items() if value}
    )


def _resolve_action(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.resolve_action(_find_action(context, ids), payload.pop("decision"), **payload)


def _cancel_action(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.cancel_action(_find_action(context, ids), payload.get("reason") or "withdrawn")


def _start_subagent(context: VerbContext, ids: Ids, payload: Fields) -> None:
    who = ids.get("subagentId") or context.next_id("subagent")
    context.builder.start_subagent(who, task_id=ids.get("taskId"), **payload)


def _complete_subagent(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.end_subagent(_find_subagent(context, ids), "subagent.completed", **payload)


def _fail_subagent(context: VerbContext, ids: Ids, payload: Fields) -> None:
    context.builder.end_subagent(_find_subagent(context, ids), "subagent.failed", **payload)


def _set_ids(context: VerbContext, ids: Ids, _: Fields) -> None:
    context.builder.set_ids(**{_SCOPE[name]: value for name, value in ids.items()})


def _ignore(context: VerbContext, ids: Ids, payload: Fields) -> None:
    del context, ids, payload


def _set_usage(context: VerbContext, _: Ids, payload: Fields) -> None:
    """What a turn has used so far, as the stream says it now."""
    _note_usage(context, payload)


def _add_usage(context: VerbContext, _: Ids, payload: Fields) -> None:
    """What one step has used; steps add up over a turn."""
    used = context.builder.usage
    _note_usage(context, {name: used.get(name, 0) + value for name, value in payload.items()})


def _set_thread_usage(context: VerbContext, _: Ids, payload: Fields) -> None:
    """The sum over the thread: a turn used what was not there when the last one was told. A sum
    that is less than before was begun anew.
    """
    before = {name: context.sums.get(name, 0) for name in payload}
    spent = {
        name: value - before[name] if value >= before[name] else value
        for name, value in payload.items()
    }
    context.sums.update(payload)
    _add_usage(context, {}, spent)


def _note_usage(context: VerbContext, counts: Fields) -> None:
    sound = {name: value for name, value in counts.items() if math.isfinite(value)}
    if context.builder.is_open:
        context.builder.usage.update(sound)
    elif sound:
        context.builder.add_fact("metrics.changed", sound)


def _find_message(context: VerbContext, ids: Ids) -> str:
    """The message a text belongs to: the one named, the one that is open, the one that was reasoned
    about, or the next.
    """
    value, part, who = ids.get("messageId"), ids.get("partId"), ids.get("subagentId")
    if value:
        return value
    for message in reversed(context.builder.messages.values()):
        if message.scope.subagent_id == who and part in (None, message.part_id):
            return message.message_id
    if context.reasoning is not None and context.reasoning[0] == who:
        return context.reasoning[1]
    return context.next_id("message")


def _message_ids(ids: Ids) -> dict[str, Any]:
    return {"part_id": ids.get("partId"), "subagent_id": ids.get("subagentId")}


def _find_call(context: VerbContext, ids: Ids) -> str:
    return ids.get("toolCallId") or _latest(context.builder.tools) or context.next_id("tool")


def _find_action(context: VerbContext, ids: Ids) -> str:
    return ids.get("actionId") or _latest(context.builder.actions) or ""


def _find_subagent(context: VerbContext, ids: Ids) -> str:
    return ids.get("subagentId") or _latest(context.builder.subagents) or ""


def _latest(things: dict[str, Any]) -> str | None:
    return next(reversed(things), None)


_SCOPE: Final = {
    "sessionId": "session_id",
    "agentId": "agent_id",
    "projectId": "project_id",
    "parentThreadId": "parent_thread_id",
    "traceId": "trace_id",
}
_SPOKEN: Final = ("messageId", "partId", "subagentId")
_COUNTS: Final = ("inputTokens", "outputTokens", "totalTokens", "totalCostUsd")
_ENDED: Final = ("durationMs", "reason")
_FAILED: Final = ("failureCategory", "message", "recoveryHint")
_MATE: Final = ("role", "title", "name", "objective", "summary", "message")

USAGE: Final = {"turn": _set_usage, "step": _add_usage, "thread": _set_thread_usage}
"""What counts of usage are about → how they are told."""

VERBS: Final[dict[str, MappingVerb]] = {
    "ignore": MappingVerb(apply=_ignore),
    "ids": MappingVerb(apply=_set_ids, ids=tuple(_SCOPE)),
    "usage": MappingVerb(apply=_set_usage, fields=_COUNTS),
    "turn.started": MappingVerb(
        apply=_begin_turn, ids=("turnId",), fields=("prompt",), takes_extra=True
    ),
    "turn.completed": MappingVerb(
        apply=_complete_turn, fields=(*_ENDED, "message"), takes_extra=True
    ),
    "turn.failed": MappingVerb(apply=_fail_turn, fields=(*_ENDED, *_FAILED), takes_extra=True),
    "turn.canceled": MappingVerb(apply=_cancel_turn, fields=(*_ENDED, "message"), takes_extra=True),
    "model.delta": MappingVerb(apply=_add_text, ids=_SPOKEN, fields=("delta",), needs=("delta",)),
    "model.completed": MappingVerb(
        apply=_end_text, ids=_SPOKEN, fields=("text", "model", "finishReason"), takes_extra=True
    ),
    "reasoning.delta": MappingVerb(
        apply=_add_reasoning, ids=_SPOKEN, fields=("delta",), needs=("delta",)
    ),
    "reasoning.summary": MappingVerb(
        apply=_add_summary, ids=_SPOKEN, fields=("summary",), needs=("summary",)
    ),
    "tool.started": MappingVerb(
        apply=_start_tool, ids=("toolCallId", "subagentId"), fields=("toolName", "args", "title")
    ),
    "tool.args.delta": MappingVerb(
        apply=_add_tool_args, ids=("toolCallId",), fields=("delta",), needs=("delta",)
    ),
    "tool.output.delta": MappingVerb(
        apply=_add_tool_output, ids=("toolCallId",), fields=("delta", "stream"), needs=("delta",)
    ),
    "tool.progress": MappingVerb(
        apply=_report_tool_progress,
        ids=("toolCallId",),
        fields=("message", "progress", "total"),
        takes_extra=True,
    ),
    "tool.result": MappingVerb(
        apply=_complete_tool,
        ids=("toolCallId",),
        fields=("output", "summary", "exitCode", "durationMs"),
        takes_extra=True,
    ),
    "tool.failed": MappingVerb(
        apply=_fail_tool,
        ids=("toolCallId",),
        fields=(*_FAILED, "output", "summary", "exitCode", "durationMs"),
        takes_extra=True,
    ),
    "action.required": MappingVerb(
        apply=_require_action,
        ids=("actionId", "toolCallId", "subagentId"),
        fields=(
            *("actionType", "severity", "prompt", "argsHash", "expiresAt"),
            *("requestedBy", "options", "responseSchema"),
        ),
        takes_extra=True,
    ),
    "action.resolved": MappingVerb(
        apply=_resolve_action,
        ids=("actionId",),
        fields=("decision", "reason", "decidedBy", "applied", "response"),
        needs=("decision",),
        takes_extra=True,
    ),
    "action.cancelled": MappingVerb(apply=_cancel_action, ids=("actionId",), fields=("reason",)),
    "subagent.started": MappingVerb(
        apply=_start_subagent, ids=("subagentId", "taskId"), fields=_MATE, takes_extra=True
    ),
    "subagent.completed": MappingVerb(
        apply=_complete_subagent, ids=("subagentId",), fields=_MATE, takes_extra=True
    ),
    "subagent.failed": MappingVerb(
        apply=_fail_subagent,
        ids=("subagentId",),
        fields=(*_MATE, "failureCategory"),
        takes_extra=True,
    ),
}
"""What has a verb of its own; the other classes are told as they are."""

NEWS: Final = frozenset(
    {
        *("turn.started", *TURN_TERMINALS),
        *("model.delta", "model.completed", "tool.started"),
    }
)
"""Verbs after which reasoning is about something else."""

RESERVED: Final = frozenset(
    {
        *("self", "said", "category", "decision", "delta", "hint", "message"),
        *("output", "preview", "prompt", "reason", "text"),
    }
)
"""Names that no extra field may have: a `FactBuilder` or an intake uses them."""

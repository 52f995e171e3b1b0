"""How a turn ends: everything that is open in it is closed first and says why; the end states
what the turn took and used. Every failure that the runtime itself gives a turn is in one table.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from factwire.facts import Fact
from factwire.facts.classes.payloads import RouteDecision
from factwire.facts.json_values import object_at
from factwire.projection import ProjectionState
from factwire.runtime.action_requests import ActionRequests
from factwire.runtime.limits import CONTEXT_WARNING_SHARE
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.thread_log import ThreadLog


class TurnFailure(NamedTuple):
    """Why a turn failed, and what could help."""

    meaning: str
    hint: str = "Check the diagnostics of the turn."


TURN_FAILURES: Final = {
    "stream_interrupted": TurnFailure(
        "the agent's stream ended without ending the turn",
        "Retry the turn; what it did so far is kept.",
    ),
    "provider_error": TurnFailure("the agent raised an error"),
    "invalid_fact": TurnFailure(
        "the agent emitted a fact that a gate refused",
        "The agent's adapter is at fault; the refused fact is named in the message.",
    ),
    "timeout": TurnFailure(
        "the turn exceeded its time limit",
        "Retry with a smaller task, or allow turns more time.",
    ),
    "runtime_restarted": TurnFailure(
        "the runtime stopped while the turn was running",
        "Retry the turn.",
    ),
    # What the turn did after the last fact that was taken, nobody wrote down.
    "unrecorded": TurnFailure(
        "the journal accepted no facts while the turn was running",
        "Check what the turn did since, then retry it.",
    ),
    "sandbox_unavailable": TurnFailure("a sandbox is required but not available here"),
    "structured_output_unsupported": TurnFailure(
        "the agent cannot answer by a schema",
        "Choose another agent, or omit outputSchema.",
    ),
    "invalid_output_schema": TurnFailure(
        "outputSchema is no JSON Schema",
        "Fix outputSchema in the options of the turn.",
    ),
    "invalid_output": TurnFailure(
        "the agent's output does not fit the schema that it was given",
        "Retry the turn, or use another model.",
    ),
}
"""The failures that the runtime itself gives a turn, by category; agents may give others."""

FAILURE_CATEGORIES: Final = {name: failure.meaning for name, failure in TURN_FAILURES.items()}
"""Categories that the runtime itself gives a failed turn; agents may give others."""


def failure_payload(
    category: str, message: str | None = None, hint: str | None = None
) -> dict[str, str]:
    """The payload of `turn.failed`; what is not said here is said as the table has it."""
    failure = TURN_FAILURES.get(category) or TurnFailure(category)
    return {
        "failureCategory": category,
        "message": failure.meaning if message is None else message,
        "recoveryHint": hint or failure.hint,
    }


async def close_open_work(
    log: ThreadLog,
    approvals: ActionRequests,
    mint: Mint,
    scope: FactScope,
    *,
    category: str,
    message: str,
) -> None:
    """Cancel the open requests of a turn and fail its open tools."""
    await log.flush()
    await approvals.cancel(scope.turn_id)
    failure = {"failureCategory": category, "message": message}
    for call, turn in list(log.gates.open_tools.items()):
        if turn == scope.turn_id:
            tool = log.projection.state.tools.get(call)
            name = {"toolName": tool.tool_name} if tool and tool.tool_name else {}
            log.put(mint.fact(scope, "tool.failed", {**name, **failure}, tool_call_id=call))


def describe_context(
    input_tokens: int, output_tokens: int, window: int | None
) -> list[tuple[str, dict[str, Any]]]:
    """Classes and payloads that report how full a model's context is; past the share from which
    people are warned, with a warning. Without a window, there is no share.
    """
    used = input_tokens + output_tokens
    if used <= 0:
        return []
    counts = {"inputTokens": input_tokens, "outputTokens": output_tokens, "totalTokens": used}
    usage: dict[str, Any] = {"kind": "usage", **counts}
    if not window or window <= 0:
        return [("context.resolved", usage)]
    share = used / window
    usage |= {"contextWindow": window, "usagePercent": round(share * 100, 2)}
    usage["tokensRemaining"] = max(window - used, 0)
    if share < CONTEXT_WARNING_SHARE:
        return [("context.resolved", usage)]
    warning = {
        "name": "context",
        "limit": window,
        "used": used,
        "remaining": max(window - used, 0),
        "utilization": round(share, 4),
        "threshold": CONTEXT_WARNING_SHARE * 100,
        "message": f"{share:.0%} of the model's context is used",
    }
    return [("context.resolved", usage), ("quota.low", warning)]


_CARRIED: Final = (
    "durationMs",
    "turns",
    "usage",
    "totalCostUsd",
    "stopReason",
    "errors",
    "structuredOutput",
)
"""What an agent may say of a turn's end, and what is then said again."""


def read_route(end: dict[str, Any]) -> dict[str, Any] | None:
    """The decision of a coordinator, where the structured output of a turn's end is one; nothing
    with other fields passes for one.
    """
    return to_route(object_at(end.get("structuredOutput")) or {})


def to_route(output: dict[str, Any]) -> dict[str, Any] | None:
    """A decision of a coordinator without what it leaves open; None for what is none."""
    if not output.keys() <= set(RouteDecision.__struct_fields__):
        return None
    try:
        msgspec.convert(output, RouteDecision)
    except msgspec.ValidationError:
        return None
    return {name: value for name, value in output.items() if value is not None}


def carry_result(end: dict[str, Any]) -> dict[str, Any]:
    """What the end of a turn says of its result."""
    return {name: end[name] for name in _CARRIED if end.get(name) is not None}


class TurnBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """When a turn began, and what its thread had used by then."""

    at: str
    input_tokens: int
    output_tokens: int
    cost_usd: float

    @classmethod
    def measure(cls, at: str, state: ProjectionState) -> "TurnBaseline":
        used = state.metrics.usage
        return cls(
            at=at,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_usd=used.total_cost_usd,
        )


def build_result(
    terminal: Fact, began: TurnBaseline | None, at: str, state: ProjectionState
) -> dict[str, Any]:
    """The payload of the snapshot after a turn; what its agent said goes before what is known
    here, and of a turn that began elsewhere nothing is worked out.
    """
    return {
        "status": terminal.status,
        **(_measure_result(began, at, state) if began else {}),
        **carry_result(terminal.payload),
    }


def _measure_result(began: TurnBaseline, at: str, state: ProjectionState) -> dict[str, Any]:
    used, known = state.metrics.usage, dict[str, Any]()
    took = datetime.fromisoformat(at) - datetime.fromisoformat(began.at)
    known["durationMs"] = max(took.total_seconds() * 1_000, 0.0)
    sent, received = (
        used.input_tokens - began.input_tokens,
        used.output_tokens - began.output_tokens,
    )
    if sent or received:
        known["usage"] = {
            "inputTokens": sent,
            "outputTokens": received,
            "totalTokens": sent + received,
        }
    if used.total_cost_usd > began.cost_usd:
        known["totalCostUsd"] = used.total_cost_usd - began.cost_usd
    return known

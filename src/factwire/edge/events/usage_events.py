"""What is used of what: context, tokens, money, quota."""

from typing import Final, Literal

from factwire.facts import Fact
from factwire.facts.classes.payloads import ContextPayload, CostPayload
from factwire.facts.json_values import finite_number_at, text_at, whole_number_at
from factwire.projection.payload_fields import read_payload
from factwire.serving.envelopes import (
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    map_both_views,
    to_percent,
)


class CompactBoundary(EventPayload, frozen=True):
    """Before this point, history is a summary."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    summary: str | None = None


class ContextUsage(EventPayload, frozen=True):
    """How full the context is."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    usage_percent: float | None = None
    threshold: float | None = None


class ContextWarning(EventPayload, frozen=True):
    """The context is nearly full."""

    usage_percent: float
    threshold: float | None = None


class ContextCompaction(EventPayload, frozen=True):
    """Context is being folded, was, or could not be."""

    status: Literal["started", "completed", "failed"]
    usage_percent: float | None = None
    tokens_used: int | None = None
    tokens_remaining: int | None = None
    threshold: float | None = None
    message: str | None = None


class RateLimit(EventPayload, frozen=True):
    """A limit: known, hit, low or blocked."""

    status: str
    name: str | None = None
    utilization: float | None = None
    resets_at: str | None = None
    retry_after_ms: float | None = None
    message: str | None = None


class SessionMetrics(EventPayload, frozen=True):
    """What was used: by one call of a model, or by the session until now."""

    of: Literal["call", "session"]
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    total_cost_usd: float | None = None
    model: str | None = None


_COMPACTIONS: Final[dict[str, Literal["started", "completed", "failed"]]] = {
    "context.compaction.started": "started",
    "context.compaction.completed": "completed",
    "context.compaction.failed": "failed",
}
_LIMIT_STATUS: Final = {
    "limit.changed": "known",
    "rate_limit.hit": "hit",
    "quota.low": "low",
    "quota.blocked": "blocked",
}


def _to_compact_boundary(fact: Fact) -> TypedPayload | None:
    fields = read_payload(fact, ContextPayload)
    return "run.agent.compact_boundary", CompactBoundary(
        trigger=fields.trigger,
        pre_tokens=fields.tokens_before,
        post_tokens=fields.tokens_after,
        summary=fields.summary,
    )


def _to_context_compaction(fact: Fact) -> TypedPayload | None:
    fields, status = read_payload(fact, ContextPayload), _COMPACTIONS[fact.event_class or ""]
    used = fields.tokens_after if status == "completed" else fields.tokens_before
    return "run.agent.context_compaction", ContextCompaction(
        status=status,
        usage_percent=fields.usage_percent,
        tokens_used=used,
        tokens_remaining=whole_number_at(fact.payload, "tokensRemaining"),
        threshold=finite_number_at(fact.payload, "threshold"),
        message=fields.message,
    )


def _to_context_usage(fact: Fact) -> TypedPayload | None:
    """How full the context is; at or past the threshold that the fact names, a warning."""
    fields, cost, threshold = (
        read_payload(fact, ContextPayload),
        read_payload(fact, CostPayload),
        finite_number_at(fact.payload, "threshold"),
    )
    used = fields.usage_percent
    if used is not None and threshold is not None and used >= threshold:
        warning = ContextWarning(usage_percent=used, threshold=threshold)
        return "run.agent.context_warning", warning
    usage = ContextUsage(
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        total_tokens=cost.total_tokens if cost.total_tokens is not None else _read_tokens(fact),
        usage_percent=used,
        threshold=threshold,
    )
    return None if usage == ContextUsage() else ("run.agent.context_usage", usage)


def _read_tokens(fact: Fact) -> int | None:
    return whole_number_at(fact.payload, "tokens", "tokensUsed")


def _to_rate_limit(fact: Fact) -> TypedPayload | None:
    """A limit; a quota of context that runs low is a warning about the context."""
    fields, name = read_payload(fact, CostPayload), text_at(fact.payload, "name", "limitId")
    used = to_percent(fields.utilization)
    if fact.event_class == "quota.low" and name == "context" and used is not None:
        threshold = finite_number_at(fact.payload, "threshold")
        warning = ContextWarning(usage_percent=used, threshold=threshold)
        return "run.agent.context_warning", warning
    return "run.agent.rate_limit", RateLimit(
        status=_LIMIT_STATUS[fact.event_class or ""],
        name=name,
        utilization=fields.utilization,
        resets_at=fields.resets_at,
        retry_after_ms=fields.retry_after_ms,
        message=fields.message,
    )


def _to_call_metrics(fact: Fact) -> TypedPayload | None:
    return _build_metrics(fact, "call")


def _to_session_metrics(fact: Fact) -> TypedPayload | None:
    return _build_metrics(fact, "session")


def _build_metrics(fact: Fact, of: Literal["call", "session"]) -> TypedPayload | None:
    fields = read_payload(fact, CostPayload)
    metrics = SessionMetrics(
        of=of,
        input_tokens=fields.input_tokens,
        output_tokens=fields.output_tokens,
        total_tokens=fields.total_tokens,
        total_cost_usd=fields.total_cost_usd,
        model=fields.model,
    )
    return None if metrics == SessionMetrics(of=of) else ("run.agent.session_metrics", metrics)


_COMPACTION: Final = map_both_views(_to_context_compaction, "run.agent.context_compaction")
_CONTEXT: Final = map_both_views(
    _to_context_usage, "run.agent.context_usage", "run.agent.context_warning"
)
_LIMIT: Final = map_both_views(_to_rate_limit, "run.agent.rate_limit")
_QUOTA: Final[ViewMappings] = map_both_views(
    _to_rate_limit, "run.agent.rate_limit", "run.agent.context_warning"
)

USAGE_EVENTS: Final[MappingTable] = {
    "history.compacted": map_both_views(_to_compact_boundary, "run.agent.compact_boundary"),
    **dict.fromkeys(_COMPACTIONS, _COMPACTION),
    "context.resolved": _CONTEXT,
    "context.changed": _CONTEXT,
    "limit.changed": _LIMIT,
    "rate_limit.hit": _LIMIT,
    "quota.low": _QUOTA,
    "quota.blocked": _LIMIT,
    "cost.recorded": map_both_views(_to_call_metrics, "run.agent.session_metrics"),
    "metrics.changed": map_both_views(_to_session_metrics, "run.agent.session_metrics"),
    "metric.changed": map_both_views(_to_session_metrics, "run.agent.session_metrics"),
}

"""What is used of what: context, tokens, money, quota."""

from typing import Final, Literal

from factwire.edge.events.agent_payloads import (
    CompactBoundary,
    ContextCompaction,
    ContextUsage,
    ContextWarning,
    RateLimit,
    SessionMetrics,
)
from factwire.edge.events.numbers import amount, percent, whole
from factwire.edge.events.word import Said, Table, Words, alike
from factwire.facts import Fact
from factwire.facts.payloads import Context, Cost
from factwire.projection.reading import read, word

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


def _boundary(fact: Fact) -> Said | None:
    said = read(fact, Context)
    return "run.agent.compact_boundary", CompactBoundary(
        trigger=said.trigger,
        pre_tokens=said.tokens_before,
        post_tokens=said.tokens_after,
        summary=said.summary,
    )


def _compaction(fact: Fact) -> Said | None:
    said, status = read(fact, Context), _COMPACTIONS[fact.event_class or ""]
    used = said.tokens_after if status == "completed" else said.tokens_before
    return "run.agent.context_compaction", ContextCompaction(
        status=status,
        usage_percent=said.usage_percent,
        tokens_used=used,
        tokens_remaining=whole(fact.payload, "tokensRemaining"),
        threshold=amount(fact.payload, "threshold"),
        message=said.message,
    )


def _context(fact: Fact) -> Said | None:
    """How full the context is; at or past the threshold that the fact names, a warning."""
    said, cost, threshold = read(fact, Context), read(fact, Cost), amount(fact.payload, "threshold")
    used = said.usage_percent
    if used is not None and threshold is not None and used >= threshold:
        warning = ContextWarning(usage_percent=used, threshold=threshold)
        return "run.agent.context_warning", warning
    usage = ContextUsage(
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        total_tokens=cost.total_tokens if cost.total_tokens is not None else _tokens(fact),
        usage_percent=used,
        threshold=threshold,
    )
    return None if usage == ContextUsage() else ("run.agent.context_usage", usage)


def _tokens(fact: Fact) -> int | None:
    return whole(fact.payload, "tokens", "tokensUsed")


def _limit(fact: Fact) -> Said | None:
    """A limit; a quota of context that runs low is a warning about the context."""
    said, name = read(fact, Cost), word(fact.payload, "name", "limitId")
    used = percent(said.utilization)
    if fact.event_class == "quota.low" and name == "context" and used is not None:
        threshold = amount(fact.payload, "threshold")
        warning = ContextWarning(usage_percent=used, threshold=threshold)
        return "run.agent.context_warning", warning
    return "run.agent.rate_limit", RateLimit(
        status=_LIMIT_STATUS[fact.event_class or ""],
        name=name,
        utilization=said.utilization,
        resets_at=said.resets_at,
        retry_after_ms=said.retry_after_ms,
        message=said.message,
    )


def _call_metrics(fact: Fact) -> Said | None:
    return _metrics(fact, "call")


def _session_metrics(fact: Fact) -> Said | None:
    return _metrics(fact, "session")


def _metrics(fact: Fact, of: Literal["call", "session"]) -> Said | None:
    said = read(fact, Cost)
    metrics = SessionMetrics(
        of=of,
        input_tokens=said.input_tokens,
        output_tokens=said.output_tokens,
        total_tokens=said.total_tokens,
        total_cost_usd=said.total_cost_usd,
        model=said.model,
    )
    return None if metrics == SessionMetrics(of=of) else ("run.agent.session_metrics", metrics)


_COMPACTION: Final = alike(_compaction, "run.agent.context_compaction")
_CONTEXT: Final = alike(_context, "run.agent.context_usage", "run.agent.context_warning")
_LIMIT: Final = alike(_limit, "run.agent.rate_limit")
_QUOTA: Final[Words] = alike(_limit, "run.agent.rate_limit", "run.agent.context_warning")

USAGE_WORDS: Final[Table] = {
    "history.compacted": alike(_boundary, "run.agent.compact_boundary"),
    **dict.fromkeys(_COMPACTIONS, _COMPACTION),
    "context.resolved": _CONTEXT,
    "context.changed": _CONTEXT,
    "limit.changed": _LIMIT,
    "rate_limit.hit": _LIMIT,
    "quota.low": _QUOTA,
    "quota.blocked": _LIMIT,
    "cost.recorded": alike(_call_metrics, "run.agent.session_metrics"),
    "metrics.changed": alike(_session_metrics, "run.agent.session_metrics"),
    "metric.changed": alike(_session_metrics, "run.agent.session_metrics"),
}

"""What models were given and what they cost: context, compactions, routing, cost, limits and
quota.

A compaction is a boundary with a summary; nothing of what it folds is repeated. Figures are those
that facts state.
"""

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.payloads import ContextPayload, CostPayload, RoutingPayload
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import list_at, text_at
from factwire.facts.limits import SEQUENCE_MAX
from factwire.facts.outcomes import bad_end
from factwire.facts.refs import ref_at, refs_of
from factwire.projection import thread_status
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.payload_fields import (
    join_texts,
    read_payload,
    shorten_detail,
    turn_of,
)
from factwire.projection.turns import is_own_run
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


CONTEXT_PATH: Final = "/context"


class ContextItem(View):
    """Something that was selected, attached or missing."""

    event_id: str
    status: str
    title: str
    kind: str | None = None
    message: str | None = None
    failure_category: str | None = None
    refs: list[str] | None = None
    turn_id: str | None = None
    created_at: str | None = None


class Compaction(View):
    """One boundary: before it, history is a summary. `ended_by` are classes that told its end."""

    event_id: str
    status: str
    compaction_id: str | None = None
    turn_id: str | None = None
    sequence: int | None = None
    trigger: str | None = None
    summary: str | None = None
    summary_ref: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    failure_category: str | None = None
    refs: list[str] | None = None
    started_at: str | None = None
    completed_at: str | None = None
    ended_by: list[str] | None = None


class Context(View):
    """The context as its facts tell it."""

    items: list[ContextItem]
    compactions: list[Compaction]
    status: str
    usage_percent: float | None = None
    tokens: int | None = None
    tool_catalog: list[Any] | None = None


_CONTEXT_STATUS: Final = {
    "context.resolved": "resolved",
    "context.attached": "attached",
    "context.failed": "failed",
    "context.changed": "changed",
}
_COMPACTION_STATUS: Final = {
    "context.compaction.started": "running",
    "context.compaction.completed": "completed",
    "context.compaction.failed": "failed",
    "history.compacted": "completed",
}


def empty_context() -> Context:
    return Context(items=[], compactions=[], status="unknown")


def update_context(draft: "StateDraft", fact: Fact) -> None:
    context, payload = draft.state.context, read_payload(fact, ContextPayload)
    status = _CONTEXT_STATUS[fact.event_class or ""]
    draft.put(context, CONTEXT_PATH, "status", status)
    draft.fill(
        context, CONTEXT_PATH, usage_percent=payload.usage_percent, tokens=payload.tokens_after
    )
    kind = text_at(fact.payload, "kind", "source")
    if kind == "usage":
        # How full a context is says nothing of what is in it.
        return
    item = ContextItem(
        event_id=fact.id,
        status=status,
        title=fact.title,
        kind=kind,
        message=shorten_detail(payload.message or payload.summary),
        failure_category=payload.failure_category,
        refs=refs_of(fact) or None,
        turn_id=turn_of(fact),
        created_at=fact.created_at,
    )
    draft.push(context.items, f"{CONTEXT_PATH}/items", item, LANE_EVENTS_KEPT)


def set_tool_catalog(draft: "StateDraft", fact: Fact) -> None:
    draft.fill(draft.state.context, CONTEXT_PATH, tool_catalog=list_at(fact.payload.get("tools")))


def record_compaction(draft: "StateDraft", fact: Fact) -> None:
    """The start, end or failure of a compaction; an end without a start is a boundary too."""
    context, payload = draft.state.context, read_payload(fact, ContextPayload)
    status = _COMPACTION_STATUS[fact.event_class or ""]
    if status == "completed":
        status = bad_end(fact) or status
    last = context.compactions[-1] if context.compactions else None
    if last is None or not _is_about_compaction(last, fact, payload, status):
        last = _add_compaction(draft, fact, status)
    path = f"{CONTEXT_PATH}/compactions/{len(context.compactions) - 1}"
    draft.put(last, path, "status", status)
    draft.fill(
        last,
        path,
        compaction_id=payload.compaction_id,
        trigger=payload.trigger,
        summary=shorten_detail(payload.summary),
        summary_ref=ref_at(fact.payload, "summaryRef"),
        tokens_before=payload.tokens_before,
        tokens_after=payload.tokens_after,
        failure_category=payload.failure_category,
        completed_at=None if status == "running" else fact.created_at,
        ended_by=None
        if status == "running"
        else join_texts(last.ended_by, [fact.event_class or ""]),
    )
    draft.extend(last, path, "refs", refs_of(fact))
    draft.fill(
        context, CONTEXT_PATH, usage_percent=payload.usage_percent, tokens=payload.tokens_after
    )


def _is_about_compaction(
    last: Compaction, fact: Fact, payload: ContextPayload, status: str
) -> bool:
    """Whether a fact tells of the last compaction: by its id, or else as the end that it waits for
    or as the other of the two classes that tell the same end.
    """
    if payload.compaction_id is not None and last.compaction_id is not None:
        return payload.compaction_id == last.compaction_id
    if status == "running":
        return False
    if last.status in ("running", "stale"):
        return True
    ended_by = last.ended_by or ()
    here = last.turn_id == turn_of(fact)
    return here and last.status == status == "completed" and fact.event_class not in ended_by


def _add_compaction(draft: "StateDraft", fact: Fact, status: str) -> Compaction:
    boundary = Compaction(
        event_id=fact.id,
        status=status,
        turn_id=turn_of(fact),
        sequence=fact.sequence,
        started_at=fact.created_at if status == "running" else None,
    )
    draft.push(draft.state.context.compactions, f"{CONTEXT_PATH}/compactions", boundary)
    return boundary


METRICS_PATH: Final = "/metrics"


class Usage(View):
    """Sums of what was recorded; estimates are kept apart."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    total_cost_usd: float
    records: int
    estimated_cost_usd: float | None = None
    currency: str | None = None


class Limit(View):
    """One limit or quota, as stated last."""

    name: str
    status: str
    limit: float | None = None
    used: float | None = None
    remaining: float | None = None
    utilization: float | None = None
    resets_at: str | None = None
    retry_after_ms: float | None = None
    message: str | None = None
    hits: int | None = None
    updated_at: str | None = None


class Routing(View):
    """One decision about which model to ask."""

    event_id: str
    decision: str
    model: str | None = None
    provider: str | None = None
    candidates: list[Any] | None = None
    reason: str | None = None
    reason_code: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    created_at: str | None = None


class Metrics(View):
    """Figures of the thread."""

    usage: Usage
    limits: dict[str, Limit]
    routing: list[Routing]
    values: dict[str, bool | int | float | str]


_LIMIT_STATUS: Final = {
    "limit.changed": "known",
    "rate_limit.hit": "hit",
    "quota.low": "low",
    "quota.blocked": "blocked",
}
_LIMIT_NAME: Final = {
    "limit.changed": "limit",
    "rate_limit.hit": "rate_limit",
    "quota.low": "quota",
    "quota.blocked": "quota",
}


def empty_metrics() -> Metrics:
    usage = Usage(input_tokens=0, output_tokens=0, total_tokens=0, total_cost_usd=0.0, records=0)
    return Metrics(usage=usage, limits={}, routing=[], values={})


def record_cost(draft: "StateDraft", fact: Fact) -> None:
    usage, path, payload = (
        draft.state.metrics.usage,
        f"{METRICS_PATH}/usage",
        read_payload(fact, CostPayload),
    )
    tokens_in, tokens_out = _token_count(payload.input_tokens), _token_count(payload.output_tokens)
    draft.count(usage, path, "records")
    draft.count(usage, path, "input_tokens", tokens_in)
    draft.count(usage, path, "output_tokens", tokens_out)
    draft.count(
        usage, path, "total_tokens", _token_count(payload.total_tokens) or tokens_in + tokens_out
    )
    cost = usage.total_cost_usd + float(payload.total_cost_usd or 0)
    if isfinite(cost):
        draft.put(usage, path, "total_cost_usd", cost)
    draft.fill(usage, path, currency=payload.currency)
    thread_status.record_agent_usage(draft, fact, payload.agent_session_usage)


def _token_count(tokens: int | None) -> int:
    """A number of tokens, if it can be one."""
    return tokens if tokens is not None and 0 <= tokens <= SEQUENCE_MAX else 0


def estimate_cost(draft: "StateDraft", fact: Fact) -> None:
    usage, payload = draft.state.metrics.usage, read_payload(fact, CostPayload)
    estimate = None if payload.total_cost_usd is None else float(payload.total_cost_usd)
    draft.fill(usage, f"{METRICS_PATH}/usage", estimated_cost_usd=estimate)


def update_limit(draft: "StateDraft", fact: Fact) -> None:
    """limit.changed, rate_limit.hit, quota.*."""
    payload, name = read_payload(fact, CostPayload), fact.event_class or ""
    key = text_at(fact.payload, "name", "limitId", "kind") or _LIMIT_NAME[name]
    limits, path = draft.state.metrics.limits, f"{METRICS_PATH}/limits/{escape_key(key)}"
    if key not in limits:
        draft.create(limits, f"{METRICS_PATH}/limits", key, Limit(name=key, status="unknown"))
    limit = limits[key]
    draft.put(limit, path, "status", _LIMIT_STATUS[name])
    draft.put(limit, path, "message", payload.message)
    draft.put(limit, path, "retry_after_ms", payload.retry_after_ms)
    draft.fill(
        limit,
        path,
        limit=payload.limit,
        used=payload.used,
        remaining=payload.remaining,
        utilization=payload.utilization,
        resets_at=payload.resets_at,
        hits=(limit.hits or 0) + 1 if name == "rate_limit.hit" else None,
        updated_at=fact.created_at,
    )
    if name == "quota.blocked":
        thread_status.block_run(draft, fact, payload.message or key)


def record_routing(draft: "StateDraft", fact: Fact) -> None:
    payload, name = read_payload(fact, RoutingPayload), fact.event_class or ""
    decision = Routing(
        event_id=fact.id,
        decision=name.removeprefix("routing."),
        model=payload.model,
        provider=payload.provider,
        candidates=payload.candidates,
        reason=payload.reason,
        reason_code=payload.reason_code,
        turn_id=turn_of(fact),
        task_id=fact.task_id,
        created_at=fact.created_at,
    )
    draft.push(draft.state.metrics.routing, f"{METRICS_PATH}/routing", decision, LANE_EVENTS_KEPT)
    if name != "routing.candidates.resolved" and is_own_run(draft, fact):
        draft.fill(
            draft.state.runtime,
            thread_status.RUNTIME_PATH,
            model=payload.model,
            provider=payload.provider,
        )
    if name == "routing.not_possible":
        thread_status.block_run(
            draft, fact, payload.reason_code or payload.reason or "routing_not_possible"
        )


_TEXT_METRICS: Final = frozenset({"model", "provider", "currency", "unit"})


def update_metrics(draft: "StateDraft", fact: Fact) -> None:
    """metrics.changed: figures that a runtime states, by name. Of texts only those are kept whose
    names say what they are, since a text may be anything.
    """
    values = draft.state.metrics.values
    for name, value in fact.payload.items():
        is_figure = isinstance(value, (int, float, bool)) or (
            isinstance(value, str) and name in _TEXT_METRICS
        )
        if is_figure and not _is_same_figure(values.get(name), value):
            draft.create(values, f"{METRICS_PATH}/values", name, value)


def _is_same_figure(existing: object, value: object) -> bool:
    """Whether a figure is stated as it was; true is not 1."""
    return existing == value and type(existing) is type(value)

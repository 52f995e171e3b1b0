"""Metrics: routing, cost, limits and quota, as their facts state them."""

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.limits import SEQUENCE_MAX
from factwire.facts.payloads import Cost
from factwire.facts.payloads import Routing as RoutingPayload
from factwire.projection import runtime
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.pointers import escaped
from factwire.projection.reading import read, turn_of, word
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/metrics"


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


def nothing() -> Metrics:
    usage = Usage(input_tokens=0, output_tokens=0, total_tokens=0, total_cost_usd=0.0, records=0)
    return Metrics(usage=usage, limits={}, routing=[], values={})


def cost_recorded(canvas: "Canvas", fact: Fact) -> None:
    usage, path, said = canvas.state.metrics.usage, f"{PATH}/usage", read(fact, Cost)
    tokens_in, tokens_out = _counted(said.input_tokens), _counted(said.output_tokens)
    canvas.count(usage, path, "records")
    canvas.count(usage, path, "input_tokens", tokens_in)
    canvas.count(usage, path, "output_tokens", tokens_out)
    canvas.count(usage, path, "total_tokens", _counted(said.total_tokens) or tokens_in + tokens_out)
    cost = usage.total_cost_usd + float(said.total_cost_usd or 0)
    if isfinite(cost):
        canvas.put(usage, path, "total_cost_usd", cost)
    canvas.fill(usage, path, currency=said.currency)


def _counted(tokens: int | None) -> int:
    """A number of tokens, if it can be one."""
    return tokens if tokens is not None and 0 <= tokens <= SEQUENCE_MAX else 0


def cost_estimated(canvas: "Canvas", fact: Fact) -> None:
    usage, said = canvas.state.metrics.usage, read(fact, Cost)
    estimate = None if said.total_cost_usd is None else float(said.total_cost_usd)
    canvas.fill(usage, f"{PATH}/usage", estimated_cost_usd=estimate)


def limited(canvas: "Canvas", fact: Fact) -> None:
    """limit.changed, rate_limit.hit, quota.*."""
    said, name = read(fact, Cost), fact.event_class or ""
    key = word(fact.payload, "name", "limitId", "kind") or _LIMIT_NAME[name]
    limits, path = canvas.state.metrics.limits, f"{PATH}/limits/{escaped(key)}"
    if key not in limits:
        canvas.create(limits, f"{PATH}/limits", key, Limit(name=key, status="unknown"))
    limit = limits[key]
    canvas.put(limit, path, "status", _LIMIT_STATUS[name])
    canvas.put(limit, path, "message", said.message)
    canvas.put(limit, path, "retry_after_ms", said.retry_after_ms)
    canvas.fill(
        limit,
        path,
        limit=said.limit,
        used=said.used,
        remaining=said.remaining,
        utilization=said.utilization,
        resets_at=said.resets_at,
        hits=(limit.hits or 0) + 1 if name == "rate_limit.hit" else None,
        updated_at=fact.created_at,
    )
    if name == "quota.blocked":
        runtime.block(canvas, said.message or key)


def routed(canvas: "Canvas", fact: Fact) -> None:
    said, name = read(fact, RoutingPayload), fact.event_class or ""
    decision = Routing(
        event_id=fact.id,
        decision=name.removeprefix("routing."),
        model=said.model,
        provider=said.provider,
        candidates=said.candidates,
        reason=said.reason,
        reason_code=said.reason_code,
        turn_id=turn_of(fact),
        task_id=fact.task_id,
        created_at=fact.created_at,
    )
    canvas.push(canvas.state.metrics.routing, f"{PATH}/routing", decision, LANE_EVENTS_KEPT)
    if name != "routing.candidates.resolved":
        canvas.fill(canvas.state.runtime, runtime.PATH, model=said.model, provider=said.provider)
    if name == "routing.not_possible":
        runtime.block(canvas, said.reason_code or said.reason or "routing_not_possible")


_WORDS: Final = frozenset({"model", "provider", "currency", "unit"})


def measured(canvas: "Canvas", fact: Fact) -> None:
    """metrics.changed: figures that a runtime states, by name. Of texts only those are kept whose
    names say what they are, since a text may be anything.
    """
    values = canvas.state.metrics.values
    for name, value in fact.payload.items():
        is_figure = isinstance(value, (int, float, bool)) or (
            isinstance(value, str) and name in _WORDS
        )
        if is_figure and not _is(values.get(name), value):
            canvas.create(values, f"{PATH}/values", name, value)


def _is(known: object, value: object) -> bool:
    """Whether a figure is stated as it was; true is not 1."""
    return known == value and type(known) is type(value)

"""What a session of Claude Code has used so far, and which share of it is a turn's.

The sums of a result, cost and tokens for each model, count from the beginning of the session, also
where a later process resumed it; a turn's share is the difference. A version that begins to count
anew in each process is recognised: what is then left for the turn would be less than the tokens of
its own conversation, which a result states as well.
"""

from typing import Any, Final

import msgspec

from factwire.facts.json_values import finite_number_at, object_at, text_at, whole_number_at

COST_PLACES: Final = 10
"""Decimal places of a cost: differences of sums have noise behind them."""

_TOKENS: Final = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
}
"""What facts call them → what the usage of an API message calls them."""

_MODEL_TOKENS: Final = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "cacheReadTokens": "cacheReadInputTokens",
    "cacheWriteTokens": "cacheCreationInputTokens",
}
_COST: Final = "totalCostUsd"


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Sums of a session; `models` has tokens and cost of each model."""

    total_cost_usd: float | None = None
    models: dict[str, dict[str, int | float]] = {}

    @classmethod
    def restore(cls, fields: dict[str, Any] | None) -> "SessionUsage | None":
        """The sums that an earlier turn stated, if they can be read."""
        try:
            return None if fields is None else msgspec.convert(fields, cls)
        except msgspec.ValidationError:
            return None

    @classmethod
    def read(cls, result: dict[str, Any]) -> "SessionUsage":
        rows = object_at(result.get("modelUsage")) or {}
        models = {
            name: _read_model(usage) for name, row in rows.items() if (usage := object_at(row))
        }
        return cls(total_cost_usd=finite_number_at(result, "total_cost_usd"), models=models)

    def since(self, before: "SessionUsage", own_tokens: float) -> "SessionUsage":
        """The share that came after `before`; all of it, where counting began anew since."""
        share = SessionUsage(
            total_cost_usd=_subtract_cost(self.total_cost_usd, before.total_cost_usd),
            models={
                name: {
                    field: round(value - before.models.get(name, {}).get(field, 0), COST_PLACES)
                    for field, value in counts.items()
                }
                for name, counts in self.models.items()
            },
        )
        figures = [value for counts in share.models.values() for value in counts.values()]
        has_restarted = min([*figures, share.total_cost_usd or 0]) < 0
        if has_restarted or (self.models and _count_tokens(share) < own_tokens):
            return self
        return share


def read_turn_tokens(result: dict[str, Any]) -> dict[str, Any]:
    """The tokens of the turn's own conversation, without those of subagents."""
    usage = object_at(result.get("usage")) or {}
    return {name: whole_number_at(usage, theirs) or 0 for name, theirs in _TOKENS.items()}


def to_payloads(share: SessionUsage, turn_tokens: dict[str, Any]) -> list[dict[str, Any]]:
    """What was used, one payload for each model; without models, one for the conversation."""
    payloads: list[dict[str, Any]] = [
        {"model": name, **counts} for name, counts in share.models.items() if any(counts.values())
    ]
    return payloads or [{**turn_tokens, _COST: share.total_cost_usd}]


def find_window(result: dict[str, Any], model: str | None) -> int | None:
    """The context window of a model, which may be listed under a longer name."""
    rows = object_at(result.get("modelUsage")) or {}
    for name, row in rows.items():
        usage = object_at(row) or {}
        if model is not None and model in (name, text_at(usage, "canonicalModel")):
            return whole_number_at(usage, "contextWindow")
    return None


def _read_model(usage: dict[str, Any]) -> dict[str, int | float]:
    tokens = {name: whole_number_at(usage, theirs) or 0 for name, theirs in _MODEL_TOKENS.items()}
    cost = finite_number_at(usage, "costUSD")
    return {**tokens, **({} if cost is None else {_COST: cost})}


def _subtract_cost(after: float | None, before: float | None) -> float | None:
    return None if after is None else round(after - (before or 0), COST_PLACES)


def _count_tokens(share: SessionUsage) -> float:
    return sum(counts.get(name, 0) for counts in share.models.values() for name in _TOKENS)

"""What a turn came to: how long it took and what it used, told with the snapshot that ends it."""

from datetime import datetime
from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.projection import ProjectionState

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


class Began(msgspec.Struct, frozen=True, kw_only=True):
    """When a turn began, and what its thread had used by then."""

    at: str
    input_tokens: int
    output_tokens: int
    cost_usd: float

    @classmethod
    def now(cls, at: str, state: ProjectionState) -> "Began":
        used = state.metrics.usage
        return cls(
            at=at,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_usd=used.total_cost_usd,
        )


def result_of(
    terminal: Fact, began: Began | None, at: str, state: ProjectionState
) -> dict[str, Any]:
    """The payload of the snapshot after a turn; what its agent said goes before what is known
    here, and of a turn that began elsewhere nothing is worked out.
    """
    said = {name: terminal.payload[name] for name in _CARRIED if name in terminal.payload}
    return {"status": terminal.status, **(_worked_out(began, at, state) if began else {}), **said}


def _worked_out(began: Began, at: str, state: ProjectionState) -> dict[str, Any]:
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

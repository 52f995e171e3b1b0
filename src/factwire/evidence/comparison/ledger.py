"""The ledger: what a state sums up for a whole thread, kept for each turn.

Outcome, models, cost, files and time of a turn are stated by facts of that turn. Facts that come
twice count once, and order is theirs, not that of their arrival.
"""

from collections.abc import Callable
from datetime import datetime
from math import isfinite
from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.facts.payloads import Cost, FileChange, ModelRequest, TurnEnd
from factwire.projection.reading import outcome_of, read, subagent_of, turn_of

_MODELS: Final = (
    *("model.requested", "model.completed", "model.failed"),
    *("routing.decided", "routing.fallback.applied", "routing.single_candidate"),
)
_BEGINS: Final = ("turn.submitted", "turn.started", "run.started")
_ENDS: Final = ("turn.completed", "turn.failed", "turn.canceled", "run.finished", "run.failed")


class FileTouched(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What a turn did to one file."""

    change: str | None = None
    changes: int = 0
    reads: int = 0
    added_lines: int = 0
    removed_lines: int = 0
    diff: str | None = None


class TurnLedger(msgspec.Struct, kw_only=True):
    """One turn; `turn_id` is None for what happened beside all turns."""

    turn_id: str | None
    is_turn: bool = False
    subagent_id: str | None = None
    outcome: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    models: dict[str, None] = msgspec.field(default_factory=dict[str, None])
    files: dict[str, FileTouched] = msgspec.field(default_factory=dict[str, FileTouched])
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0
    first_at: str | None = None
    last_at: str | None = None

    def duration_ms(self) -> float | None:
        """Between its first and its last fact, where both say when they were made."""
        return milliseconds(self.first_at, self.last_at)


def _began(turn: TurnLedger, fact: Fact) -> None:
    turn.is_turn = True
    turn.subagent_id = subagent_of(fact) or turn.subagent_id


def _ended(turn: TurnLedger, fact: Fact) -> None:
    said = read(fact, TurnEnd)
    turn.is_turn = True
    turn.outcome = {
        "status": outcome_of(fact),
        "failureCategory": said.failure_category,
        "message": said.message,
        "reason": said.reason,
    }


def _model(turn: TurnLedger, fact: Fact) -> None:
    model = read(fact, ModelRequest).model
    if model:
        turn.models[model] = None


def _cost(turn: TurnLedger, fact: Fact) -> None:
    said = read(fact, Cost)
    tokens_in, tokens_out = max(0, said.input_tokens or 0), max(0, said.output_tokens or 0)
    turn.input_tokens += tokens_in
    turn.output_tokens += tokens_out
    turn.total_tokens += max(0, said.total_tokens or 0) or tokens_in + tokens_out
    cost = turn.cost_usd + float(said.total_cost_usd or 0)
    turn.cost_usd = cost if isfinite(cost) else turn.cost_usd
    _model(turn, fact)


def _file(turn: TurnLedger, fact: Fact) -> None:
    said = read(fact, FileChange)
    if said.path is None:
        return
    file = turn.files.setdefault(said.path, FileTouched())
    if fact.event_class == "file.read":
        file.reads += 1
        return
    file.changes += 1
    file.added_lines += said.added_lines or 0
    file.removed_lines += said.removed_lines or 0
    file.change, file.diff = said.change or file.change, said.diff or file.diff


_TOLD: Final[dict[str, Callable[[TurnLedger, Fact], None]]] = {
    **dict.fromkeys(_BEGINS, _began),
    **dict.fromkeys(_ENDS, _ended),
    **dict.fromkeys(_MODELS, _model),
    "cost.recorded": _cost,
    "file.read": _file,
    "file.changed": _file,
}


class Ledger:
    """Gathers facts of one run; `turns` tells them when all are there."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._told: list[tuple[int, Fact]] = []
        self._times: dict[str | None, tuple[int, str, str]] = {}
        self._place = 0

    def note(self, fact: Fact, *, main: bool) -> None:
        """Take in a fact; on the `main` thread its sequence says where it belongs."""
        if fact.id in self._seen:
            return
        self._seen.add(fact.id)
        if main and fact.sequence is not None:
            self._place = fact.sequence
        turn, at = turn_of(fact), fact.created_at
        place, first, last = self._times.get(turn, (self._place, at, at))
        self._times[turn] = (min(place, self._place), min(first, at), max(last, at))
        if fact.event_class in _TOLD:
            self._told.append((self._place, fact))

    def turns(self) -> dict[str | None, TurnLedger]:
        """Every turn that a fact names, in the order of their first facts."""
        by_place = sorted(self._times.items(), key=lambda each: each[1][0])
        found = {
            turn: TurnLedger(turn_id=turn, first_at=first, last_at=last)
            for turn, (_, first, last) in by_place
        }
        found.setdefault(None, TurnLedger(turn_id=None))
        for _, fact in sorted(self._told, key=lambda each: each[0]):
            _TOLD[fact.event_class or ""](found[turn_of(fact)], fact)
        return found


def milliseconds(first: str | None, last: str | None) -> float | None:
    """The time between two moments as facts state them; None where one cannot be read."""
    if first is None or last is None:
        return None
    try:
        passed = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    except (ValueError, TypeError):
        return None
    return passed.total_seconds() * 1_000

"""Trials: what a benchmark tried, each with its dataset, task, configuration, rewards and refs.

A trial is what facts with its `trialId` say. A dataset or a configuration that is resolved for no
trial in particular holds for those that start on the same thread after it. Cost belongs to the
trial that its fact names, else to the only one that is open on its thread; where several are open,
it is nobody's, since no fact says whose it is.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from factwire.evidence.comparison.ledger import milliseconds
from factwire.facts import Fact
from factwire.facts.payloads import Benchmark, Cost
from factwire.journal.filter import thread_of
from factwire.projection.reading import number, read, ref_text, word, words

REWARD: Final = "reward"
"""The name of a reward that has none of its own."""

_STATUS: Final = {
    "benchmark.trial.started": "running",
    "benchmark.trial.completed": "completed",
    "benchmark.trial.failed": "failed",
}


class Trial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One trial. `rewards` are all that were recorded, by name; `reward` is the one without a name
    of its own. What no fact says is absent.
    """

    trial_id: str
    status: str = "unknown"
    dataset: str | None = None
    task: str | None = None
    configuration: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    rewards: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    trajectory_refs: list[str] = msgspec.field(default_factory=list[str])
    failure_category: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    duration_ms: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0
    thread_id: str | None = None
    turn_id: str | None = None
    evidence_id: str | None = None

    @property
    def reward(self) -> float | None:
        return self.rewards.get(REWARD)


class _Bench:
    """What holds on one thread, and which of its trials are open."""

    def __init__(self) -> None:
        self.dataset: str | None = None
        self.configuration: dict[str, Any] = {}
        self.open: set[str] = set()


class _Reader:
    def __init__(self) -> None:
        self.trials: dict[str, Trial] = {}
        self._benches: dict[str | None, _Bench] = {}
        self._seen: set[str] = set()

    def take(self, fact: Fact) -> None:
        name = fact.event_class or ""
        is_cost = name == "cost.recorded"
        if fact.id in self._seen or not (is_cost or name.startswith("benchmark.")):
            return
        self._seen.add(fact.id)
        bench = self._benches.setdefault(thread_of(fact), _Bench())
        key = word(fact.payload, "trialId", "trial_id")
        if is_cost:
            self._cost(fact, bench, key)
        elif key is not None:
            self._trial(fact, bench, key)
        else:
            said = read(fact, Benchmark)
            bench.dataset = said.dataset or bench.dataset
            bench.configuration = said.configuration or bench.configuration

    def _trial(self, fact: Fact, bench: _Bench, key: str) -> None:
        trial = self.trials.get(key) or Trial(trial_id=key)
        status = _STATUS.get(fact.event_class or "")
        if status == "running":
            trial = _started(trial, fact, bench)
            bench.open.add(key)
        elif status is not None:
            trial = replace(trial, status=status, ended_at=fact.created_at)
            bench.open.discard(key)
        trial = _described(trial, fact)
        self.trials[key] = trial if status is None else _with_cost(trial, read(fact, Cost))

    def _cost(self, fact: Fact, bench: _Bench, key: str | None) -> None:
        if key is None and len(bench.open) == 1:
            [key] = bench.open
        if key is not None and key in self.trials:
            self.trials[key] = _with_cost(self.trials[key], read(fact, Cost))


def trials(facts: Iterable[Fact]) -> list[Trial]:
    """The trials that facts tell of, of any number of threads, in the order in which they began."""
    reader = _Reader()
    for fact in facts:
        reader.take(fact)
    return list(reader.trials.values())


def _started(trial: Trial, fact: Fact, bench: _Bench) -> Trial:
    return replace(
        trial,
        status="running",
        dataset=trial.dataset or bench.dataset,
        configuration=trial.configuration or bench.configuration,
        started_at=trial.started_at or fact.created_at,
    )


def _described(trial: Trial, fact: Fact) -> Trial:
    said, payload = read(fact, Benchmark), fact.payload
    refs = (ref_text(said.trajectory_ref), *words(payload.get("trajectoryRefs")))
    known = (*trial.trajectory_refs, *(ref for ref in refs if ref is not None))
    passed = milliseconds(trial.started_at, trial.ended_at)
    stated = number(payload, "durationMs", "duration_ms")
    return replace(
        trial,
        dataset=said.dataset or trial.dataset,
        task=said.task or trial.task,
        configuration=said.configuration or trial.configuration,
        rewards=trial.rewards | _reward(said, payload),
        trajectory_refs=list(dict.fromkeys(known)),
        failure_category=said.failure_category or trial.failure_category,
        duration_ms=trial.duration_ms if trial.duration_ms is not None else stated or passed,
        thread_id=trial.thread_id or thread_of(fact),
        turn_id=trial.turn_id or fact.turn_id,
        evidence_id=fact.evidence_id or trial.evidence_id,
    )


def _reward(said: Benchmark, payload: dict[str, Any]) -> dict[str, float]:
    if said.reward is None or not isfinite(said.reward):
        return {}
    return {word(payload, "name", "metric") or REWARD: float(said.reward)}


def _with_cost(trial: Trial, said: Cost) -> Trial:
    tokens_in, tokens_out = max(0, said.input_tokens or 0), max(0, said.output_tokens or 0)
    cost = trial.cost_usd + float(said.total_cost_usd or 0)
    return replace(
        trial,
        input_tokens=trial.input_tokens + tokens_in,
        output_tokens=trial.output_tokens + tokens_out,
        total_tokens=trial.total_tokens
        + (max(0, said.total_tokens or 0) or tokens_in + tokens_out),
        cost_usd=round(cost, 9) if isfinite(cost) else trial.cost_usd,
    )

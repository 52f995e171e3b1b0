"""Benchmark trials as facts tell them, and the trials of two runs paired by dataset and task.

A trial is what facts with its `trialId` say. A dataset or configuration that is resolved for no
trial in particular holds for those that start on the same thread after it. Nothing is made up for
what is missing: a task that one side did not try is named and not counted as lost, and a mean is
over the rewards that were recorded.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isfinite
from statistics import fmean
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from factwire.evidence.run_account import milliseconds_between
from factwire.evidence.run_comparison import Change, ComparisonPart
from factwire.facts import Fact
from factwire.facts.classes.payloads import BenchmarkPayload, CostPayload
from factwire.facts.json_values import number_at, text_at, texts_of
from factwire.journal.filter import find_thread_id
from factwire.projection.payload_fields import read_payload, ref_text

REWARD: Final = "reward"
"""The name of a reward that has none of its own."""

_TRIAL_STATUS: Final = {
    "benchmark.trial.started": "running",
    "benchmark.trial.completed": "completed",
    "benchmark.trial.failed": "failed",
}


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
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


class _ThreadTrials:
    """What holds on one thread, and which of its trials are open."""

    def __init__(self) -> None:
        self.dataset: str | None = None
        self.configuration: dict[str, Any] = {}
        self.open: set[str] = set()


class _TrialReader:
    def __init__(self) -> None:
        self.trials: dict[str, TrialRecord] = {}
        self._trials_by_thread: dict[str | None, _ThreadTrials] = {}
        self._seen: set[str] = set()

    def take(self, fact: Fact) -> None:
        name = fact.event_class or ""
        is_cost = name == "cost.recorded"
        if fact.id in self._seen or not (is_cost or name.startswith("benchmark.")):
            return
        self._seen.add(fact.id)
        thread_trials = self._trials_by_thread.setdefault(find_thread_id(fact), _ThreadTrials())
        key = text_at(fact.payload, "trialId", "trial_id")
        if is_cost:
            self._cost(fact, thread_trials, key)
        elif key is not None:
            self._trial(fact, thread_trials, key)
        else:
            payload = read_payload(fact, BenchmarkPayload)
            thread_trials.dataset = payload.dataset or thread_trials.dataset
            thread_trials.configuration = payload.configuration or thread_trials.configuration

    def _trial(self, fact: Fact, thread_trials: _ThreadTrials, key: str) -> None:
        trial = self.trials.get(key) or TrialRecord(trial_id=key)
        status = _TRIAL_STATUS.get(fact.event_class or "")
        if status == "running":
            trial = _start_trial(trial, fact, thread_trials)
            thread_trials.open.add(key)
        elif status is not None:
            trial = replace(trial, status=status, ended_at=fact.created_at)
            thread_trials.open.discard(key)
        trial = _describe_trial(trial, fact)
        self.trials[key] = (
            trial if status is None else _add_cost(trial, read_payload(fact, CostPayload))
        )

    def _cost(self, fact: Fact, thread_trials: _ThreadTrials, key: str | None) -> None:
        if key is None and len(thread_trials.open) == 1:
            [key] = thread_trials.open
        if key is not None and key in self.trials:
            self.trials[key] = _add_cost(self.trials[key], read_payload(fact, CostPayload))


def read_trials(facts: Iterable[Fact]) -> list[TrialRecord]:
    """The trials that facts tell of, of any number of threads, in the order in which they began."""
    reader = _TrialReader()
    for fact in facts:
        reader.take(fact)
    return list(reader.trials.values())


def _start_trial(trial: TrialRecord, fact: Fact, thread_trials: _ThreadTrials) -> TrialRecord:
    return replace(
        trial,
        status="running",
        dataset=trial.dataset or thread_trials.dataset,
        configuration=trial.configuration or thread_trials.configuration,
        started_at=trial.started_at or fact.created_at,
    )


def _describe_trial(trial: TrialRecord, fact: Fact) -> TrialRecord:
    fields, payload = read_payload(fact, BenchmarkPayload), fact.payload
    refs = (ref_text(fields.trajectory_ref), *texts_of(payload.get("trajectoryRefs")))
    known = (*trial.trajectory_refs, *(ref for ref in refs if ref is not None))
    passed = milliseconds_between(trial.started_at, trial.ended_at)
    stated = number_at(payload, "durationMs", "duration_ms")
    return replace(
        trial,
        dataset=fields.dataset or trial.dataset,
        task=fields.task or trial.task,
        configuration=fields.configuration or trial.configuration,
        rewards=trial.rewards | _read_rewards(fields, payload),
        trajectory_refs=list(dict.fromkeys(known)),
        failure_category=fields.failure_category or trial.failure_category,
        duration_ms=trial.duration_ms if trial.duration_ms is not None else stated or passed,
        thread_id=trial.thread_id or find_thread_id(fact),
        turn_id=trial.turn_id or fact.turn_id,
        evidence_id=fact.evidence_id or trial.evidence_id,
    )


def _read_rewards(fields: BenchmarkPayload, payload: dict[str, Any]) -> dict[str, float]:
    if fields.reward is None or not isfinite(fields.reward):
        return {}
    return {text_at(payload, "name", "metric") or REWARD: float(fields.reward)}


def _add_cost(trial: TrialRecord, payload: CostPayload) -> TrialRecord:
    tokens_in, tokens_out = max(0, payload.input_tokens or 0), max(0, payload.output_tokens or 0)
    cost = trial.cost_usd + float(payload.total_cost_usd or 0)
    return replace(
        trial,
        input_tokens=trial.input_tokens + tokens_in,
        output_tokens=trial.output_tokens + tokens_out,
        total_tokens=trial.total_tokens
        + (max(0, payload.total_tokens or 0) or tokens_in + tokens_out),
        cost_usd=round(cost, 9) if isfinite(cost) else trial.cost_usd,
    )


BENCHMARK_COMPARISON_VERSION: Final = "factwire-benchmark-comparison/v1"
SOLVED_AT: Final = 1.0
"""The reward from which a trial is solved, if nothing else is said."""

Flip = Literal["solved", "unsolved"]
TaskKey = tuple[str, str]
"""Dataset and task."""


class TrialSums(ComparisonPart, frozen=True, omit_defaults=False):
    """Trials together. `mean_reward` is over the `rewarded` ones; `timed` of them say how long they
    took.
    """

    trials: int
    completed: int
    failed: int
    unfinished: int
    rewarded: int
    solved: int
    mean_reward: float | None
    timed: int
    duration_ms: float
    total_tokens: int
    cost_usd: float


class TaskComparison(ComparisonPart, frozen=True):
    """One task on both sides. It came out the `same` where rewards and endings agree, whatever it
    cost. `reward_delta` is B's mean less A's; `flip` says that it is solved
    in more of its trials than not on one side only.
    """

    task: str
    same: bool
    dataset: str | None = None
    a: TrialSums | None = None
    b: TrialSums | None = None
    reward_delta: float | None = None
    flip: Flip | None = None


class BenchmarkComparison(ComparisonPart, frozen=True):
    """Two runs of a benchmark. `paired_delta` is the mean of the deltas of tasks that have a
    reward on both sides, `paired` in number.
    """

    schema_version: str
    same: bool
    solved_at: float
    a: TrialSums
    b: TrialSums
    configuration: list[Change]
    tasks: list[TaskComparison]
    only_a: list[str]
    only_b: list[str]
    paired: int
    paired_delta: float | None = None


def compare_trials(
    a: Iterable[TrialRecord], b: Iterable[TrialRecord], *, solved_at: float = SOLVED_AT
) -> BenchmarkComparison:
    """How the trials of B came out against those of A."""
    all_a, all_b = list(a), list(b)
    by_a, by_b = _group_by_task(all_a), _group_by_task(all_b)
    tasks = [
        _compare_task(key, by_a.get(key, []), by_b.get(key, []), solved_at)
        for key in sorted(by_a.keys() | by_b.keys())
    ]
    deltas = [each.reward_delta for each in tasks if each.reward_delta is not None]
    configuration = _compare_configuration(all_a, all_b)
    return BenchmarkComparison(
        schema_version=BENCHMARK_COMPARISON_VERSION,
        same=not configuration and all(each.same for each in tasks),
        solved_at=solved_at,
        a=_sum_trials(all_a, solved_at),
        b=_sum_trials(all_b, solved_at),
        configuration=configuration,
        tasks=tasks,
        only_a=[_name(key) for key in sorted(by_a.keys() - by_b.keys())],
        only_b=[_name(key) for key in sorted(by_b.keys() - by_a.keys())],
        paired=len(deltas),
        paired_delta=_round_value(fmean(deltas)) if deltas else None,
    )


def _group_by_task(found: Sequence[TrialRecord]) -> dict[TaskKey, list[TrialRecord]]:
    tasks: dict[TaskKey, list[TrialRecord]] = defaultdict(list)
    for trial in found:
        tasks[trial.dataset or "", trial.task or "unnamed"].append(trial)
    return dict(tasks)


def _compare_task(
    key: TaskKey, a: list[TrialRecord], b: list[TrialRecord], solved_at: float
) -> TaskComparison:
    sums_a, sums_b = (
        _sum_trials(a, solved_at) if a else None,
        _sum_trials(b, solved_at) if b else None,
    )
    delta, flip = None, None
    if sums_a is not None and sums_b is not None:
        flip = _find_flip(sums_a, sums_b)
        if sums_a.mean_reward is not None and sums_b.mean_reward is not None:
            delta = _round_value(sums_b.mean_reward - sums_a.mean_reward)
    return TaskComparison(
        task=key[1],
        same=_is_same_result(sums_a, sums_b),
        dataset=key[0] or None,
        a=sums_a,
        b=sums_b,
        reward_delta=delta,
        flip=flip,
    )


def _sum_trials(found: Sequence[TrialRecord], solved_at: float) -> TrialSums:
    rewards = [trial.reward for trial in found if trial.reward is not None]
    times = [trial.duration_ms for trial in found if trial.duration_ms is not None]
    completed = sum(trial.status == "completed" for trial in found)
    failed = sum(trial.status == "failed" for trial in found)
    return TrialSums(
        trials=len(found),
        completed=completed,
        failed=failed,
        unfinished=len(found) - completed - failed,
        rewarded=len(rewards),
        solved=sum(reward >= solved_at for reward in rewards),
        mean_reward=_round_value(fmean(rewards)) if rewards else None,
        timed=len(times),
        duration_ms=sum(times),
        total_tokens=sum(trial.total_tokens for trial in found),
        cost_usd=_round_value(sum(trial.cost_usd for trial in found)),
    )


def _find_flip(a: TrialSums, b: TrialSums) -> Flip | None:
    was, now = 2 * a.solved > a.trials, 2 * b.solved > b.trials
    if was == now:
        return None
    return "solved" if now else "unsolved"


def _is_same_result(a: TrialSums | None, b: TrialSums | None) -> bool:
    if a is None or b is None:
        return False
    return all(
        getattr(a, name) == getattr(b, name)
        for name in ("trials", "completed", "failed", "rewarded", "solved", "mean_reward")
    )


def _compare_configuration(a: Sequence[TrialRecord], b: Sequence[TrialRecord]) -> list[Change]:
    """Settings that differ; one that differs among the trials of a side has all its values."""
    values_a, values_b = _collect_settings(a), _collect_settings(b)
    return [
        Change(field=name, a=_single_value(values_a.get(name)), b=_single_value(values_b.get(name)))
        for name in sorted(values_a.keys() | values_b.keys())
        if values_a.get(name) != values_b.get(name)
    ]


def _collect_settings(found: Sequence[TrialRecord]) -> dict[str, dict[str, Any]]:
    """Setting → its values in order, each once, by how they are written."""
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    for trial in found:
        for name, value in trial.configuration.items():
            values[name][msgspec.json.encode(value, order="sorted").decode()] = value
    return {name: dict(sorted(each.items())) for name, each in values.items()}


def _single_value(values: dict[str, Any] | None) -> Any:
    listed = list((values or {}).values())
    return listed[0] if len(listed) == 1 else listed or None


def _name(key: TaskKey) -> str:
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


def _round_value(value: float) -> float:
    return round(value, 9) + 0.0

"""`BenchmarkComparison`: the trials of two runs of a benchmark, paired by dataset and task.

Nothing is made up for what is missing: a task that one side did not try is named and not counted as
lost, and a mean is over the rewards that were recorded, with their number beside it. A trial is
solved when its reward reaches a bar; one that failed without a reward is not solved.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, Final, Literal

import msgspec

from factwire.evidence.comparison.comparison import Change, Part
from factwire.evidence.comparison.trials import Trial

BENCHMARK_COMPARISON_VERSION: Final = "factwire-benchmark-comparison/v1"
SOLVED_AT: Final = 1.0
"""The reward from which a trial is solved, if nothing else is said."""

Flip = Literal["solved", "unsolved"]
Task = tuple[str, str]
"""Dataset and task."""


class TrialSums(Part, frozen=True, omit_defaults=False):
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


class TaskComparison(Part, frozen=True):
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


class BenchmarkComparison(Part, frozen=True):
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
    a: Iterable[Trial], b: Iterable[Trial], *, solved_at: float = SOLVED_AT
) -> BenchmarkComparison:
    """How the trials of B came out against those of A."""
    all_a, all_b = list(a), list(b)
    by_a, by_b = _by_task(all_a), _by_task(all_b)
    tasks = [
        _task(key, by_a.get(key, []), by_b.get(key, []), solved_at)
        for key in sorted(by_a.keys() | by_b.keys())
    ]
    deltas = [each.reward_delta for each in tasks if each.reward_delta is not None]
    configuration = _configuration(all_a, all_b)
    return BenchmarkComparison(
        schema_version=BENCHMARK_COMPARISON_VERSION,
        same=not configuration and all(each.same for each in tasks),
        solved_at=solved_at,
        a=_sums(all_a, solved_at),
        b=_sums(all_b, solved_at),
        configuration=configuration,
        tasks=tasks,
        only_a=[_name(key) for key in sorted(by_a.keys() - by_b.keys())],
        only_b=[_name(key) for key in sorted(by_b.keys() - by_a.keys())],
        paired=len(deltas),
        paired_delta=_rounded(fmean(deltas)) if deltas else None,
    )


def _by_task(found: Sequence[Trial]) -> dict[Task, list[Trial]]:
    tasks: dict[Task, list[Trial]] = defaultdict(list)
    for trial in found:
        tasks[trial.dataset or "", trial.task or "unnamed"].append(trial)
    return dict(tasks)


def _task(key: Task, a: list[Trial], b: list[Trial], solved_at: float) -> TaskComparison:
    sums_a, sums_b = _sums(a, solved_at) if a else None, _sums(b, solved_at) if b else None
    delta, flip = None, None
    if sums_a is not None and sums_b is not None:
        flip = _flip(sums_a, sums_b)
        if sums_a.mean_reward is not None and sums_b.mean_reward is not None:
            delta = _rounded(sums_b.mean_reward - sums_a.mean_reward)
    return TaskComparison(
        task=key[1],
        same=_is_same(sums_a, sums_b),
        dataset=key[0] or None,
        a=sums_a,
        b=sums_b,
        reward_delta=delta,
        flip=flip,
    )


def _sums(found: Sequence[Trial], solved_at: float) -> TrialSums:
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
        mean_reward=_rounded(fmean(rewards)) if rewards else None,
        timed=len(times),
        duration_ms=sum(times),
        total_tokens=sum(trial.total_tokens for trial in found),
        cost_usd=_rounded(sum(trial.cost_usd for trial in found)),
    )


def _flip(a: TrialSums, b: TrialSums) -> Flip | None:
    was, now = 2 * a.solved > a.trials, 2 * b.solved > b.trials
    if was == now:
        return None
    return "solved" if now else "unsolved"


def _is_same(a: TrialSums | None, b: TrialSums | None) -> bool:
    if a is None or b is None:
        return False
    return all(
        getattr(a, name) == getattr(b, name)
        for name in ("trials", "completed", "failed", "rewarded", "solved", "mean_reward")
    )


def _configuration(a: Sequence[Trial], b: Sequence[Trial]) -> list[Change]:
    """Settings that differ; one that differs among the trials of a side has all its values."""
    values_a, values_b = _settings(a), _settings(b)
    return [
        Change(field=name, a=_one(values_a.get(name)), b=_one(values_b.get(name)))
        for name in sorted(values_a.keys() | values_b.keys())
        if values_a.get(name) != values_b.get(name)
    ]


def _settings(found: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """Setting → its values in order, each once, by how they are written."""
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    for trial in found:
        for name, value in trial.configuration.items():
            values[name][msgspec.json.encode(value, order="sorted").decode()] = value
    return {name: dict(sorted(each.items())) for name, each in values.items()}


def _one(values: dict[str, Any] | None) -> Any:
    listed = list((values or {}).values())
    return listed[0] if len(listed) == 1 else listed or None


def _name(key: Task) -> str:
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


def _rounded(value: float) -> float:
    return round(value, 9) + 0.0

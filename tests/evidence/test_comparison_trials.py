"""Trials of a benchmark: what facts say of each, and how two runs of one came out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from factwire.evidence.benchmark_trials import (
    TaskComparison,
    TrialRecord,
    TrialSums,
    compare_trials,
    read_trials,
)
from factwire.evidence.run_comparison import Change
from factwire.evidence.schemas import comparison_schemas
from factwire.facts import Fact, inspect_stream, read_fact
from factwire.journal import open_journal
from factwire.runtime import TurnFailed
from factwire.runtime.recording import Recorder
from tests.evidence.compared_runs import stream


def facts(*rows: tuple[str, dict[str, Any]], thread: str = "t") -> list[Fact]:
    """Facts of these classes with these payloads, a second apart."""
    return [
        read_fact(
            {
                "id": f"{thread}-{number}",
                "kind": "state",
                "status": "completed",
                "title": name,
                "createdAt": f"2026-06-10T09:00:{number:02}Z",
                "schemaVersion": "factwire-fact/v1",
                "runtimeId": "r",
                "sequence": number,
                "threadId": thread,
                "eventClass": name,
                "payload": payload,
            }
        )
        for number, (name, payload) in enumerate(rows, 1)
    ]


def trial_facts(
    trial: str, task: str, reward: float | None = None, status: str = "completed"
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "benchmark.trial.started", {"trialId": trial, "task": task}
    yield f"benchmark.trial.{status}", {"trialId": trial}
    if reward is not None:
        yield "benchmark.reward.recorded", {"trialId": trial, "reward": reward}


@pytest.mark.requirement("comparison.trials.view")
def test_the_recorded_stream_has_two_trials():
    configuration = {"model": "large-2", "effort": "high"}
    common: dict[str, Any] = {
        "dataset": "bug-fixes-small",
        "configuration": configuration,
        "duration_ms": 1_000.0,
        "thread_id": "thr_benchmark_trials",
    }
    assert read_trials(stream("benchmark_trials")) == [
        TrialRecord(
            trial_id="trial_1",
            status="completed",
            task="off-by-one",
            rewards={"reward": 0.75},
            trajectory_refs=["trace:trial-1"],
            started_at="2026-06-10T09:00:03.000Z",
            ended_at="2026-06-10T09:00:04.000Z",
            **common,
        ),
        TrialRecord(
            trial_id="trial_2",
            status="failed",
            task="race",
            failure_category="timeout",
            started_at="2026-06-10T09:00:06.000Z",
            ended_at="2026-06-10T09:00:07.000Z",
            **common,
        ),
    ]


@pytest.mark.requirement("comparison.trials.view")
def test_a_trial_keeps_all_its_rewards_and_refs_and_repeats_count_once():
    found = facts(
        ("benchmark.trial.started", {"trialId": "x", "task": "k", "configuration": {"m": 1}}),
        ("benchmark.reward.recorded", {"trialId": "x", "reward": 1, "name": "style"}),
        ("benchmark.reward.recorded", {"trialId": "x", "reward": 0.5}),
        ("benchmark.trial.completed", {"trialId": "x", "trajectoryRefs": ["trace:1", "trace:2"]}),
    )
    [trial] = read_trials([*found, *found])
    assert trial.reward == 0.5
    assert trial.rewards == {"style": 1.0, "reward": 0.5}
    assert trial.trajectory_refs == ["trace:1", "trace:2"]
    assert trial.duration_ms == 3_000.0


@pytest.mark.requirement("comparison.trials.view")
def test_what_is_resolved_holds_for_the_trials_that_start_after_it_on_its_thread():
    here = facts(
        *trial_facts("one", "k"),
        ("benchmark.configuration.resolved", {"configuration": {"model": "m"}}),
        ("benchmark.dataset.resolved", {"dataset": "d"}),
        *trial_facts("two", "k"),
    )
    there = facts(*trial_facts("three", "k"), thread="u")
    found = {
        each.trial_id: (each.dataset, each.configuration) for each in read_trials([*here, *there])
    }
    assert found == {"one": (None, {}), "two": ("d", {"model": "m"}), "three": (None, {})}


@pytest.mark.requirement("comparison.trials.cost")
def test_cost_belongs_to_the_trial_that_is_named_or_alone_open():
    found = read_trials(
        facts(
            ("cost.recorded", {"inputTokens": 1_000}),
            ("benchmark.trial.started", {"trialId": "a", "task": "k"}),
            ("cost.recorded", {"inputTokens": 10, "outputTokens": 2, "totalCostUsd": 0.5}),
            ("benchmark.trial.started", {"trialId": "b", "task": "k"}),
            ("cost.recorded", {"inputTokens": 1_000}),
            ("cost.recorded", {"trialId": "a", "totalTokens": 5}),
            ("benchmark.trial.completed", {"trialId": "a"}),
            ("cost.recorded", {"totalTokens": 7, "totalCostUsd": 0.25}),
            ("benchmark.trial.completed", {"trialId": "b"}),
            ("cost.recorded", {"inputTokens": 1_000}),
        )
    )
    assert [(each.total_tokens, each.cost_usd) for each in found] == [(17, 0.5), (7, 0.25)]


def sums(trials: int, rewards: list[float], **more: Any) -> TrialSums:
    values: dict[str, Any] = {
        "trials": trials,
        "completed": trials,
        "failed": 0,
        "unfinished": 0,
        "rewarded": len(rewards),
        "solved": sum(reward >= 1 for reward in rewards),
        "mean_reward": sum(rewards) / len(rewards) if rewards else None,
        "timed": trials,
        "duration_ms": 1_000.0 * trials,
        "total_tokens": 0,
        "cost_usd": 0.0,
    }
    return TrialSums(**values | more)


A = [
    *trial_facts("1", "kept", 1),
    *trial_facts("2", "lost", 1),
    *trial_facts("3", "won", 0),
    *trial_facts("4", "won", 0.5),
    *trial_facts("5", "gone", 1),
    *trial_facts("6", "broken", status="failed"),
]
B = [
    *trial_facts("1", "won", 1),
    *trial_facts("2", "won", 1),
    *trial_facts("3", "won", 0),
    *trial_facts("4", "lost", 0),
    *trial_facts("5", "kept", 1),
    *trial_facts("6", "broken", 0.25),
    *trial_facts("7", "new", 1),
]


@pytest.mark.requirement("comparison.trials.paired")
@pytest.mark.requirement("comparison.trials.means")
def test_trials_are_paired_by_task_with_deltas_flips_and_missing_ones():
    compared = compare_trials(read_trials(facts(*A)), read_trials(facts(*B)))
    failed = sums(1, [], completed=0, failed=1)
    assert compared.tasks == [
        TaskComparison(task="broken", same=False, a=failed, b=sums(1, [0.25])),
        TaskComparison(task="gone", same=False, a=sums(1, [1])),
        TaskComparison(task="kept", same=True, a=sums(1, [1]), b=sums(1, [1]), reward_delta=0.0),
        TaskComparison(
            task="lost",
            same=False,
            a=sums(1, [1]),
            b=sums(1, [0]),
            reward_delta=-1.0,
            flip="unsolved",
        ),
        TaskComparison(task="new", same=False, b=sums(1, [1])),
        TaskComparison(
            task="won",
            same=False,
            a=sums(2, [0, 0.5]),
            b=sums(3, [1, 1, 0], mean_reward=0.666666667),
            reward_delta=0.416666667,
            flip="solved",
        ),
    ]
    assert (compared.only_a, compared.only_b) == (["gone"], ["new"])
    assert (compared.paired, compared.paired_delta) == (3, -0.194444444)
    assert (compared.a.mean_reward, compared.a.rewarded, compared.a.trials) == (0.7, 5, 6)
    assert not compared.same


@pytest.mark.requirement("comparison.trials.paired")
def test_other_ids_times_and_costs_come_out_the_same_and_sides_can_be_exchanged():
    one = read_trials(facts(*A))
    other = read_trials(
        facts(*A, ("cost.recorded", {"trialId": "1", "totalTokens": 5}), thread="u")
    )
    assert compare_trials(one, other).same
    there, back = (
        compare_trials(one, read_trials(facts(*B))),
        compare_trials(read_trials(facts(*B)), one),
    )
    assert (there.a, there.b, there.only_a) == (back.b, back.a, back.only_b)
    deltas = [-each.reward_delta for each in back.tasks if each.reward_delta is not None]
    assert [each.reward_delta for each in there.tasks if each.reward_delta is not None] == deltas


@pytest.mark.requirement("comparison.trials.paired")
def test_settings_that_differ_are_told_and_one_that_varies_has_all_its_values():
    def run(*configurations: dict[str, Any]) -> list[TrialRecord]:
        return [
            TrialRecord(trial_id=str(number), task="k", status="completed", configuration=each)
            for number, each in enumerate(configurations)
        ]

    one, other = (
        run({"model": "m", "n": 1}, {"model": "m"}),
        run({"model": "m", "n": 2, "x": [1]}, {"model": "l"}),
    )
    assert compare_trials(one, other).configuration == [
        Change(field="model", a="m", b=["l", "m"]),
        Change(field="n", a=1, b=2),
        Change(field="x", b=[1]),
    ]


@pytest.mark.requirement("comparison.trials.means")
def test_the_bar_for_solved_can_be_set():
    found = read_trials(facts(*A))
    assert compare_trials(found, found, solved_at=0.5).a.solved == 4
    assert compare_trials([], []).a.mean_reward is None


@pytest.mark.requirement("comparison.contract")
def test_a_comparison_of_trials_fits_its_schema():
    schema = comparison_schemas()["benchmark-comparison.schema.json"]
    compared = compare_trials(read_trials(facts(*A)), read_trials(facts(*B)))
    validator: Any = Draft202012Validator(schema)
    validator.validate(msgspec.json.decode(msgspec.json.encode(compared)))


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.recording.trial")
async def test_a_recorded_trial_is_read_back_with_what_its_turns_cost(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'bench.db'}"
    async with Recorder(url, thread_id="bench") as recorder:
        async with recorder.trial("paging", dataset="small", configuration={"m": 1}) as trial:
            async with recorder.turn("Fix paging") as turn:
                turn.cost(input_tokens=10, output_tokens=2, total_cost_usd=0.5)
                turn.say("Fixed.")
            ref = await trial.trajectory("what was done")
            trial.reward(1.0)
            trial.reward(0.5, "style")
        with pytest.raises(TurnFailed):
            async with recorder.trial("race", dataset="small"):
                raise TurnFailed("timed_out", "too slow")
    async with open_journal(url) as journal:
        kept = [f async for batch in journal.read() for _, f in batch.facts()]
    assert inspect_stream(kept) == []
    fixed, failed = read_trials(kept)
    assert (fixed.status, fixed.dataset, fixed.task) == ("completed", "small", "paging")
    assert (fixed.configuration, fixed.trajectory_refs) == ({"m": 1}, [ref])
    assert fixed.rewards == {"reward": 1.0, "style": 0.5}
    assert (fixed.total_tokens, fixed.cost_usd) == (12, 0.5)
    assert (failed.status, failed.failure_category) == ("failed", "timed_out")
    assert (failed.total_tokens, failed.trajectory_refs) == (0, [])

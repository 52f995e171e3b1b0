"""`factwire benchmark`: trials listed and compared on the command line."""

from pathlib import Path

import msgspec
import pytest

from factwire.evidence.benchmark_trials import (
    BenchmarkComparison,
    TrialRecord,
    compare_trials,
    read_trials,
)
from tests.cli.cli_commands import Factwire
from tests.cli.journal_files import make
from tests.evidence.compared_runs import STREAMS, stream

TRIALS = STREAMS / "benchmark_trials.ndjson"


def better(factwire: Factwire) -> Path:
    """The same benchmark with another model, a better reward, and one task less."""
    text = TRIALS.read_text("utf-8").replace("large-2", "large-3").replace("0.75", "1.0")
    kept = [line for line in text.splitlines() if "trial_2" not in line]
    return factwire.file("\n".join(kept), "better.ndjson")


@pytest.mark.requirement("cli.benchmark.trials")
def test_trials_are_listed(factwire: Factwire):
    done = factwire("benchmark", "trials", TRIALS)
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows == [
        ["dataset", "task", "reward", "time", "cost", "trajectory"],
        ["✓", "bug-fixes-small", "off-by-one", "0.75", "1", "s", "trace:trial-1"],
        ["✗", "bug-fixes-small", "race", "timeout", "1", "s"],
    ]
    listed = msgspec.json.decode(
        factwire("benchmark", "trials", TRIALS, "--json").out, type=list[TrialRecord]
    )
    assert listed == read_trials(stream("benchmark_trials"))


@pytest.mark.requirement("cli.benchmark.trials")
def test_trials_of_all_threads_of_a_journal_are_listed_or_of_one(factwire: Factwire):
    one = stream("benchmark_trials")
    other = [
        msgspec.structs.replace(
            fact,
            id=f"other-{fact.id}",
            thread_id="other",
            payload={**fact.payload, **({"trialId": "x"} if "trialId" in fact.payload else {})},
        )
        for fact in one[:5]
    ]
    url = f"sqlite:{make(factwire.folder / 'j.db', [*one, *other])}"

    def ids(where: str) -> list[str]:
        done = factwire("benchmark", "trials", where, "--json")
        return [each.trial_id for each in msgspec.json.decode(done.out, type=list[TrialRecord])]

    assert ids(url) == ["trial_1", "trial_2", "x"]
    assert ids(f"{url}#other") == ["x"]


@pytest.mark.requirement("cli.benchmark.trials")
@pytest.mark.requirement("cli.benchmark.compare")
def test_trials_come_whole_out_of_an_evidence_pack(factwire: Factwire):
    pack = factwire.folder / "trials.factpack.zip"
    options = ("--facts", TRIALS, "--output", pack, "--unsigned")
    assert factwire("evidence", "export", *options).code == 0
    listed = factwire("benchmark", "trials", pack, "--json")
    assert listed.out == factwire("benchmark", "trials", TRIALS, "--json").out
    assert factwire("benchmark", "compare", pack, TRIALS).code == 0


@pytest.mark.requirement("cli.benchmark.trials")
def test_a_run_without_trials_is_noted(factwire: Factwire):
    done = factwire("benchmark", "trials", STREAMS / "text_turn.ndjson", "--json")
    assert (done.code, done.out) == (0, "[]\n")
    assert "contains no trials" in done.err


@pytest.mark.requirement("cli.benchmark.trials")
@pytest.mark.requirement("cli.benchmark.compare")
@pytest.mark.parametrize("reward", ["nan", "inf", "-inf"])
def test_a_reward_to_solve_at_is_a_number(factwire: Factwire, reward: str):
    for sides in (("trials", TRIALS), ("compare", TRIALS, TRIALS)):
        done = factwire("benchmark", *sides, f"--solved-at={reward}")
        assert (done.code, done.out, f"got {reward}" in done.err) == (2, "", True), done


@pytest.mark.requirement("cli.benchmark.compare")
def test_two_benchmarks_are_compared_for_people(factwire: Factwire):
    path = better(factwire)
    done = factwire("benchmark", "compare", TRIALS, path)
    assert (done.code, done.err) == (1, "")
    words = [" ".join(line.split()) for line in done.out.splitlines()]
    # A long path is cut to fit the terminal.
    figures = [line.partition(" mean ")[2] for line in words[:2]]
    assert figures == [
        "reward 0.75 1 of 2 trials rewarded · 0 solved · 1 failed · 2 s",
        "reward 1 1 of 1 trial rewarded · 1 solved · 1 s",
    ]
    assert [line[:2] for line in words[:2]] == ["A ", "B "]
    assert words[2:] == [
        "different B's reward is +0.25 on 1 task tried by both",
        "configuration model: large-2 → large-3",
        "",
        "task reward change solved time cost",
        "≠ off-by-one 0.75 → 1 +0.25 0/1 → 1/1 1 s now solved",
        "≠ race none 0/1 → unknown 1 s → unknown only in A",
        "only in A: bug-fixes-small/race",
    ]


@pytest.mark.requirement("cli.benchmark.compare")
def test_the_comparison_is_one_json_document_and_its_verdict_the_exit_code(factwire: Factwire):
    done = factwire(
        "benchmark", "compare", TRIALS, better(factwire), "--json", "--solved-at", "0.5"
    )
    found = msgspec.json.decode(done.out, type=BenchmarkComparison)
    assert (done.code, found.same, found.a.solved) == (1, False, 1)
    same = factwire("benchmark", "compare", TRIALS, TRIALS, "--json")
    own = read_trials(stream("benchmark_trials"))
    assert same.code == 0
    assert msgspec.json.decode(same.out, type=BenchmarkComparison) == compare_trials(own, own)
    assert factwire("benchmark", "compare", TRIALS, TRIALS).out.splitlines()[2] == "same"
    assert factwire("benchmark", "compare", TRIALS, "gone.ndjson").code == 2


@pytest.mark.requirement("cli.benchmark.record")
def test_the_result_is_recorded_as_evidence_on_a_thread(factwire: Factwire):
    place = f"sqlite:{factwire.folder / 'bench.db'}#weekly"
    done = factwire("benchmark", "compare", TRIALS, better(factwire), "--json", "--record", place)
    assert done.code == 1
    assert "on thread weekly" in done.err
    shown = factwire("project", factwire.folder / "bench.db", "--json")
    [item] = msgspec.json.decode(shown.out)["evidence"]["items"].values()
    assert (item["kind"], item["title"]) == (
        "benchmark",
        "better.ndjson against benchmark_trials.ndjson",
    )
    assert item["summary"] == "B's reward is +0.25 on 1 task."
    refusal = factwire("benchmark", "compare", TRIALS, TRIALS, "--record", "bench.db")
    assert (refusal.code, refusal.out) == (2, "")
    assert "expected JOURNAL#THREAD" in refusal.err

"""What comparing two runs, and the trials of two benchmarks, promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_RUNS: Final = requirements(
    "design.md; facts.md §4",
    {
        "comparison.volatile": "Ids and times are no difference, wherever they stand.",
        "comparison.planted": "Every single change is found, and nothing else.",
        "comparison.turns": "A turn that is new, missing or reworded shifts no other.",
        "comparison.texts": "A long text is shown by the lines that differ.",
        "comparison.mirrored": "Exchanging the sides exchanges the differences and nothing else.",
        "comparison.order": "Repeats, order of arrival and other threads change nothing.",
        "comparison.figures": "Time, tokens and cost are told; time decides nothing.",
        "comparison.narrowed": "A comparison is narrowed to aspects or to a turn.",
        "comparison.bounded": "The work grows with the runs, and a diff holds bounded text.",
        "comparison.contract": "A comparison has a schema, and is read back as it was written.",
    },
)

_TRIALS: Final = requirements(
    "facts.md §2 Runtime classes",
    {
        "comparison.trials.view": "A trial has dataset, task, configuration, rewards, refs, "
        "time and cost as facts say.",
        "comparison.trials.cost": "Cost belongs to the trial that is named or alone open.",
        "comparison.trials.paired": "Trials are paired by task; flips and missing ones are named.",
        "comparison.trials.means": "Means are over recorded rewards, with their number.",
        "runtime.recording.trial": "A trial is recorded as started, rewarded and ended once.",
    },
)

_COMMANDS: Final = requirements(
    "design.md; facts.md §4",
    {
        "cli.diff.view": "Which turns differ is seen at a glance, then how.",
        "cli.diff.json": "With --json the whole comparison is printed, and nothing else.",
        "cli.diff.exit-codes": "The same is 0, different is 1, what cannot be compared is 2.",
        "cli.diff.sides": "A side is a file, a pack, standard input, a journal or a thread of it.",
        "cli.diff.filters": "Aspects and turns are chosen; what there is not is refused.",
        "cli.diff.harmless": "Nothing in a fact steers the terminal.",
        "cli.benchmark.trials": "Trials of all threads are listed, or of one.",
        "cli.benchmark.compare": "Two benchmarks are compared for people and as JSON.",
        "cli.benchmark.record": "The result is recorded as evidence where that is asked for.",
    },
)

COMPARISON_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_RUNS, *_TRIALS, *_COMMANDS)

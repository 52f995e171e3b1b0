"""Comparison: two runs side by side, and the trials of a benchmark.

Pure throughout: facts in, data out. No input or output, no clock.
"""

from factwire.evidence.comparison.accounts import Account, Accountant, account_of
from factwire.evidence.comparison.benchmarks import (
    BENCHMARK_COMPARISON_VERSION,
    SOLVED_AT,
    BenchmarkComparison,
    TaskComparison,
    TrialSums,
    compare_trials,
)
from factwire.evidence.comparison.comparing import compare
from factwire.evidence.comparison.comparison import (
    ASPECTS,
    COMPARISON_VERSION,
    Aspect,
    Change,
    Comparison,
    Difference,
    Figures,
    RunSide,
    TextChange,
    TextLine,
    TurnComparison,
    TurnSide,
    narrowed,
)
from factwire.evidence.comparison.trials import Trial, trials

__all__ = [
    "ASPECTS",
    "BENCHMARK_COMPARISON_VERSION",
    "COMPARISON_VERSION",
    "SOLVED_AT",
    "Account",
    "Accountant",
    "Aspect",
    "BenchmarkComparison",
    "Change",
    "Comparison",
    "Difference",
    "Figures",
    "RunSide",
    "TaskComparison",
    "TextChange",
    "TextLine",
    "Trial",
    "TrialSums",
    "TurnComparison",
    "TurnSide",
    "account_of",
    "compare",
    "compare_trials",
    "narrowed",
    "trials",
]

"""How benchmarks measure and report: medians of interleaved rounds, and ratios between them.

The machine is noisy, so contenders take turns within each round and only ratios mean something.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping

import msgspec
from rich.console import Console
from rich.table import Table


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report; `ratio` is against `baseline`, `goal` is what it should reach."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    baseline: str = ""
    goal: str = ""


def rates(contenders: Mapping[str, Callable[[], int]], *, rounds: int = 5) -> dict[str, float]:
    """Items per second of each contender (which answers how many it did), as a median."""
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            gc.collect()
            start = time.perf_counter()
            done = run()
            seen[name].append(done / (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in seen.items()}


def show(title: str, rows: list[Row]) -> None:
    """Print one group of results."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("what", "value", "unit", "ratio", "against", "goal"):
        table.add_column(column, justify="right" if column in ("value", "ratio") else "left")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        table.add_row(row.name, f"{row.value:,.6g}", row.unit, ratio, row.baseline, row.goal)
    Console(width=160).print(table)

"""Progress of long work on a journal, on standard error and for people only."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from factwire.cli.failures import errors

Advance = Callable[[int], None]


@contextmanager
def progress(doing: str, total: int | None = None) -> Generator[Advance]:
    """A bar over `total` facts, or one that only shows that work goes on; call to advance it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = [TextColumn("{task.description}"), BarColumn()]
    counted = [] if total is None else [MofNCompleteColumn()]
    with Progress(*columns, *counted, TimeElapsedColumn(), console=errors, transient=True) as drawn:
        task = drawn.add_task(doing, total=total)
        yield lambda facts: drawn.advance(task, facts)

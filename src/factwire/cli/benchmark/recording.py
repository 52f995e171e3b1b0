"""Recording that two benchmarks were compared, as evidence on a thread.

The fact holds the sums of both sides and no more, so that it stays small however many trials there
were; who has the facts of the trials can compare them again.
"""

from pathlib import PurePath
from typing import Final

import msgspec

from factwire.cli.failures import CliError
from factwire.cli.journal.access import journal_url
from factwire.cli.recording import note
from factwire.cli.terminal_text import counted
from factwire.evidence.comparison import BenchmarkComparison

_TOLD: Final = ("solvedAt", "a", "b", "configuration", "paired", "pairedDelta")


async def recorded(place: str, comparison: BenchmarkComparison, names: tuple[str, str]) -> None:
    """Write the result to `JOURNAL#THREAD`."""
    from factwire.runtime.recording import Recorder

    where, _, thread = place.rpartition("#")
    if not where or not thread:
        raise CliError("expected JOURNAL#THREAD to record on, such as sqlite:bench.db#weekly")
    a, b = (PurePath(name).name for name in names)
    told = msgspec.to_builtins(comparison)
    result = {name: told[name] for name in _TOLD if told.get(name) is not None}
    async with Recorder(journal_url(where), thread_id=thread, agent_id="factwire") as recorder:
        key = recorder.comparison(f"{b} against {a}", summary=_summary(comparison), result=result)
    note(f"recorded as {key} on thread {thread}")


def _summary(comparison: BenchmarkComparison) -> str:
    if comparison.paired_delta is None:
        return "No task has a reward on both sides."
    return f"B's reward is {comparison.paired_delta:+.3g} on {counted(comparison.paired, 'task')}."

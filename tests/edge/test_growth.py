"""R19: an Edge starts, answers and stays as it is, however long its history."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import httpx
import msgspec
import psutil
import pytest

from bench.workload import events
from factwire.edge.records import read_records
from factwire.facts import Fact, decode_fact
from factwire.journal import Journal, open_journal
from factwire.runtime import thread_states
from factwire.runtime.recovery import WaitingTurns
from factwire.runtime.thread_states import JournalFold
from tests.edge.edge_process import HEADERS, EdgeProcess
from tests.trials import TRIAL_SECONDS, count_trials

MOST = 1.3
STARTS = 5
BATCH = 5_000
_WHOLE = ("turn.submitted", "turn.started", "model.requested", "model.completed", "turn.completed")


class History(msgspec.Struct, frozen=True):
    """So many facts in so many threads."""

    facts: int
    threads: int


SMALL = History(10_000, 100)
LATEST = History(5_000, 100)
"""What came after everything was saved. A start reads it again, however much came before, so it is
the same in all histories.
"""

GROWTH: dict[str, tuple[History, History]] = {
    "facts": (SMALL, History(count_trials(full=10_000_000, share=100_000), 100)),
    "threads": (
        SMALL,
        History(
            count_trials(full=1_000_000, share=50_000), count_trials(full=100_000, share=2_500)
        ),
    ),
}


def _list_turn() -> list[Fact]:
    """A turn that is over, with one fact of each class."""
    first = {event["eventClass"]: event for event in reversed(events(200))}
    return [decode_fact(msgspec.json.encode(first[name])) for name in _WHOLE]


def _generate_facts(history: History, kind: str) -> Iterator[Fact]:
    """Whole turns, one thread after the other."""
    turn = _list_turn()
    turns = history.facts // len(turn) // history.threads
    for thread in range(history.threads):
        for number in range(turns):
            name = f"{kind}-{thread}-{number}"
            for at, fact in enumerate(turn):
                yield msgspec.structs.replace(
                    fact,
                    id=f"evt_{name}-{at}",
                    thread_id=f"thr_{kind}-{thread}",
                    turn_id=f"trn_{name}",
                    sequence=number * len(turn) + at + 1,
                )


async def _append_all(journal: Journal, facts: Iterator[Fact]) -> None:
    while batch := list(islice(facts, BATCH)):
        await journal.append(batch)


async def _save_all(journal: Journal, folder: Path) -> None:
    """What an Edge saves while facts come in, up to the last one."""
    records, _ = await read_records(journal, folder)
    records.database.close()
    with patch.object(thread_states, "FOLD_SAVE_FACTS", 1):
        await JournalFold(journal, "queues", WaitingTurns.CLASSES, WaitingTurns()).refresh()


async def _write_history(folder: Path, history: History) -> None:
    (folder / "data").mkdir(parents=True, mode=0o700)
    async with open_journal(f"sqlite:{folder}/journal.db") as journal:
        await _append_all(journal, _generate_facts(history, "old"))
        await _save_all(journal, folder / "data")
        await _append_all(journal, _generate_facts(LATEST, "new"))


class Cost(msgspec.Struct, frozen=True):
    """What an Edge needed to have answered its first page: processor seconds, and memory then."""

    seconds: float
    memory: int


def _measure_start(folder: Path) -> Cost:
    edge = EdgeProcess.start(folder)
    try:
        with httpx.Client(base_url=edge.url, headers=HEADERS, trust_env=False) as http:
            pages = [http.get(f"/v1/{name}") for name in ("threads", "runs", "approvals")]
        assert [page.status_code for page in pages] == [200, 200, 200]
        assert len(pages[0].json()["items"]) == 50
        process = psutil.Process(edge.pid)
        times = process.cpu_times()
        return Cost(times.user + times.system, process.memory_info().rss)
    finally:
        # As after a crash: nothing is saved on the way out.
        edge.kill()
        edge.wait()


@pytest.mark.fault
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("edge.start.flat")
@pytest.mark.parametrize("grows", GROWTH)
def test_start_first_page_and_memory_do_not_grow_with_history(tmp_path: Path, grows: str):
    folders = [tmp_path / "small", tmp_path / "large"]
    for folder, history in zip(folders, GROWTH[grows], strict=True):
        asyncio.run(_write_history(folder, history))
    # Processor time, the least of several starts in turns: another program may be busy.
    costs = [[_measure_start(folder) for folder in folders] for _ in range(STARTS)]
    small, large = zip(*costs, strict=True)
    assert min(cost.memory for cost in large) <= MOST * min(cost.memory for cost in small)
    assert min(cost.seconds for cost in large) <= MOST * min(cost.seconds for cost in small)

"""A long thread is exported and verified in the memory of a short one."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from factwire.facts import Fact
from factwire.journal import open_journal
from tests.projection.fact_maker import FactMaker

BOUND = 30_000
"""Kilobytes between a short and a long thread."""

MEASURED = """
import asyncio, pathlib, re, sys
from factwire.evidence import ExportOptions, export_journal, open_pack, pack_digest, verify_pack
from factwire.journal import open_journal

if sys.argv[3] == "unbounded":
    pack_digest.RUN_FACTS = pack_digest.LONGEST_RUN_FACTS = 10**9

def peak():
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", text)[1])

async def main(journal, pack):
    async with open_journal(f"sqlite:{journal}?mode=ro") as opened:
        with open(pack, "wb") as target:
            await export_journal(opened, target, threads=["thread"], options=ExportOptions())

asyncio.run(main(sys.argv[1], sys.argv[2]))
exported = peak()
assert verify_pack(pathlib.Path(sys.argv[2])).ok
with open_pack(pathlib.Path(sys.argv[2])) as pack:
    print(exported, peak(), sum(1 for _ in pack.facts()))
"""


def turn(tell: FactMaker, number: int) -> list[Fact]:
    """A hundred facts: thirty tool calls, each with its arguments, and some text."""
    ids = {"turnId": f"u{number}"}
    calls = [{"toolCallId": f"c{number}-{call}", **ids} for call in range(30)]
    args = {"path": "src/report.py", "pattern": "some words to look for"}
    payload = {"messageId": f"m{number}", "delta": "some words ", **ids}
    return [
        tell("turn.started", **ids),
        *(tell("tool.started", toolName="search", args=args, **call) for call in calls),
        *(tell("tool.result", summary="found in many places", **call) for call in calls),
        *(tell("model.delta", **payload) for _ in range(38)),
        tell("turn.completed", **ids),
    ]


def write_journal(path: Path, facts: int) -> None:
    async def write() -> None:
        tell = FactMaker()
        async with open_journal(f"sqlite:{path}") as journal:
            for number in range(facts // 100):
                await journal.append(turn(tell, number))

    asyncio.run(write())


def growth(folder: Path, mode: str) -> list[int]:
    """Kilobytes that 50,000 facts take more than 5,000: to export, and to verify as well."""
    peaks: list[list[int]] = []
    for facts in (5_000, 50_000):
        journal = folder / f"{facts}.db"
        if not journal.exists():
            write_journal(journal, facts)
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, journal, folder / f"{facts}.zip", mode],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        *found, count = map(int, done.stdout.split())
        assert count == facts
        peaks.append(found)
    return [large - small for small, large in zip(*peaks, strict=True)]


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("evidence.constant-memory")
def test_ten_times_the_facts_take_no_more_memory(tmp_path: Path):
    # Caches fill up to their bounds between the two.
    bounded = growth(tmp_path, "bounded")
    assert max(bounded) < BOUND, bounded
    # The bite: one projection of the whole thread goes past that.
    assert max(growth(tmp_path, "unbounded")) > BOUND

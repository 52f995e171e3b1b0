"""A pack of a long thread against a plain export of the same journal, each a process of its own.

Both verify the chain first and write every fact. A pack also hashes blocks, compresses, and derives
the summary; its memory must not grow with the thread.
"""

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.measure import Row
from bench.workload import Event, events
from factwire.facts import decode_fact
from factwire.journal import open_journal

_SHORT, _LONG = 100_000, 1_000_000
_PIECE = 20_000
_BATCH = 500

_MEASURED = """
import atexit, pathlib, re, sys
from factwire.cli import main
status = pathlib.Path("/proc/self/status")
peak = lambda: re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text())[1]
atexit.register(lambda: print("peak", peak(), file=sys.stderr))
main()
"""


def rows() -> list[Row]:
    """All rows of the group."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journals = {count: folder / f"{count}.db" for count in (_SHORT, _LONG)}
        for count, path in journals.items():
            asyncio.run(write_journal(path, count))
        plain, _ = _run("journal", "export", journals[_LONG], folder / "plain")
        pack = folder / "pack.factpack.zip"
        options = ("--all", "--unsigned", "--journal")
        _, small = _run("evidence", "export", *options, journals[_SHORT], "--output", pack)
        packed, large = _run("evidence", "export", *options, journals[_LONG], "--output", pack)
        verified, checking = _run("evidence", "verify", pack)
        size = pack.stat().st_size / (folder / "plain").stat().st_size
    return [
        Row(name=f"journal export of {_LONG:,} facts", value=_LONG / plain, unit="facts/s"),
        Row(
            name=f"evidence export of {_LONG:,} facts",
            value=_LONG / packed,
            unit="facts/s",
            ratio=packed / plain,
            baseline="its time / journal export",
            goal="≤ 10",
        ),
        Row(
            name="verify that pack, deriving all of it again",
            value=_LONG / verified,
            unit="facts/s",
            ratio=verified / plain,
            baseline="its time / journal export",
            goal="≤ 10",
        ),
        Row(
            name="memory of that export",
            value=large / 1024,
            unit="MiB",
            ratio=large / small,
            baseline=f"at {_SHORT:,} facts",
            goal="flat",
        ),
        Row(
            name="memory of that verification",
            value=checking / 1024,
            unit="MiB",
            ratio=checking / large,
            baseline="the export's",
            goal="flat",
        ),
        Row(
            name="size of the pack",
            value=100 * size,
            unit="%",
            ratio=size,
            baseline="the plain export",
            goal="< 1",
        ),
    ]


def _run(*arguments: str | Path) -> tuple[float, int]:
    """Seconds, and kilobytes at the highest."""
    start = time.perf_counter()
    command = [sys.executable, "-c", _MEASURED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    peak = re.search(r"peak (\d+)", done.stderr)
    assert peak is not None
    return seconds, int(peak[1])


async def write_journal(path: Path, count: int) -> None:
    """A journal of so many facts, in commits of a few hundred."""
    async with open_journal(f"sqlite:{path}") as journal:
        for first in range(0, count, _PIECE):
            piece = [_shift_sequence(event, first) for event in events(_PIECE, seed=first)]
            facts = [decode_fact(msgspec.json.encode(event)) for event in piece]
            for at in range(0, _PIECE, _BATCH):
                await journal.append(facts[at : at + _BATCH])


def _shift_sequence(event: Event, by: int) -> Event:
    return {**event, "sequence": event["sequence"] + by}

"""The runtime against the journal alone: what gates, redaction and state cost a fact.

One agent streams a long answer as fast as it can. The baseline appends the same facts to the same
kind of journal in batches as large as the runtime may gather. Twice: for a short and for a long
turn, because the cost of a fact must not grow with the turn.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.measure import Row
from factwire.facts import CapabilityManifest, Fact
from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.projection import ThreadReadModel
from factwire.runtime import (
    CancelTurn,
    FactScope,
    Mint,
    ReadThread,
    RespondAction,
    Runtime,
    StartTurn,
)

_SHORT, _LONG = 10_000, 100_000
_BATCH = 4_096
_ROUNDS = 3


class _Streaming:
    """An agent that says one word over and over."""

    manifest = CapabilityManifest(agent_id="streaming", title="Streaming")

    def __init__(self, words: int) -> None:
        self._words = words

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        mint, scope = turn.host.mint, turn.host.scope
        for _ in range(self._words):
            yield mint.fact(scope, "model.delta", {"messageId": "m", "delta": "word "})
        yield mint.fact(scope, "model.completed", {"messageId": "m"})
        yield mint.fact(scope, "turn.completed")

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None: ...

    async def respond_action(self, respond: RespondAction) -> Fact | None: ...

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None: ...


def rows() -> list[Row]:
    """All rows of the group."""
    found: dict[str, list[float]] = {"short": [], "long": [], "straight": []}
    for _ in range(_ROUNDS):
        found["straight"].append(asyncio.run(_straight(_LONG)))
        found["short"].append(asyncio.run(_run(_SHORT)))
        found["long"].append(asyncio.run(_run(_LONG)))
    rate = {name: sorted(values)[len(values) // 2] for name, values in found.items()}
    return [
        Row(name="facts minted and appended straight", value=rate["straight"], unit="facts/s"),
        Row(
            name=f"a turn of {_LONG:,} deltas, end to end",
            value=rate["long"],
            unit="facts/s",
            ratio=rate["straight"] / rate["long"],
            baseline="its time / straight",
            goal="≤ 2",
        ),
        Row(
            name=f"cost of a fact at {_LONG:,} deltas",
            value=1e6 / rate["long"],
            unit="µs",
            ratio=rate["short"] / rate["long"],
            baseline=f"at {_SHORT:,}",
            goal="flat",
        ),
    ]


async def _run(words: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with open_journal(f"sqlite:{folder / 'journal.db'}") as journal:
            agents = {"agent": _Streaming(words)}
            async with Runtime(journal, MemoryBlobs(), agents, workspace=folder) as runtime:
                start = time.perf_counter()
                await runtime.submit("thread", "agent", "go", turn_id="turn")
                status = await (await runtime.thread("thread")).wait_for("turn")
                assert status == "completed"
                return words / (time.perf_counter() - start)


async def _straight(words: int) -> float:
    mint, scope = Mint("bench"), FactScope(session_id="s", thread_id="t", turn_id="u", run_id="r")
    with tempfile.TemporaryDirectory() as name:
        async with open_journal(f"sqlite:{Path(name) / 'journal.db'}") as journal:
            start = time.perf_counter()
            for first in range(0, words, _BATCH):
                batch = range(first, min(first + _BATCH, words))
                payload = {"messageId": "m", "delta": "word "}
                await journal.append([mint.fact(scope, "model.delta", payload) for _ in batch])
            return words / (time.perf_counter() - start)

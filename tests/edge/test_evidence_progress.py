"""How far a pack is, seen from outside while it is being made."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path

import pytest

from factwire.edge.edge_context import ExportProgress, Exports
from factwire.edge.limits import EXPORTS_FOLLOWED
from factwire.evidence import pack_export
from factwire.evidence.pack_export import Stored, read_selected
from factwire.journal import Journal
from tests.edge.edges import WAIT_SECONDS, running_edge

pytestmark = pytest.mark.asyncio


class Gate:
    """Holds the exporter up before every fact but the first, until it is let on."""

    def __init__(self) -> None:
        self.held = asyncio.Queue[int]()
        self.on = asyncio.Semaphore(0)

    async def read_gated(
        self, journal: Journal, threads: Sequence[str] | None, last: int
    ) -> AsyncGenerator[Stored]:
        count = 0
        async with aclosing(read_selected(journal, threads, last)) as facts:
            async for stored in facts:
                if count:
                    self.held.put_nowait(count)
                    await asyncio.wait_for(self.on.acquire(), WAIT_SECONDS)
                count += 1
                yield stored


@pytest.mark.requirement("edge.rest.evidence.progress")
async def test_progress_rises_while_a_pack_is_made_and_is_forgotten_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate()
    monkeypatch.setattr(pack_export, "PROGRESS_FACTS", 1)
    monkeypatch.setattr(pack_export, "read_selected", gate.read_gated)
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        thread = run["threadId"]
        row = await edge.machine.journal.thread(thread)
        assert row is not None
        place = f"/v1/threads/{thread}/evidence-progress"
        assert await edge.get(place) == {"state": "idle"}
        making = asyncio.create_task(edge.post("/v1/evidence", {"threadId": thread}, status=201))
        for facts in range(1, row.fact_count):
            assert await asyncio.wait_for(gate.held.get(), WAIT_SECONDS) == facts
            seen = await edge.get(place)
            assert seen == {"state": "making", "facts": facts, "total": row.fact_count}
            gate.on.release()
        await asyncio.wait_for(making, WAIT_SECONDS)
        assert await edge.get(place) == {"state": "idle"}


@pytest.mark.requirement("edge.rest.evidence.progress")
async def test_what_is_not_followed_is_unknown_and_not_idle():
    exports = Exports()
    with ExitStack() as stack:
        for number in range(EXPORTS_FOLLOWED):
            stack.enter_context(exports.track(f"thread {number}", 1))
        assert exports.progress_of("another") == ExportProgress(state="idle")
        with exports.track("another", 1):
            assert exports.progress_of("another") == ExportProgress(state="unknown")
            assert exports.progress_of("thread 0") == ExportProgress(state="making", total=1)
        assert exports.progress_of("another") == ExportProgress(state="idle")
    assert exports.progress_of("thread 0") == ExportProgress(state="idle")


async def test_a_total_is_never_less_than_what_is_in_and_the_newest_pack_is_told():
    exports = Exports()
    with exports.track("t", 9), exports.track("t", 2) as newest:
        newest.advance(3)
        assert exports.progress_of("t") == ExportProgress(state="making", facts=3, total=3)
    with exports.track("t", None) as export:
        export.advance(3)
        assert exports.progress_of("t") == ExportProgress(state="making", facts=3)

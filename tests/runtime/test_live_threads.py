"""A thread whose turn cannot come to its end: whoever waits hears of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import Fact
from factwire.journal import JournalUnwritable
from factwire.runtime import StartTurn
from tests.runtime.agents import WAIT, running, said


@pytest.mark.asyncio
async def test_a_journal_that_takes_no_more_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    going = asyncio.Event()

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        await going.wait()
        yield said(turn.host, "turn.completed")

    async def full(*_: Any, **__: Any) -> None:
        raise JournalUnwritable("the disk is full")

    async with running(script, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "x", turn_id="turn")
        thread = await runtime.thread("thread")
        monkeypatch.setattr(runtime.journal, "append", full)
        going.set()
        async with asyncio.timeout(WAIT):
            with pytest.raises(JournalUnwritable):
                await thread.wait_for("turn")
            with pytest.raises(JournalUnwritable):
                await thread.wait_idle()

"""The journal in memory: what can only be tried where its insides are at hand."""

from typing import Any

import msgspec
import pytest

from factwire.journal import Damage
from factwire.journal.memory_journal import MemoryJournal
from tests.journal.contract import make_fact


@pytest.mark.asyncio
@pytest.mark.requirement("journal.verify.snapshots")
async def test_a_snapshot_that_stands_on_another_chain_is_named():
    insides: Any = MemoryJournal()
    async with insides as journal:
        appended = await journal.append([make_fact(1), make_fact(2)])
        saved = await journal.save_snapshot("t", appended.cursor, b"state")
        assert (await journal.verify()).ok
        insides._snapshots["t", saved.kind, 2] = msgspec.structs.replace(saved, anchor=bytes(32))
        reason = "the projection snapshot of 't' at 2 does not belong to this chain"
        assert (await journal.verify()).damage == Damage(first=2, last=2, reason=reason)

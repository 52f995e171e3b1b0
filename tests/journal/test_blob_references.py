"""No ref of a journal is missed, wherever it stands and however it is spelled."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts.fact import Fact
from factwire.facts.refs import REF_KINDS, content_ref
from factwire.facts.spill import plan_spill
from factwire.journal import RetentionPolicy
from factwire.journal.blobs import MemoryBlobs, find_referenced_blobs
from factwire.journal.blobs.blob_store import find_refs
from factwire.journal.memory_journal import MemoryJournal

REF = content_ref("output", b"content")
pytestmark = pytest.mark.requirement("journal.blobs.references")


def fact(number: int, **fields: Any) -> Fact:
    return Fact(
        id=f"f{number}",
        kind="tool",
        status="completed",
        title="t",
        created_at="2026-06-10T09:00:00Z",
        schema_version="v",
        runtime_id="r",
        event_class="tool.result",
        thread_id=fields.pop("thread_id", "t1"),
        **fields,
    )


async def list_referenced(journal: MemoryJournal) -> list[str]:
    return [ref async for ref in find_referenced_blobs(journal)]


@pytest.mark.parametrize(
    "fields",
    [
        {"ref_ids": (REF,)},
        {"artifact_refs": ("asset:1", REF)},
        {"evidence_refs": (REF,)},
        {"payload": {"outputRef": {"ref": REF, "kind": "output", "bytes": 7}}},
        {"payload": {"deep": [{"er": {"screenshotRef": {"ref": REF}}}]}},
        {"payload": {"note": f"é\n\x07 see {REF}."}},
        {"payload": {"raw": msgspec.Raw(b'"' + REF.replace(":", "\\u003a").encode() + b'"')}},
        {"extra": {"vendorRef": REF}},
    ],
)
@pytest.mark.asyncio
async def test_a_ref_is_found_wherever_it_stands(fields: dict[str, Any]):
    async with MemoryJournal() as journal:
        await journal.append([fact(1), fact(2, **fields), fact(3)])
        assert set(await list_referenced(journal)) == {REF}


@given(
    st.sampled_from(REF_KINDS),
    st.binary(min_size=1),
    st.lists(st.integers(0, 200), max_size=20),
)
def test_a_ref_is_found_in_any_json_spelling(kind: Any, content: bytes, escaped: list[int]):
    ref = content_ref(kind, content)
    spelled = "".join(
        f"\\u{ord(letter):04x}" if at in escaped else letter for at, letter in enumerate(ref)
    )
    assert ref in find_refs(f'{{"refIds":["{spelled}"]}}\n'.encode())


@pytest.mark.asyncio
async def test_a_spilled_value_is_still_referenced_when_only_a_snapshot_speaks_of_it():
    blobs = MemoryBlobs()
    spill = plan_spill(fact(1, payload={"output": "x" * 100_000}))
    assert spill
    for blob in spill.blobs:
        await blobs.put(blob.content, kind=blob.ref.kind)
    async with MemoryJournal() as journal:
        await journal.append([spill.fact])
        others = [fact(number, thread_id=f"t{number}") for number in range(2, 1300)]
        cursor = (await journal.append(others)).cursor
        await journal.save_snapshot("t1", cursor, b'{"ref":"%b"}' % spill.fact.ref_ids[0].encode())
        await journal.retain(RetentionPolicy(keep_facts=5))
        assert await list_referenced(journal) == [spill.fact.ref_ids[0]]
        done = await blobs.collect_garbage(lambda: find_referenced_blobs(journal), grace=0)
        assert done.removed == ()


@pytest.mark.asyncio
async def test_a_thread_that_moves_while_threads_are_listed_is_not_passed_over():
    class Moving(MemoryJournal):
        """Whenever a page was read, the thread furthest behind gets a fact."""

        async def threads(self, **wanted: Any) -> Any:
            page = await super().threads(**wanted)
            last = min(self._threads.values(), key=lambda record: record.last_seq)
            if self._head < 1700:
                await self.append([fact(10_000 + self._head, thread_id=last.thread_id)])
            return page

    async with Moving() as journal:
        facts = [fact(number, thread_id=f"t{number}") for number in range(1600)]
        cursor = (await journal.append(facts)).cursor
        for number in range(1600):
            ref = content_ref("raw", b"%d" % number)
            await journal.save_snapshot(f"t{number}", cursor, ref.encode())
        expected = {content_ref("raw", b"%d" % number) for number in range(1600)}
        assert set(await asyncio.wait_for(list_referenced(journal), 60)) == expected


def test_what_is_not_json_is_searched_as_it_is():
    assert list(find_refs(b"\x81\xa3ref \\u0000 " + REF.encode() + b"\xff")) == [REF]

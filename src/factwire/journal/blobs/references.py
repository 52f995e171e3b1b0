"""Every blob that a journal still speaks of, found in its bytes.

A ref counts wherever it stands: in `refIds`, `artifactRefs`, `evidenceRefs`, in a `…Ref` object of
a payload, or quoted in some text. Finding too many keeps a blob too long; finding too few would
lose one. Facts that retention removed live on in snapshots, so the newest of each thread counts.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import msgspec

from factwire.facts.refs import REF_KINDS
from factwire.journal.protocol import Journal

_REF: Final = re.compile(rb"(?:%b):sha256:[0-9a-f]{64}" % "|".join(REF_KINDS).encode())
_ESCAPE: Final = b"\\u00"
"""How JSON may spell a character of a ref otherwise, in text that was encoded by somebody else."""

_PAGE: Final = 500


async def referenced_blobs(
    journal: Journal, *, snapshots: Sequence[str] = ("projection",)
) -> AsyncIterator[str]:
    """The refs in a journal's facts and snapshots of these kinds, as often as they stand there."""
    async for stretch in journal.read():
        for ref in refs_in(stretch.data):
            yield ref
    async for data in _newest_snapshots(journal, snapshots):
        for ref in refs_in(data):
            yield ref


def refs_in(data: bytes) -> Iterator[str]:
    """The refs in lines of JSON, however they are escaped."""
    for match in _REF.finditer(data):
        yield match[0].decode()
    if _ESCAPE in data:
        for line in data.split(b"\n"):
            if _ESCAPE in line:
                yield from (match[0].decode() for match in _REF.finditer(_plainly(line)))


def _plainly(line: bytes) -> bytes:
    """The line without needless escapes; what is not JSON has been searched as it is."""
    try:
        return msgspec.json.encode(msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""


async def _newest_snapshots(journal: Journal, kinds: Sequence[str]) -> AsyncIterator[bytes]:
    seen: set[str] = set()
    async for thread in every_thread(journal):
        for kind in kinds if thread not in seen else ():
            snapshot = await journal.snapshot(thread, kind)
            if snapshot is not None:
                yield snapshot.data
        seen.add(thread)


async def every_thread(journal: Journal) -> AsyncIterator[str]:
    """Every thread, at least once.

    One that gets a fact meanwhile moves to the front of the catalogue, past the page being read;
    so whatever moved is listed again, until nothing did.
    """
    listed, head = 0, (await journal.head()).seq
    while listed < head:
        page = await journal.threads(limit=_PAGE)
        rows = list(page.threads)
        while page.after is not None and page.after.seq > listed:
            page = await journal.threads(after=page.after, limit=_PAGE)
            rows += page.threads
        for row in rows:
            yield row.thread_id
        listed, head = head, (await journal.head()).seq

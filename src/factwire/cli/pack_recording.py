"""A recording in an evidence pack: what is played has been checked against the pack's hashes."""

from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from factwire.cli.evidence.refusals import plainly
from factwire.cli.recording import Placed
from factwire.cli.threads import Family, Kinship
from factwire.facts import Fact

if TYPE_CHECKING:
    from factwire.evidence import Pack


@contextmanager
def opened_pack(path: str) -> "Generator[PackRecording]":
    """Open a pack; raises `CliError` for what is none, or was changed."""
    from factwire.evidence import open_pack

    with plainly(), open_pack(Path(path)) as pack:
        yield PackRecording(path, pack)


class PackRecording:
    """The facts of one pack, at the seqs of their journal or, from a file, at their sequences."""

    def __init__(self, name: str, pack: "Pack") -> None:
        self.name = name
        self.kept = pack.manifest.source == "journal"
        self.unit = "seq" if self.kept else "sequence"
        self._pack = pack

    async def kinship(self, thread: str | None) -> Kinship:
        del thread
        found = Kinship()
        for fact in self._pack.facts():
            found.note(fact)
        return found

    async def family(self, kinship: Kinship, thread: str | None) -> Family:
        return kinship.family(thread)

    async def facts(self, family: Family, at: int | None = None) -> AsyncIterator[Placed]:
        furthest: int | None = None
        for seq, fact in self._rows():
            if not family.has(fact):
                continue
            place = furthest if seq is None else seq
            if seq is None and fact.sequence is not None and family.is_main(fact):
                place = fact.sequence
                furthest = place if furthest is None else max(furthest, place)
            if at is None or place is None or place <= at:
                yield Placed(place, fact)

    def _rows(self) -> Iterator[tuple[int | None, Fact]]:
        if self.kept:
            return zip(self._pack.seqs(), self._pack.facts(), strict=True)
        return zip(repeat(None), self._pack.facts(), strict=False)

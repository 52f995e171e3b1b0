"""A journal of one's own as the place of observed facts, with its blobs beside it."""

import asyncio

from factwire.facts import Blob, Fact, Intake
from factwire.journal import AppendRefused, Journal, JournalError, open_journal
from factwire.journal.blobs import FileBlobs
from factwire.sources.observe.outbox import PrepareFact, SinkRefused, SinkUnavailable


class JournalSink:
    """Writes facts to one journal, in a loop that runs while it does."""

    def __init__(self, url: str) -> None:
        open_journal(url)  # Said now, and not by a thread, if it is no journal.
        self._url = url
        self._blobs = FileBlobs(blobs_folder(url))
        self._kept: list[Blob] = []
        self._runner = asyncio.Runner()
        self._journal: Journal | None = None

    def make_reader(self) -> PrepareFact:
        intake = Intake("collect", "facts")

        def read(fact: Fact) -> list[Fact]:
            taken = intake.feed(fact)
            self._kept += taken.blobs
            return [taken.fact, *taken.notes]

        return read

    def send(self, facts: list[Fact]) -> None:
        try:
            self._runner.run(self._append(facts))
        except AppendRefused as error:
            raise SinkRefused(str(error)) from error
        except (JournalError, OSError) as error:
            raise SinkUnavailable(str(error)) from error

    def close(self) -> None:
        if self._journal is not None:
            self._runner.run(self._journal.__aexit__(None, None, None))
        self._runner.close()

    async def _append(self, facts: list[Fact]) -> None:
        if self._journal is None:
            journal = open_journal(self._url)
            self._journal = await journal.__aenter__()
        while self._kept:
            await self._blobs.put(self._kept[0].content, kind=self._kept[0].ref.kind)
            self._kept.pop(0)
        await self._journal.append(facts)


def blobs_folder(url: str) -> str:
    """Blobs lie beside a journal that is a file, as a runtime would have it."""
    scheme, _, rest = url.partition(":")
    return f"{rest.partition('?')[0]}.blobs" if scheme == "sqlite" else ".factwire/blobs"

"""Where the facts of observed programs go: to a running Edge, or into a journal."""

import asyncio
from typing import Final

from factwire.client import Client, ClientError, EdgeProblem
from factwire.facts import Blob, Fact, Intake, Redactor
from factwire.journal import AppendRefused, Journal, JournalError, open_journal
from factwire.journal.blobs import FileBlobs
from factwire.sources.observe.outbox import PrepareFact, SinkRefused, SinkUnavailable

_BUSY: Final = 429
_SERVER: Final = 500
_SHOWN: Final = 1_000
"""Characters of an Edge's reasons that a log repeats."""


class EdgeSink:
    """Sends facts to one Edge."""

    def __init__(self, url: str, token: str | None) -> None:
        self._client = Client(url, token=token, retry_seconds=0)

    def make_reader(self) -> PrepareFact:
        redactor = Redactor()

        def read(fact: Fact) -> list[Fact]:
            redacted = redactor.feed(fact)
            note = redacted.note if redacted.findings else None
            return [redacted.fact] if note is None else [redacted.fact, note]

        return read

    def send(self, facts: list[Fact]) -> None:
        try:
            self._client.post_facts(facts)
        except EdgeProblem as problem:
            if problem.status == _BUSY or problem.status >= _SERVER:
                raise SinkUnavailable(str(problem)) from problem
            raise SinkRefused(
                f"{problem} {problem.members.get('issues', '')}"[:_SHOWN]
            ) from problem
        except ClientError as error:
            raise SinkUnavailable(str(error)) from error

    def close(self) -> None:
        self._client.close()


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

"""An Edge as the place of observed facts, by its own client; it spills what is big itself."""

from typing import Final

from factwire.client import Client, ClientError, EdgeProblem
from factwire.facts import Fact, Redactor
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

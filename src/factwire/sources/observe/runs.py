"""`ObservedRun`: one run of an SDK, seen from inside the program.

`tell` is called where the program works, so it only writes down what it sees and never raises;
what it means is worked out by the thread that sends. `told` has the ids of what was told, so that
what an SDK says in two ways is told once.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import msgspec

from factwire.runtime.minting import utc_now
from factwire.sources.live.sdk_failures import failed_line
from factwire.sources.observe.telling import ObservedTelling
from factwire.sources.observe.threads import within
from factwire.sources.source import Converter, source_of

if TYPE_CHECKING:
    from factwire.sources.observe.outbox import Outbox

P = ParamSpec("P")
T = TypeVar("T")

log: Final = logging.getLogger("factwire.observe")


def harmless(does: Callable[P, T]) -> Callable[P, T | None]:
    """What is wrong in here must not become the program's: it is logged, and that is all."""

    @wraps(does)
    def done(*args: P.args, **given: P.kwargs) -> T | None:
        try:
            return does(*args, **given)
        except Exception:
            log.exception("something that happened was not observed")
            return None

    return done


class ObservedRun:
    """A run and, where it is resumed in this process, those that go on with it."""

    def __init__(self, source: str, telling: ObservedTelling, outbox: "Outbox") -> None:
        self.source = source
        self.telling = telling
        self.told: set[str] = set()
        self.questions: list[str] = []
        self.dropped = 0
        self.has_begun = False
        self.is_over = False
        self._outbox = outbox
        self._converter: Converter | None = None

    @property
    def converter(self) -> Converter:
        """Made by the thread that sends."""
        if self._converter is None:
            self._converter = source_of(self.source).converter(self.telling)
        return self._converter

    @harmless
    def tell(self, line: dict[str, Any]) -> None:
        """Write down one thing that happened."""
        if not self.is_over:
            self._outbox.put(self, utc_now(), msgspec.json.encode(line))

    def end(self, line: dict[str, Any]) -> None:
        """The run is over; the line says how."""
        self.tell(line)
        self.leave()

    def leave(self) -> None:
        """Nothing more comes of this run, however it stands."""
        if not self.is_over:
            self.is_over = True
            self._outbox.end(self)

    def failed(self, error: BaseException) -> None:
        """The run raised, or was stopped."""
        if isinstance(error, Exception):
            self.end(failed_line(error))
        else:
            self.end({"type": "run.cancelled", "reason": type(error).__name__})

    @contextmanager
    def watched(self) -> Generator[None]:
        """What happens in here is a part of the run; what is raised ends it."""
        try:
            with within(self):
                yield
        except BaseException as error:
            self.failed(error)
            raise

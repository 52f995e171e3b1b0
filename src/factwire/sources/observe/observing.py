"""`observe`: facts of a program that runs its agents itself.

One line at its start; nothing else of it changes. It is never answered for, never waited for and
never broken: what cannot be sent is dropped and counted, what cannot be understood is logged.
"""

import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Self

from factwire.runtime.minting import new_id
from factwire.sources.observe import langgraph, openai_agents, pydantic_ai
from factwire.sources.observe.errors import AlreadyObserving, NoPlace, NothingToObserve
from factwire.sources.observe.limits import EXIT_SECONDS, WAITING_BYTES, WAITING_RUNS
from factwire.sources.observe.outbox import Outbox
from factwire.sources.observe.patches import Patches
from factwire.sources.observe.runs import ObservedRun
from factwire.sources.observe.sinks import Sink
from factwire.sources.observe.telling import ObservedTelling
from factwire.sources.observe.threads import current_run, named_thread

_SDKS: Final[dict[str, tuple[tuple[str, ...], Callable[["Observing", Patches], None]]]] = {
    "langgraph": (("langgraph",), langgraph.install),
    "openai-agents": (("openai-agents",), openai_agents.install),
    "pydantic-ai": (("pydantic-ai", "pydantic-ai-slim"), pydantic_ai.install),
}
"""Source and extra → the packages that bring it, and what observes it."""

_one_at_a_time = threading.Lock()


class Observing:
    """What `observe` returns: close it, use it with `with`, or leave it to the exit of the program.

    `thread` is the thread of runs that begin where the program names none.
    """

    def __init__(self, outbox: Outbox, thread: str | None) -> None:
        self._outbox = outbox
        self._thread = thread
        self._runtime_id = new_id("observed")
        self._open: dict[int, ObservedRun] = {}
        self._waiting: OrderedDict[Hashable, ObservedRun] = OrderedDict()
        self._lock = threading.Lock()
        self._patches = Patches()
        self.is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def flush(self, seconds: float = EXIT_SECONDS) -> bool:
        """Wait until all that happened so far is sent; whether it is."""
        return self._outbox.flush(seconds)

    def close(self, seconds: float = EXIT_SECONDS) -> bool:
        """Observe no more, and send what is left; whether all of it is sent."""
        with self._lock:
            if self.is_closed:
                return True
            self.is_closed = True
        atexit.unregister(self.close)
        self._patches.undo()
        for run in [*self._open.values(), *self._waiting.values()]:
            run.leave()
        sent = self._outbox.close(seconds)
        _one_at_a_time.release()
        return sent

    def install(self, names: Iterable[str]) -> None:
        for name in names:
            _SDKS[name][1](self, self._patches)

    # What those that observe an SDK use

    def run(self, source: str) -> ObservedRun | None:
        """A run that begins here; None when nothing is observed any more."""
        if self.is_closed:
            return None
        around = current_run()
        named = None if around else named_thread() or self._thread
        telling = ObservedTelling(
            source,
            thread_id=named or new_id("thr"),
            runtime_id=self._runtime_id,
            parent=around.telling.thread_id if around else None,
            shared=named is not None,
        )
        run = ObservedRun(source, telling, self._outbox)
        with self._lock:
            self._open = {key: each for key, each in self._open.items() if not each.is_over}
            self._open[id(run)] = run
        return run

    def wait(self, run: ObservedRun, keys: Iterable[Hashable]) -> None:
        """A run waits for a decision; one that goes on with it is known by any of these."""
        with self._lock:
            for key in keys:
                self._waiting[key] = run
            while len(self._waiting) > WAITING_RUNS:
                self._waiting.popitem(last=False)[1].leave()

    def resumed(self, keys: Iterable[Hashable]) -> ObservedRun | None:
        """The run that goes on with these."""
        with self._lock:
            found = [self._waiting.pop(key, None) for key in keys]
        return next((run for run in found if run is not None and not run.is_over), None)


def observe(
    *,
    edge: str | None = None,
    token: str | None = None,
    journal: str | None = None,
    thread: str | None = None,
    sdks: Iterable[str] | None = None,
    waiting_bytes: int = WAITING_BYTES,
) -> Observing:
    """Tell what agents in this process do, as facts, to an Edge or to a journal.

    `sdks` are those to observe, of `langgraph`, `openai-agents` and `pydantic-ai`; all that are
    installed, if none are named. Each run is a thread of its own, except in `with
    factwire.thread("…")`, or if `thread` names one for all.
    """
    wanted = _installed(sdks)
    sink = _sink(edge, token, journal)
    sink().close()  # Whatever is wrong with it is said here.
    if not _one_at_a_time.acquire(blocking=False):
        raise AlreadyObserving
    observing = Observing(Outbox(sink, waiting_bytes=waiting_bytes), thread)
    observing.install(wanted)
    atexit.register(observing.close)
    return observing


def _installed(names: Iterable[str] | None) -> list[str]:
    asked = list(_SDKS) if names is None else list(names)
    unknown = [name for name in asked if name not in _SDKS]
    if unknown:
        raise ValueError(f"expected SDKs of {', '.join(_SDKS)}, got {', '.join(unknown)}")
    found = [name for name in asked if any(map(_is_there, _SDKS[name][0]))]
    if not found or (names is not None and len(found) < len(asked)):
        raise NothingToObserve(name for name in asked if name not in found)
    return found


def _is_there(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _sink(edge: str | None, token: str | None, journal: str | None) -> Callable[[], Sink]:
    """What makes the place; each needs libraries of its own."""
    if edge is not None and journal is None:
        from factwire.sources.observe.edge_sink import EdgeSink  # noqa: PLC0415 - as said

        return partial(EdgeSink, edge, token)
    if journal is not None and edge is None:
        from factwire.sources.observe.journal_sink import JournalSink  # noqa: PLC0415 - as said

        return partial(JournalSink, journal)
    raise NoPlace("neither" if edge is None else "both")

"""`observe`: facts of a program that runs its agents itself.

One line at its start; nothing else of it changes. It is never answered for, never waited for
and never broken: what cannot be sent is dropped and counted, what cannot be understood is
logged. Why a program cannot be observed has a stable code:

ObserveError
├── NothingToObserve   no SDK that is known is installed, or none of this name
├── AlreadyObserving   this process is observed already
└── NoPlace            neither or both of an Edge and a journal were named
"""

import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Self

from factwire.runtime.configuration import load_redaction
from factwire.runtime.mint import new_id
from factwire.sources.kit.observed_run import (
    ObservedFactBuilder,
    ObservedRun,
    Patches,
    current_run,
    named_thread,
)
from factwire.sources.observe.outbox import (
    EXIT_SECONDS,
    WAITING_BYTES,
    WAITING_RUNS,
    FactSink,
    Outbox,
)
from factwire.sources.source_registry import OUTSIDE_AGENTS


class ObserveError(Exception):
    """The root; `code` never changes, the words may."""

    code = "observe_error"


class NothingToObserve(ObserveError):
    code = "nothing_to_observe"

    def __init__(self, extras: Iterable[str]) -> None:
        wanted = " or ".join(f"'factwire[{extra}]'" for extra in extras)
        super().__init__(f"no SDK that can be observed is installed; install {wanted}")


class AlreadyObserving(ObserveError):
    code = "already_observing"

    def __init__(self) -> None:
        super().__init__("this process is already being observed; close that observer first")


class NoPlace(ObserveError):
    code = "no_place"

    def __init__(self, choice: str) -> None:
        super().__init__(
            f"expected edge='http://…' or journal='sqlite:…' to send facts to, got {choice}"
        )


_OBSERVABLE: Final = {agent.name: agent for agent in OUTSIDE_AGENTS if agent.observe is not None}

_one_at_a_time = threading.Lock()


class Observer:
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
            run.abandon()
        sent = self._outbox.close(seconds)
        _one_at_a_time.release()
        return sent

    def install(self, names: Iterable[str]) -> None:
        for name in names:
            _load_install(name)(self, self._patches)

    # What those that observe an SDK use

    def begin_run(self, source: str) -> ObservedRun | None:
        """A run that begins here; None when nothing is observed any more."""
        if self.is_closed:
            return None
        around = current_run()
        named = None if around else named_thread() or self._thread
        builder = ObservedFactBuilder(
            source,
            thread_id=named or new_id("thr"),
            runtime_id=self._runtime_id,
            parent=around.builder.thread_id if around else None,
            shared=named is not None,
        )
        run = ObservedRun(source, builder, self._outbox)
        with self._lock:
            self._open = {key: each for key, each in self._open.items() if not each.is_over}
            self._open[id(run)] = run
        return run

    def await_decision(self, run: ObservedRun, keys: Iterable[Hashable]) -> None:
        """A run waits for a decision; one that goes on with it is known by any of these."""
        with self._lock:
            for key in keys:
                self._waiting[key] = run
            while len(self._waiting) > WAITING_RUNS:
                self._waiting.popitem(last=False)[1].abandon()

    def resume_run(self, keys: Iterable[Hashable]) -> ObservedRun | None:
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
) -> Observer:
    """Tell what agents in this process do, as facts, to an Edge or to a journal.

    `sdks` are those to observe, of `langgraph`, `openai-agents` and `pydantic-ai`; all that are
    installed, if none are named. Each run is a thread of its own, except in `with
    factwire.thread("…")`, or if `thread` names one for all. What the configuration of the current
    folder names as secret is hidden; one that cannot be used is a `ConfigurationError`.
    """
    wanted = _find_installed(sdks)
    load_redaction()
    sink = _make_sink(edge, token, journal)
    sink().close()  # Whatever is wrong with it is said here.
    if not _one_at_a_time.acquire(blocking=False):
        raise AlreadyObserving
    observer = Observer(Outbox(sink, waiting_bytes=waiting_bytes), thread)
    observer.install(wanted)
    atexit.register(observer.close)
    return observer


def _find_installed(names: Iterable[str] | None) -> list[str]:
    wanted = list(_OBSERVABLE) if names is None else list(names)
    unknown = [name for name in wanted if name not in _OBSERVABLE]
    if unknown:
        raise ValueError(f"expected SDKs of {', '.join(_OBSERVABLE)}, got {', '.join(unknown)}")
    found = [name for name in wanted if any(map(_is_installed, _OBSERVABLE[name].packages))]
    if not found or (names is not None and len(found) < len(wanted)):
        raise NothingToObserve(
            _OBSERVABLE[name].extra or name for name in wanted if name not in found
        )
    return found


def _load_install(name: str) -> Callable[[Observer, Patches], None]:
    """What observes an SDK; loaded only where it is observed."""
    agent = _OBSERVABLE[name]
    install: Callable[[Observer, Patches], None]
    install = import_module(agent.module(agent.observe or "")).install
    return install


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _make_sink(edge: str | None, token: str | None, journal: str | None) -> Callable[[], FactSink]:
    """What makes the place; each needs libraries of its own."""
    if edge is not None and journal is None:
        from factwire.sources.observe.fact_sinks import EdgeSink  # noqa: PLC0415 - as said

        return partial(EdgeSink, edge, token)
    if journal is not None and edge is None:
        from factwire.sources.observe.fact_sinks import JournalSink  # noqa: PLC0415 - as said

        return partial(JournalSink, journal)
    raise NoPlace("neither" if edge is None else "both")

"""Whose run it is: the thread that the program names, and the run that another one runs in.

Both follow the flow of the program, over tasks and into the threads that SDKs start for their
tools, because they stand in context variables.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from factwire.sources.observe.runs import ObservedRun

_NAME: Final[ContextVar[str | None]] = ContextVar("factwire_thread", default=None)
_RUN: Final[ContextVar["ObservedRun | None"]] = ContextVar("factwire_run", default=None)


@contextmanager
def thread(thread_id: str) -> Generator[None]:
    """Runs that begin in here are turns of this thread."""
    if not thread_id:
        raise ValueError("expected the name of a thread, got an empty text")
    token = _NAME.set(thread_id)
    try:
        yield
    finally:
        _NAME.reset(token)


def named_thread() -> str | None:
    """The thread that the program names here."""
    return _NAME.get()


def current_run() -> "ObservedRun | None":
    """The run that this code is a part of."""
    return _RUN.get()


@contextmanager
def within(run: "ObservedRun") -> Generator[None]:
    """What happens in here is a part of a run."""
    token = _RUN.set(run)
    try:
        yield
    finally:
        _RUN.reset(token)

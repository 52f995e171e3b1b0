"""From a URL to a journal; a backend is imported only when a URL asks for it."""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from factwire.journal.errors import JournalUrlError
from factwire.journal.protocol import Journal

_BACKENDS: Final = {
    "memory": ("factwire.journal.memory", "open_memory", None),
    "sqlite": ("factwire.journal.sqlite", "open_sqlite", None),
    "postgres": ("factwire.journal.postgres", "PostgresJournal", "postgres"),
    "postgresql": ("factwire.journal.postgres", "PostgresJournal", "postgres"),
    "nats": ("factwire.journal.nats", "NatsJournal", "nats"),
}
"""Scheme → module, what to call with the URL, and the extra that the module needs."""


def open_journal(url: str) -> Journal:
    """The journal at a URL, to be opened with `async with`.

    `sqlite:PATH` (`?mode=ro` beside a writer), `postgres://…`, `nats://…` or `memory:`.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in _BACKENDS:
        known = ", ".join(f"{name}:" for name in _BACKENDS)
        raise JournalUrlError(f"expected a URL that begins with one of {known} got {url!r}")
    module, name, extra = _BACKENDS[scheme]
    try:
        backend = import_module(module)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("factwire"):
            raise
        message = f"{scheme}: needs {error.name}; install factwire[{extra}]"
        raise JournalUrlError(message) from error
    opened = cast("Callable[[str], Journal]", getattr(backend, name))
    return opened(url)

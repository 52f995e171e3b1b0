"""Packs that are being made, and how far each has come: known in memory only, and only until then.

Nothing here is a fact: whoever asks afterwards finds the pack, or the refusal, and not how long it
took. Where more are made at once than are followed, what is not known is said to be unknown.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

import msgspec

from factwire.edge.limits import EXPORTS_FOLLOWED

ExportState = Literal["idle", "making", "unknown"]


class ExportProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Facts of a thread that are in the pack being made, of how many; `total` is missing where the
    journal has removed facts, since it counts those as well.
    """

    state: ExportState
    facts: int = 0
    total: int | None = None


class Following:
    """One pack on its way."""

    def __init__(self, thread_id: str, total: int | None) -> None:
        self.thread_id = thread_id
        self._total = total
        self._facts = 0

    def advance(self, facts: int) -> None:
        """So many more facts are in it."""
        self._facts += facts

    def progress(self) -> ExportProgress:
        """A thread may have gone on after it was counted, so there are never fewer than are in."""
        total = None if self._total is None else max(self._total, self._facts)
        return ExportProgress(state="making", facts=self._facts, total=total)


class Exports:
    """The packs that are being made now, oldest first."""

    def __init__(self) -> None:
        self._followed: list[Following] = []
        self._others = 0

    @contextmanager
    def following(self, thread_id: str, total: int | None) -> Generator[Following]:
        """Follow a pack until it is made or refused, unless many are already."""
        export = Following(thread_id, total)
        if len(self._followed) >= EXPORTS_FOLLOWED:
            self._others += 1
            try:
                yield export
            finally:
                self._others -= 1
            return
        self._followed.append(export)
        try:
            yield export
        finally:
            self._followed.remove(export)

    def of(self, thread_id: str) -> ExportProgress:
        """How far the pack of a thread is; of several, the one that was begun last."""
        for export in reversed(self._followed):
            if export.thread_id == thread_id:
                return export.progress()
        return ExportProgress(state="unknown" if self._others else "idle")

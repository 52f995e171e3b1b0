"""A few rare facts of a whole journal, folded into something small that is saved beside them.

Reading every fact of a class costs as much as the journal is long. A fold is saved as a snapshot of
the journal from time to time, so that whoever needs it next reads only what came since.
"""

from contextlib import suppress
from typing import Final, Protocol

from factwire.facts import Fact
from factwire.journal import Cursor, CursorError, Filter, Journal, JournalError
from factwire.runtime.limits import FOLD_SAVE_FACTS

_OWNER: Final = "factwire.runtime"
"""What the snapshots are kept under, where those of a thread have its id."""


class Fold(Protocol):
    """What is folded; `restore` raises `ValueError` for what another version saved."""

    def note(self, fact: Fact) -> None: ...

    def save(self) -> bytes: ...

    def restore(self, data: bytes) -> None: ...

    def clear(self) -> None: ...


class JournalFold:
    """Keeps a fold up to date with the facts of some classes."""

    def __init__(self, journal: Journal, kind: str, classes: tuple[str, ...], fold: Fold) -> None:
        self._journal = journal
        self._kind = kind
        self._filter = Filter(classes=classes)
        self._fold = fold
        self._read_to: Cursor | None = None
        self._saved_at = 0
        self._is_restored = False

    async def refresh(self) -> None:
        """Take in what was written since."""
        if not self._is_restored:
            await self._restore()
        try:
            await self._read()
        except CursorError:
            # What was read last has been taken out since; from the oldest on, nothing is missed.
            self._fold.clear()
            self._read_to = None
            await self._read()
        await self._save()

    async def _restore(self) -> None:
        saved = await self._journal.snapshot(_OWNER, kind=self._kind)
        self._is_restored = True
        if saved is None:
            return
        try:
            self._fold.restore(saved.data)
        except ValueError:
            self._fold.clear()
            return
        self._read_to = saved.cursor
        self._saved_at = saved.cursor.seq

    async def _read(self) -> None:
        async for batch in self._journal.read(self._read_to, filter=self._filter):
            for _, fact in batch.facts():
                self._fold.note(fact)
            self._read_to = batch.cursor

    async def _save(self) -> None:
        reached = self._read_to
        if reached is None or reached.seq - self._saved_at < FOLD_SAVE_FACTS:
            return
        # It only spares work later; a journal that takes nothing now is written to by others.
        with suppress(JournalError):
            await self._journal.save_snapshot(_OWNER, reached, self._fold.save(), kind=self._kind)
            self._saved_at = reached.seq

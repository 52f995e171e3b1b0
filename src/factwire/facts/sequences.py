"""Sequence: the order of the facts of one thread.

It starts anywhere and then rises by one. A fact that names no thread belongs to the thread of the
fact before it. A gap counts only if nothing says that it is known: a repair later in the same
thread settles the gaps before it.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, cast

from factwire.facts.fact import Fact
from factwire.facts.ids import id_of
from factwire.facts.issues import Issue
from factwire.facts.limits import IDENTITY_WINDOW, ISSUES_KEPT

_REPAIRS: Final = frozenset({"stream.repair.completed", "snapshot.repaired"})


class SequenceTracker:
    """Feed it facts in order; at the end, `gaps()` are those that nothing settled."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, int] = OrderedDict()
        self._gaps: dict[str, list[Issue]] = {}
        self._current = ""
        self._kept = 0

    def feed(self, fact: Fact, path: str) -> None:
        """Take the next fact of the stream, which stands at `path`."""
        self._follow(fact.thread_id or id_of(fact, "threadId"), fact.sequence, path)
        if fact.event_class in _REPAIRS:
            self._kept -= len(self._gaps.pop(self._current, ()))

    def feed_refused(self, value: object, path: str) -> None:
        """Take an object that is no fact; the thread and the place that it states still count."""
        if not isinstance(value, Mapping):
            return
        fields = cast("Mapping[str, object]", value)
        thread, sequence = fields.get("threadId"), fields.get("sequence")
        self._follow(
            thread if isinstance(thread, str) else None,
            sequence if type(sequence) is int else None,
            path,
        )

    def _follow(self, thread: str | None, sequence: int | None, path: str) -> None:
        if thread and thread != self._current:
            self._switch(thread)
        if sequence is None:
            return
        last = self._last.get(self._current)
        self._last[self._current] = sequence
        if last is not None and sequence != last + 1:
            self._gap(self._current, path, last + 1, sequence)

    @property
    def gap_count(self) -> int:
        """How many gaps nothing has settled yet."""
        return self._kept

    def gaps(self) -> list[Issue]:
        """The gaps that nothing has settled, thread by thread."""
        return [issue for issues in self._gaps.values() for issue in issues]

    def _switch(self, thread: str) -> None:
        if not self._current and self._current in self._last:
            # Facts before the first one that names a thread were of that thread.
            self._last[thread] = self._last.pop("")
            self._gaps[thread] = self._gaps.pop("", [])
        self._current = thread
        if thread in self._last:
            self._last.move_to_end(thread)
        elif len(self._last) >= IDENTITY_WINDOW:
            self._last.popitem(last=False)

    def _gap(self, thread: str, path: str, expected: int, got: int) -> None:
        if self._kept < ISSUES_KEPT:
            self._kept += 1
            message = f"expected sequence {expected}, got {got}"
            issue = Issue("sequence_gap", f"{path}.sequence", message)
            self._gaps.setdefault(thread, []).append(issue)

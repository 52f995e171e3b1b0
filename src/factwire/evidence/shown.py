"""What the facts of a pack show: projected threads, and for each thing the fact that shows it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from factwire.facts import Fact, id_of
from factwire.journal.filter import thread_of
from factwire.projection import Projection, ProjectionState
from factwire.projection.artifacts import artifact_ids

_ENDS: Final = {
    "turn.completed": "completed",
    "turn.failed": "failed",
    "turn.canceled": "canceled",
}


class Shown:
    """The whole of a pack's facts, in memory; a check is for cases, not for years."""

    def __init__(self, projections: dict[str | None, Projection]) -> None:
        self._projections = projections
        self._witnesses: dict[tuple[str, str], str] = {}
        self._turns: dict[str, tuple[str, str]] = {}
        self._last_turn: dict[str | None, str] = {}
        self._counts: Counter[str] = Counter()
        self._latest: dict[str, str] = {}
        self._documents: dict[str | None, Any] = {}
        self._known: set[tuple[str, str]] = set()

    def state(self, thread: str | None) -> ProjectionState:
        return self._projections[thread].state

    def document(self, thread: str | None) -> Any:
        """The state as plain JSON."""
        if thread not in self._documents:
            self._documents[thread] = msgspec.json.decode(self._projections[thread].snapshot())
        return self._documents[thread]

    def has_thread(self, thread: str) -> bool:
        """Whether a fact is of this thread."""
        return ("thread", thread) in self._known

    def has_turn(self, turn: str) -> bool:
        """Whether a fact is of this turn."""
        return ("turn", turn) in self._known

    def turn(self, turn_id: str | None) -> tuple[str, str] | None:
        """How a turn ended, and the fact that says so."""
        return None if turn_id is None else self._turns.get(turn_id)

    def last_turn(self, thread: str | None) -> str | None:
        state = self._projections[thread].state
        return self._last_turn.get(state.thread_id)

    def witness(self, kind: str, name: str | None) -> str | None:
        return None if name is None else self._witnesses.get((kind, name))

    def count(self, event_class: str) -> tuple[int, str | None]:
        """How many facts are of a class or below it, and the last of them."""
        below = f"{event_class.removesuffix('.')}."
        names = [name for name in self._counts if f"{name}.".startswith(below)]
        latest = [self._latest[name] for name in names]
        return sum(self._counts[name] for name in names), latest[-1] if latest else None

    def note(self, fact: Fact) -> None:
        """Remember which fact shows what."""
        name = fact.event_class or "none"
        self._counts[name] += 1
        self._latest.pop(name, None)
        self._latest[name] = fact.id
        turn, thread = id_of(fact, "turnId"), thread_of(fact)
        if thread is not None:
            self._known.add(("thread", thread))
        if turn is not None:
            self._known.add(("turn", turn))
            self._last_turn[thread] = turn
            if name in _ENDS:
                self._turns[turn] = _ENDS[name], fact.id
            if name.startswith(("model.", "text.")):
                self._witnesses["answer", turn] = fact.id
        for kind, key in _subjects(fact, name):
            self._witnesses[kind, key] = fact.id


def shown_by(facts: Iterable[Fact], threads: Iterable[str | None], *, kept: bool) -> Shown:
    """Project some threads, with those of their subagents; None stands for the first thread."""
    projections = {thread: Projection(thread) for thread in {*threads, None}}
    shown = Shown(projections)
    takes = [each.replay if kept else each.apply for each in projections.values()]
    for fact in facts:
        shown.note(fact)
        for take in takes:
            take(fact)
    return shown


def _subjects(fact: Fact, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    tool, action, path = (
        id_of(fact, "toolCallId"),
        id_of(fact, "actionId"),
        fact.payload.get("path"),
    )
    if tool is not None and name.startswith("tool."):
        found.append(("tool", tool))
    if action is not None and name.startswith("action."):
        found.append(("action", action))
    if isinstance(path, str) and name == "file.changed":
        found.append(("file", path))
    if name.startswith("artifact.") or name == "file.changed":
        found += [("artifact", each) for each in artifact_ids(fact)]
    return found

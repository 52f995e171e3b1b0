"""What is open in a stream of facts: the one state machine behind the verifier and the gates.

What a class opens, uses and closes is in its row (`Move`); which turns have ended follows from the
classes that end one. The machine keeps the state and answers questions about it, in bounded memory.
It refuses nothing: what may follow what, and under which code, is for those who ask to say.
"""

from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.classes.specification import SUBJECTS, Move
from factwire.facts.fact import Fact, entity_of, id_of, loose_entity_of
from factwire.facts.limits import IDENTITY_WINDOW
from factwire.facts.outcomes import ActionClosing


class IdMemory(Protocol):
    """Names that were seen, as many of them as are remembered."""

    def add(self, name: str) -> bool:
        """Remember `name`; whether it was known already."""
        ...

    def copy(self) -> "IdMemory": ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    def __contains__(self, name: object, /) -> bool: ...


class RecentIds:
    """Membership in the last `window` to 2 × `window` added names, in bounded memory."""

    def __init__(self, window: int = IDENTITY_WINDOW) -> None:
        self._window = window
        # Unlike sets, dicts of texts are no work for the garbage collector, and there are many.
        self._young: dict[str, None] = {}
        self._old: dict[str, None] = {}

    def add(self, name: str) -> bool:
        """Remember `name`; whether it was known already."""
        if name in self._young or name in self._old:
            return True
        self._young[name] = None
        if len(self._young) >= self._window:
            self._old, self._young = self._young, {}
        return False

    def copy(self) -> "RecentIds":
        twin = RecentIds(self._window)
        # The older half never changes, so that both may have it.
        twin._young, twin._old = self._young.copy(), self._old
        return twin

    def __iter__(self) -> Iterator[str]:
        """The names, older ones first."""
        yield from self._old
        yield from self._young

    def __contains__(self, name: object, /) -> bool:
        return name in self._young or name in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __repr__(self) -> str:
        return f"RecentIds({sorted(self._young | self._old)})"


class LastIds(dict[str, None]):
    """Membership in exactly the last `count` added names."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def add(self, name: str) -> bool:
        """Remember `name`; whether it was known already."""
        known = name in self
        self[name] = None
        if len(self) > self._count:
            del self[next(iter(self))]
        return known

    def copy(self) -> "LastIds":
        twin = LastIds(self._count)
        twin.update(self)
        return twin


class AnsweredActions(dict[str, ActionClosing]):
    """The answers that actions got, of the last `count` that were answered: the first one counts
    until the action is asked for again.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def add(self, action: str, answer: ActionClosing | None) -> None:
        """Remember the answer to an action, unless it has one."""
        if answer is not None and action not in self:
            self[action] = answer
            if len(self) > self._count:
                del self[next(iter(self))]

    def find_conflict(self, action: str, answer: ActionClosing | None) -> bool | None:
        """Whether an action was answered otherwise before; None where it was not answered."""
        first = self.get(action)
        return None if first is None or answer is None else first != answer

    def copy(self) -> "AnsweredActions":
        twin = AnsweredActions(self._count)
        twin.update(self)
        return twin


NO_TURN: Final = ""
"""The turn of what was opened outside of any."""

TURN_OPENERS: Final = frozenset({"turn.submitted", "turn.started"})


def _mark_key(turn: str, mark: str) -> str:
    """A turn together with a task or a worker that its opening names."""
    return f"{turn}\n{mark}"


def find_subject_id(fact: Fact, subject: str) -> str | None:
    """The id by which a fact names what it opens, uses or closes."""
    kind = SUBJECTS[subject]
    for key in kind.payload_ids:
        own = fact.payload.get(key)
        if isinstance(own, str) and own:
            return own
    return id_of(fact, kind.correlation_id)


class SavedWork(msgspec.Struct, frozen=True, array_like=True):
    """`OpenWork` as data: what is open with its turn and kind, and the turns that were noted."""

    open: list[tuple[str, str, str]]
    ended: list[str]
    begun: list[str]
    begun_beside: list[str]
    running: str | None = None
    has_plain_turn: bool = False


class OpenWork:
    """The subjects that are open, by turn, and the turns that have `ended`.

    With a `limit`, what was opened first is forgotten when more than that many are open.
    """

    __slots__ = (
        "_begun",
        "_begun_beside",
        "_count",
        "_has_plain_turn",
        "_limit",
        "_open",
        "_running",
        "ended",
    )

    def __init__(self, ended: IdMemory, limit: int | None = None) -> None:
        self._open: dict[str, dict[str, dict[str, None]]] = {}
        self._count = 0
        self._limit = limit
        self.ended = ended
        self._begun: IdMemory = ended.copy()
        self._begun_beside: IdMemory = ended.copy()
        self._running: str | None = None
        self._has_plain_turn = False

    def open_turn(self, fact: Fact) -> None:
        """The turn that a fact submits or starts begins."""
        turn, is_beside = id_of(fact, "turnId"), not self.is_of_thread(fact)
        is_start = fact.event_class == "turn.started"
        marks = id_of(fact, "taskId"), id_of(fact, "workerId")
        self.begin_turn(turn, *marks, beside=is_beside)
        if is_start and not is_beside:
            self._running = turn
        if not is_beside and loose_entity_of(fact) is None:
            self._has_plain_turn = True

    def follow_turn(self, fact: Fact) -> bool:
        """Take in what begins or ends a turn; whether the fact is about one of the thread."""
        is_own = self.is_of_thread(fact)
        if fact.event_class in TURN_OPENERS:
            self.open_turn(fact)
        elif fact.event_class in TURN_TERMINALS and self.is_turn_of(fact):
            self.end_turn(id_of(fact, "turnId"))
        return is_own

    def restore_running(self, turn: str | None, *, has_plain_turn: bool) -> None:
        """The turn of the thread that runs, as a state has it, and whether the thread ever began
        one without naming a worker or a task above.
        """
        self._running = turn
        self._has_plain_turn = has_plain_turn

    def begin_turn(self, turn: str | None, *marks: str | None, beside: bool) -> None:
        """A turn of the thread begins, or one that somebody takes `beside` it; `marks` are the task
        and the worker that its opening names.
        """
        if turn and beside:
            self._begun_beside.add(turn)
        elif turn:
            self._begun.add(turn)
            for mark in filter(None, marks):
                self._begun.add(_mark_key(turn, mark))

    def is_of_thread(self, fact: Fact) -> bool:
        """Whether a fact about a turn is about one of the thread itself. Where only a worker or a
        task above it speaks against that, the opening decides: a turn that begins while none of the
        thread runs is the thread's own if all of the thread's turns begin like that, and what is
        reported of it later is, too, unless it names a task or a worker that the opening did not.
        """
        entity, turn = loose_entity_of(fact), id_of(fact, "turnId")
        if entity is None:
            return entity_of(fact) is None
        if turn is None or turn in self._begun_beside:
            return False
        if fact.event_class in TURN_OPENERS:
            is_expected = turn in self._begun or not self._has_plain_turn
            return self._running is None and is_expected
        return (turn if entity.id is None else _mark_key(turn, entity.id)) in self._begun

    def is_turn_of(self, fact: Fact) -> bool:
        """Whether a fact that begins or ends a turn speaks for the turn that it names. An end that
        carries a subagent, a job or a task elsewhere ends that; it ends a turn only if that one
        began it, and the thread did not.
        """
        if self.is_of_thread(fact):
            return True
        turn = id_of(fact, "turnId")
        return turn in self._begun_beside and turn not in self._begun

    def is_open(self, turn: str | None, subject: str, subject_id: str) -> bool:
        """Whether it is open in this turn."""
        return subject_id in self._open.get(turn or NO_TURN, {}).get(subject, ())

    def find_turn(self, subject: str, subject_id: str | None) -> str | None:
        """The turn, or `NO_TURN`, in which it is open; None where it is not."""
        for turn, subjects in self._open.items():
            if subject_id in subjects.get(subject, ()):
                return turn
        return None

    def open_ids(self, turn: str | None, subject: str) -> tuple[str, ...]:
        """What is open in a turn, in the order in which it was opened."""
        return tuple(self._open.get(turn or NO_TURN, {}).get(subject, ()))

    def list_open(self, subject: str) -> Iterator[tuple[str, str]]:
        """The id and the turn of each that is open."""
        for turn, subjects in self._open.items():
            for subject_id in subjects.get(subject, ()):
                yield subject_id, turn

    def apply(self, move: Move, turn: str | None, subject_id: str) -> None:
        """Do what a move does; to use something changes nothing."""
        if move.does == "open":
            self.open(turn, move.subject, subject_id)
        elif move.does == "close":
            self.close(turn, move.subject, subject_id)

    def open(self, turn: str | None, subject: str, subject_id: str) -> None:
        ids = self._open.setdefault(turn or NO_TURN, {}).setdefault(subject, {})
        self._count += subject_id not in ids
        ids[subject_id] = None
        if self._limit is not None and self._count > self._limit:
            oldest, subjects = next(iter(self._open.items()))
            first, first_ids = next(iter(subjects.items()))
            self.close(oldest, first, next(iter(first_ids)))

    def close(self, turn: str | None, subject: str, subject_id: str) -> None:
        key = turn or NO_TURN
        subjects = self._open.get(key, {})
        ids = subjects.get(subject, {})
        if subject_id in ids:
            del ids[subject_id]
            self._count -= 1
            if not ids:
                del subjects[subject]
            if not subjects:
                del self._open[key]

    def end_turn(self, turn: str | None) -> None:
        """Forget what is open in a turn, and remember its end."""
        subjects = self._open.pop(turn or NO_TURN, None)
        if subjects is not None:
            self._count -= sum(map(len, subjects.values()))
        self.remember_end(turn)
        if turn == self._running:
            self._running = None

    def remember_end(self, turn: str | None) -> None:
        """A turn that ended before the first fact, as a read model lists it."""
        if turn:
            self.ended.add(turn)

    def save(self) -> "SavedWork":
        """All of it, to be taken up by `restore`."""
        return SavedWork(
            open=[(turn, *each) for turn in self._open for each in self._list_open_in(turn)],
            ended=[*self.ended],
            begun=[*self._begun],
            begun_beside=[*self._begun_beside],
            running=self._running,
            has_plain_turn=self._has_plain_turn,
        )

    def restore(self, saved: "SavedWork") -> None:
        """Go on with what was saved."""
        for turn, subject, subject_id in saved.open:
            self.open(turn, subject, subject_id)
        memories = (self.ended, saved.ended), (self._begun, saved.begun)
        for memory, names in (*memories, (self._begun_beside, saved.begun_beside)):
            for name in names:
                memory.add(name)
        self._running = saved.running
        self._has_plain_turn = saved.has_plain_turn

    def _list_open_in(self, turn: str) -> Iterator[tuple[str, str]]:
        for subject, ids in self._open[turn].items():
            yield from ((subject, subject_id) for subject_id in ids)

    def copy(self) -> "OpenWork":
        twin = OpenWork(self.ended.copy(), self._limit)
        twin._count = self._count
        twin._begun, twin._begun_beside = self._begun.copy(), self._begun_beside.copy()
        twin._running = self._running
        twin._has_plain_turn = self._has_plain_turn
        twin._open = {
            turn: {subject: dict(ids) for subject, ids in subjects.items()}
            for turn, subjects in self._open.items()
        }
        return twin

    def __repr__(self) -> str:
        return f"OpenWork(open={self._open}, ended={self.ended})"

"""The order of a complete input: the same facts in any order are projected in the same one.

A file, an array or a pack holds all of its facts, so the order in which they are written down
does not matter. Four rules decide, in this turn:

1. Facts of one thread are ordered by `sequence`. A fact without one stays behind the fact that it
   follows in the input.
2. Where each run of a thread counts by itself, so that facts of different runs have the same
   sequence, a run is ordered by itself. Runs follow each other as their turns began. Where no run
   ids tell, the same goes for turns. Facts of no run belong to the count of the run that was under
   way, or count beside the runs, whichever leaves fewer places claimed twice or empty; then they
   are merged with the runs by time.
3. Facts that claim the same place are ordered by time, then by id, then by content. A projection
   takes the first of them.
4. A child thread begins after the fact of its parent that names it, or after its parent's first
   fact. From there on, threads are merged by time; at the same time the parent goes first.

Times never order facts within a thread beyond rule 3, because clocks may be wrong. They order
threads and runs, about which nothing else in a fact tells. Only references to facts are sorted.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import combinations, groupby
from operator import itemgetter
from typing import Final

import msgspec

from factwire.facts.fact import Fact, has_lineage, id_of
from factwire.facts.shapes import RepeatNumbers

RUN_OPENERS: Final = frozenset({"turn.submitted", "turn.started", "run.started"})
"""Classes that begin a run."""

_COUNTED_BY: Final = ("runId", "turnId")
"""Ids by which parts of a thread may count their facts by themselves."""

TEAMMATE_CLASSES: Final = ("subagent", "worker", "agent", "channel")
"""Families of classes that tell which thread a subagent runs on."""

_NO_TEAMMATE: Final = frozenset({"worker.notification", "agent.handoff"})
_TEAMMATE_PREFIXES: Final = tuple(f"{family}." for family in TEAMMATE_CLASSES)
_CHILD_NAMES: Final = ("subagentThreadId", "childThreadId")
_DIGITS: Final = re.compile(r"(\d+)")
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?"
    r"(?:[Zz]|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
_BEFORE_ANY_TIME: Final = -1
_NO_RANK: Final = -1
_THREAD: Final = ""
"""What facts of no run count by."""

_content_encoder: Final = msgspec.json.Encoder(order="deterministic")


def order_facts(facts: Iterable[Fact], thread_id: str | None = None) -> list[Fact]:
    """The facts of a complete input in the order in which they are projected.

    `thread_id` is the thread that the input is about. Without it, that is the thread of those
    without a parent that began first.
    """
    repeats = RepeatNumbers()
    items = [repeats.number(fact) for fact in facts]
    check = OrderCheck()
    if all(check.follows(fact) for fact in items):
        return items
    first, numbered, followers = _split_unnumbered(items)
    ordered = first
    for fact in _order_numbered(numbered, thread_id):
        ordered.append(fact)
        if followers:
            ordered += followers.pop(id(fact), ())
    return ordered


class OrderCheck:
    """Finds out, fact by fact and in constant memory, whether an input of one thread is in order.

    An input of several threads is never taken to be in order, since that needs all of it.
    """

    def __init__(self) -> None:
        self.in_order = True
        self._thread: str | None = None
        self._sequence: int | None = None
        self._facts = 0

    def follows(self, fact: Fact) -> bool:
        """Whether all facts so far, and this one, are of one thread and have rising sequences."""
        if self._facts and fact.thread_id != self._thread:
            self.in_order = False
        self._facts += 1
        self._thread = fact.thread_id
        sequence = fact.sequence
        if sequence is not None:
            if self._sequence is not None and sequence <= self._sequence:
                self.in_order = False
            self._sequence = sequence
        return self.in_order


def child_thread_of(fact: Fact) -> str | None:
    """The thread that a fact about a subagent says it runs on."""
    name = fact.event_class or ""
    if name in _NO_TEAMMATE or not name.startswith(_TEAMMATE_PREFIXES):
        return None
    values = (fact.payload.get(field) for field in _CHILD_NAMES)
    return next((value for value in values if isinstance(value, str) and value), None)


def _split_unnumbered(
    items: Sequence[Fact],
) -> tuple[list[Fact], list[Fact], dict[int, list[Fact]]]:
    """The facts without a sequence that come first, those with one, and for the address of each of
    these the facts without one that follow it.
    """
    first: list[Fact] = []
    numbered: list[Fact] = []
    followers: dict[int, list[Fact]] = {}
    for fact in items:
        if fact.sequence is not None:
            numbered.append(fact)
        elif numbered:
            followers.setdefault(id(numbered[-1]), []).append(fact)
        else:
            first.append(fact)
    return first, numbered, followers


def _order_numbered(facts: list[Fact], thread_id: str | None) -> Iterable[Fact]:
    """Facts that all have a sequence, in order. Those that name no thread are the main one's."""
    lanes: dict[str | None, list[Fact]] = {}
    for fact in facts:
        lanes.setdefault(fact.thread_id, []).append(fact)
    unnamed = lanes.pop(None, [])
    named = {thread: _order_thread(lane) for thread, lane in lanes.items() if thread is not None}
    if not named:
        return _order_thread(unnamed)
    main = thread_id if thread_id in named else _find_main_thread(named)
    if unnamed:
        named[main] = _order_thread([*named[main], *unnamed])
    return named[main] if len(named) == 1 else _merge_threads(named, main)


Place = tuple[int, int, int, str]
"""Where a fact belongs in its thread: the run's rank, sequence, time, id."""


def _order_thread(lane: list[Fact]) -> list[Fact]:
    """The facts of one thread in order."""
    counted = next((name for name in _COUNTED_BY if _counts_apart(lane, name)), None)
    if counted is None:
        return _order_count([(0, fact) for fact in lane])
    ranks = _RunRanks(lane, counted)
    rows = [(ranks.rank_of(fact), fact) for fact in lane]
    if not any(map(is_of_no_run, lane)) or not _counts_beside(rows):
        return _order_count(rows)
    beside = _order_count([(0, fact) for fact in lane if is_of_no_run(fact)])
    runs = _order_count([row for row in rows if not is_of_no_run(row[1])])
    cursors = _ThreadCursor("", beside, 0), _ThreadCursor("", runs, 1)
    return [fact for *_, fact in merge(*(cursor.list_rest() for cursor in cursors))]


def is_of_no_run(fact: Fact) -> bool:
    """Whether a fact is about the thread, in no run and no turn of it."""
    return id_of(fact, "runId") is None and id_of(fact, "turnId") is None


def _counts_beside(rows: list[tuple[int, Fact]]) -> bool:
    """Whether facts of no run have a count of their own, beside the runs with these ranks."""
    within = [(rank, fact.sequence or 0) for rank, fact in rows]
    beside = [(_NO_RANK if is_of_no_run(fact) else rank, fact.sequence or 0) for rank, fact in rows]
    return _count_faults(beside) <= _count_faults(within)


def _count_faults(places: list[tuple[int, int]]) -> tuple[int, int]:
    """How many places are claimed by more than one fact, and how many are empty."""
    counts: dict[int, set[int]] = {}
    for rank, sequence in places:
        counts.setdefault(rank, set()).add(sequence)
    claimed = sum(map(len, counts.values()))
    spans = sum(max(count) - min(1, *count) + 1 for count in counts.values())
    return len(places) - claimed, spans - claimed


def _order_count(ranked: list[tuple[int, Fact]]) -> list[Fact]:
    """Facts of a thread by the ranks of their runs, and within each by its own count."""
    rows: list[tuple[Place, Fact]] = [
        ((rank, fact.sequence or 0, _time_of(fact), fact.id), fact) for rank, fact in ranked
    ]
    rows.sort(key=itemgetter(0))
    ordered: list[Fact] = []
    for _, group in groupby(rows, key=itemgetter(0)):
        claims = [fact for _, fact in group]
        if len(claims) > 1:
            claims.sort(key=_content_encoder.encode)
        ordered += claims
    return ordered


def _counts_apart(lane: list[Fact], name: str) -> bool:
    """Whether the runs or the turns of a thread count by themselves: two of them begin with the
    same sequence, or have several in common. A single one in common is a conflict within one count.
    What is of no run and no turn may count like one more of them.
    """
    lowest: dict[str, int] = {}
    claims: dict[int, set[tuple[str, str]]] = {}
    for fact in lane:
        run, sequence = _THREAD if is_of_no_run(fact) else id_of(fact, name), fact.sequence or 0
        if run is not None:
            lowest[run] = min(sequence, lowest.get(run, sequence))
            claims.setdefault(sequence, set()).add((run, fact.id))
    common = sum(_are_of_several_runs(found) for found in claims.values())
    return common > 1 or (common == 1 and len({*lowest.values()}) < len(lowest))


def _are_of_several_runs(claims: set[tuple[str, str]]) -> bool:
    """Whether facts of different runs, and not one fact twice, claim a place."""
    return any(
        run != other_run and fact != other_fact
        for (run, fact), (other_run, other_fact) in combinations(claims, 2)
    )


class _RunRanks:
    """The order of what counts by itself: a thread's runs, or its turns.

    A fact that names no run belongs to the run of its turn. If its turn has none, it belongs to the
    run that began last before it by time, and before all runs if none had begun.
    """

    def __init__(self, lane: list[Fact], counted: str) -> None:
        self._counted = counted
        self._turns: dict[str, str] = {}
        for fact in lane:
            run, turn = id_of(fact, counted), id_of(fact, "turnId")
            if run is not None and turn is not None:
                self._turns[turn] = min(run, self._turns.get(turn, run))
        starts: dict[str, tuple[bool, int, int]] = {}
        for fact in lane:
            run = self._run_of(fact)
            if run is not None:
                start = fact.event_class not in RUN_OPENERS, fact.sequence or 0, _time_of(fact)
                starts[run] = min(start, starts.get(run, start))
        runs = sorted(starts, key=lambda run: (starts[run][2], _natural_order(run)))
        self._ranks = {run: rank for rank, run in enumerate(runs, 1)}
        self._times = [starts[run][2] for run in runs]

    def rank_of(self, fact: Fact) -> int:
        run = self._run_of(fact)
        return bisect_right(self._times, _time_of(fact)) if run is None else self._ranks[run]

    def _run_of(self, fact: Fact) -> str | None:
        run = id_of(fact, self._counted)
        if run is not None:
            return run
        turn = id_of(fact, "turnId")
        return None if turn is None else self._turns.get(turn)


def _natural_order(name: str) -> list[tuple[int, str]]:
    """A key that puts `run-2` before `run-10`."""
    pieces = _DIGITS.split(name)
    numbers = [piece.lstrip("0") for piece in pieces[1::2]]
    return [
        (len(numbers[place // 2]), numbers[place // 2]) if place % 2 else (0, piece)
        for place, piece in enumerate(pieces)
    ]


class _ThreadCursor:
    """How far the facts of one thread have been merged."""

    __slots__ = ("depth", "facts", "name", "place", "time")

    def __init__(self, name: str, facts: list[Fact], depth: int) -> None:
        self.name = name
        self.facts = facts
        self.depth = depth
        self.place = 0
        self.time = _time_of(facts[0])

    def key(self, number: int) -> tuple[int, int, str, int]:
        return self.time, self.depth, self.name, number

    def step(self) -> Fact:
        """Take out the next fact; a clock that went back does not move the thread back."""
        fact = self.facts[self.place]
        self.place += 1
        if self.place < len(self.facts):
            self.time = max(self.time, _time_of(self.facts[self.place]))
        return fact

    def list_rest(self) -> Iterator[tuple[int, int, int, Fact]]:
        """The facts that are left, each behind what it is merged by."""
        while self.place < len(self.facts):
            yield self.time, self.depth, self.place, self.step()


def _merge_threads(lanes: dict[str, list[Fact]], main: str) -> Iterator[Fact]:
    """The facts of all threads, each thread in its own order and children after their parents."""
    parents = _find_parents(lanes)
    cursors = [
        _ThreadCursor(thread, lane, 0 if thread == main else 1 + _depth_of(thread, parents))
        for thread, lane in sorted(lanes.items())
    ]
    waiting: dict[tuple[str, str | None], list[int]] = {}
    ready: list[tuple[int, int, str, int]] = []
    for number, cursor in enumerate(cursors):
        parent = parents.get(cursor.name)
        if parent is None:
            ready.append(cursor.key(number))
        else:
            waiting.setdefault(parent, []).append(number)
    heapify(ready)
    left = set(range(len(cursors)))
    while left:
        if not ready:
            # Threads that name each other as parents: the one that began first goes first.
            number = min(left, key=lambda each: cursors[each].key(each))
            waiting = {key: [n for n in found if n != number] for key, found in waiting.items()}
            ready.append(cursors[number].key(number))
        number = heappop(ready)[-1]
        cursor = cursors[number]
        fact = cursor.step()
        yield fact
        for anchor in (None, child_thread_of(fact)) if waiting else ():
            for child in waiting.pop((cursor.name, anchor), ()):
                heappush(ready, cursors[child].key(child))
        if cursor.place < len(cursor.facts):
            heappush(ready, cursor.key(number))
        else:
            left.discard(number)


def _find_parents(lanes: Mapping[str, list[Fact]]) -> dict[str, tuple[str, str | None]]:
    """Child thread → its parent and, where a fact of the parent names the child, the child."""
    found: dict[str, tuple[str, str | None]] = {}
    owners = _ThreadOwners(lanes)
    for thread, lane in lanes.items():
        stated = (owners.find_parent(fact) for fact in lane if has_lineage(fact))
        parent = next((each for each in stated if each is not None and each != thread), None)
        if parent is not None:
            found[thread] = parent, None
    for thread, lane in lanes.items():
        for fact in lane:
            child = child_thread_of(fact)
            if child is not None and child != thread and child in lanes:
                parent, _ = found.get(child, (thread, None))
                if parent == thread:
                    found[child] = thread, child
    return found


class _ThreadOwners:
    """Which thread a session or a task belongs to: the one that named it first, and that of a child
    only where no other did.
    """

    def __init__(self, lanes: Mapping[str, list[Fact]]) -> None:
        self._threads = lanes.keys()
        self._sessions: dict[str, str] = {}
        self._tasks: dict[str, str] = {}
        places = {
            thread: (any(map(has_lineage, lane)), _find_start(lane), thread)
            for thread, lane in lanes.items()
        }
        for thread in sorted(lanes, key=places.__getitem__):
            for fact in lanes[thread]:
                if fact.session_id is not None:
                    self._sessions.setdefault(fact.session_id, thread)
                if fact.task_id is not None:
                    self._tasks.setdefault(fact.task_id, thread)

    def find_parent(self, fact: Fact) -> str | None:
        """The thread above that of a fact, by whichever id the fact states it."""
        thread = id_of(fact, "parentThreadId")
        if thread in self._threads:
            return thread
        session, task = id_of(fact, "parentSessionId"), id_of(fact, "parentTaskId")
        return self._sessions.get(session or "") or self._tasks.get(task or "")


def _find_start(lane: list[Fact]) -> int:
    return min(map(_time_of, lane))


def find_main_thread(facts: Iterable[Fact]) -> str | None:
    """The thread that a complete input is about: of those without a parent, the one that began
    first.
    """
    lanes: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.thread_id is not None:
            lanes.setdefault(fact.thread_id, []).append(fact)
    return _find_main_thread(lanes) if lanes else None


def _find_main_thread(lanes: Mapping[str, list[Fact]]) -> str:
    if len(lanes) == 1:
        return next(iter(lanes))
    parents = _find_parents(lanes)
    roots = [thread for thread in lanes if thread not in parents] or list(lanes)
    return min(roots, key=lambda thread: (_find_start(lanes[thread]), thread))


def _depth_of(thread: str, parents: dict[str, tuple[str, str | None]]) -> int:
    """How many threads are above one; a circle ends the count."""
    seen = {thread}
    while thread in parents and parents[thread][0] not in seen:
        thread = parents[thread][0]
        seen.add(thread)
    return len(seen) - 1


def _time_of(fact: Fact) -> int:
    """When a fact happened, in nanoseconds, to compare with; what is no time is before all that
    are, and a time without a zone is UTC.
    """
    found = _TIME.fullmatch(fact.created_at)
    if found is None:
        return _BEFORE_ANY_TIME
    year, month, day, hour, minute = map(int, found.group(1, 2, 3, 4, 5))
    second, fraction, sign, ahead_hours, ahead_minutes = found.group(6, 7, 8, 9, 10)
    # Counted from March, so that a leap day is the last of its year.
    years, months = divmod(12 * year + month - 3, 12)
    days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day
    minutes = (days * 24 + hour) * 60 + minute
    if sign is not None:
        ahead = int(ahead_hours) * 60 + int(ahead_minutes)
        minutes += ahead if sign == "-" else -ahead
    return (minutes * 60 + int(second or 0)) * 10**9 + int((fraction or "0").ljust(9, "0"))

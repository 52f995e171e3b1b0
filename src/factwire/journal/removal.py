"""What retention and compaction may remove: decided here, carried out by backends.

Nothing at or after an open action's request goes from its thread, and nothing that an open reader
has yet to read. The newest fact always stays, so that the chain keeps its end.
"""

from array import array
from collections.abc import Iterable, Mapping

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import id_of
from factwire.facts.vocabulary import TURN_TERMINALS
from factwire.journal.filter import thread_of
from factwire.journal.policy import Compaction, Retention, Superseding

Part = tuple[str | None, ...]


class Holds(msgspec.Struct, frozen=True, kw_only=True):
    """Who needs what: readers by the position they have reached, threads by an open action."""

    readers: Mapping[str, int]
    actions: Mapping[str, int]

    def ceiling(self, head: int) -> int:
        """The last seq that a journal-wide floor may reach."""
        lowest_action = min(self.actions.values(), default=head + 1)
        return max(0, min(self.reader_ceiling(head), lowest_action - 1))

    def reader_ceiling(self, head: int) -> int:
        """The last seq that every reader has behind it."""
        return min(*self.readers.values(), head - 1, head)

    def names(self, above: int) -> tuple[str, ...]:
        """Who stands in the way of removing what lies above a seq."""
        readers = [f"reader {name}" for name, at in self.readers.items() if at <= above]
        actions = [f"open action in {name}" for name, at in self.actions.items() if at <= above + 1]
        return (*sorted(readers), *sorted(actions))


class Plan(msgspec.Struct, kw_only=True):
    """Remove everything up to `floor` and, above it, the facts at `drop`."""

    floor: int
    drop: set[int] = msgspec.field(default_factory=set[int])
    thread_floors: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    held_by: tuple[str, ...] = ()

    def keeps(self, seq: int) -> bool:
        return seq > self.floor and seq not in self.drop


def plan_retention(
    policy: Retention, facts: Iterable[tuple[int, Fact]], holds: Holds, *, head: int, floor: int
) -> Plan:
    """What a retention policy removes from a journal that ends at `head`."""
    seqs = array("q")
    threads: dict[str, array[int]] = {}
    for seq, fact in facts:
        seqs.append(seq)
        thread = thread_of(fact)
        if thread is not None and policy.keep_per_thread is not None:
            threads.setdefault(thread, array("q")).append(seq)
    wanted = max(floor, _by_age(policy.max_age, head), _by_count(policy.keep_facts, seqs))
    ceiling = holds.ceiling(head)
    plan = Plan(floor=max(floor, min(wanted, ceiling)))
    if wanted > ceiling:
        plan.held_by = holds.names(ceiling)
    if policy.keep_per_thread is not None:
        _drop_by_thread(plan, threads, policy.keep_per_thread, holds, head)
    return plan


def plan_compaction(
    policy: Compaction, facts: Iterable[tuple[int, Fact]], holds: Holds, *, head: int, floor: int
) -> Plan:
    """Which increments of finished turns their final fact makes redundant."""
    ceiling = min(holds.reader_ceiling(head), head - policy.spare)
    search = _Increments(policy.superseded)
    for seq, fact in facts:
        search.take(seq, fact)
    drop = {seq for seq in search.redundant if seq <= ceiling}
    held = len(drop) < len(search.redundant)
    return Plan(floor=floor, drop=drop, held_by=holds.names(ceiling) if held else ())


class _Increments:
    """Increments on their way to being redundant: streamed, then superseded, then turn ended.

    The first increment of a part stays, because it is what gives the part its place.
    """

    def __init__(self, superseded: Mapping[str, Superseding]) -> None:
        self.redundant: set[int] = set()
        self._superseded = superseded
        self._finals = {name: item for item in superseded.items() for name in item[1].classes}
        self._streamed: dict[Part, list[int]] = {}
        self._final: dict[Part, list[int]] = {}

    def take(self, seq: int, fact: Fact) -> None:
        name = fact.event_class
        turn = fact.turn_id or id_of(fact, "turnId")
        if name is None or turn is None:
            return
        thread = thread_of(fact)
        if name in self._superseded:
            if any(field in fact.payload for field in self._superseded[name].unless):
                return
            part = _part(name, self._superseded[name], fact, thread, turn)
            self._streamed.setdefault(part, []).append(seq)
        elif name in self._finals:
            delta, rule = self._finals[name]
            if any(isinstance(fact.payload.get(field), str) for field in rule.holds):
                streamed = self._streamed.pop(_part(delta, rule, fact, thread, turn), [])
                self._final.setdefault((thread, turn), []).extend(streamed[1:])
        elif name in TURN_TERMINALS:
            self.redundant.update(self._final.pop((thread, turn), ()))


def _part(name: str, rule: Superseding, fact: Fact, thread: str | None, turn: str) -> Part:
    stated = (fact.payload.get(field) for field in rule.fields)
    fields = (text if isinstance(text, str) else None for text in stated)
    return (name, thread, turn, *(id_of(fact, same) for same in rule.same), *fields)


def _by_age(max_age: int | None, head: int) -> int:
    return 0 if max_age is None else head - max_age


def _by_count(keep: int | None, seqs: "array[int]") -> int:
    if keep is None or keep >= len(seqs):
        return 0
    return seqs[len(seqs) - keep - 1]


def _drop_by_thread(
    plan: Plan, threads: Mapping[str, "array[int]"], keep: int, holds: Holds, head: int
) -> None:
    readers = holds.reader_ceiling(head)
    held: set[str] = set()
    for thread, seqs in threads.items():
        old = [seq for seq in seqs[: max(0, len(seqs) - keep)] if seq > plan.floor]
        ceiling = min(readers, holds.actions.get(thread, head + 1) - 1)
        gone = [seq for seq in old if seq <= ceiling]
        if gone:
            plan.drop.update(gone)
            plan.thread_floors[thread] = gone[-1]
        if len(gone) < len(old):
            held.update(holds.names(ceiling))
    plan.held_by = tuple(sorted(held.union(plan.held_by)))

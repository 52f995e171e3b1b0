"""Which threads an input holds, and which of them belong together.

A thread is the child of another when its first fact names that one as its parent thread, or when a
subagent of that one runs on it. A thread with its children, and theirs, is one family, and what a
person means by one run. All of this follows from facts; nothing is guessed from names or times.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from factwire.facts import Fact
from factwire.journal.filter import thread_of

TEAMMATE_CLASSES: Final = ("subagent", "worker", "agent", "channel")
"""Families of classes that tell which thread a subagent runs on."""

_NO_TEAMMATE: Final = frozenset({"worker.notification", "agent.handoff"})
_CHILD_NAMES: Final = ("subagentThreadId", "childThreadId")
_TITLED: Final = frozenset({"thread.started", "thread.updated"})


class Kin(msgspec.Struct, kw_only=True):
    """One thread: the parent that its first fact names, and the threads its subagents run on."""

    thread_id: str
    title: str | None = None
    facts: int = 0
    parent: str | None = None
    named: set[str] = msgspec.field(default_factory=set[str])


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A thread and all threads below it. `alone` is whether the input holds no other: then facts
    that name no thread are part of it, too. Without `thread_id` no fact names any.
    """

    thread_id: str | None
    members: frozenset[str]
    alone: bool

    def has(self, fact: Fact) -> bool:
        thread = thread_of(fact)
        return self.alone if thread is None else thread in self.members

    def is_main(self, fact: Fact) -> bool:
        """Whether the fact is counted by the thread's own sequence."""
        return thread_of(fact) in (None, self.thread_id)


class Kinship:
    """All threads of an input, in the order in which they were met."""

    def __init__(self) -> None:
        self.threads: dict[str, Kin] = {}
        self.facts = 0

    def note(self, fact: Fact) -> None:
        """Take in the next fact of the input."""
        self.facts += 1
        thread = thread_of(fact)
        if thread is None:
            return
        kin = self.threads.get(thread)
        if kin is None:
            kin = self.add(Kin(thread_id=thread, parent=fact.parent_thread_id))
        kin.facts += 1
        if fact.event_class in _TITLED and isinstance(fact.payload.get("title"), str):
            kin.title = fact.payload["title"]
        kin.named.update(named_children(fact))

    def add(self, kin: Kin) -> Kin:
        return self.threads.setdefault(kin.thread_id, kin)

    def roots(self) -> list[Kin]:
        """The threads that are nobody's child; of threads in a circle the first met."""
        children = self._children()
        below = {child for each in children.values() for child in each}
        free = [thread for thread in self.threads if thread not in below]
        reached = _reached(free, children)
        for thread in self.threads:
            if thread not in reached:
                free.append(thread)
                reached |= _reached([thread], children)
        return [self.threads[thread] for thread in free]

    def family(self, thread_id: str | None) -> Family:
        found = set[str]() if thread_id is None else _reached([thread_id], self._children())
        alone = len(found) == len(self.threads)
        return Family(thread_id=thread_id, members=frozenset(found), alone=alone)

    def _children(self) -> dict[str, set[str]]:
        """Thread → its children that are there, itself never among them."""
        children = {
            kin.thread_id: kin.named & self.threads.keys() - {kin.thread_id}
            for kin in self.threads.values()
        }
        for kin in self.threads.values():
            if kin.parent in children and kin.parent != kin.thread_id:
                children[kin.parent].add(kin.thread_id)
        return children


def _reached(threads: Iterable[str], children: dict[str, set[str]]) -> set[str]:
    found, waiting = set[str](), list(threads)
    while waiting:
        thread = waiting.pop()
        if thread not in found:
            found.add(thread)
            waiting += children[thread]
    return found


def named_children(fact: Fact) -> list[str]:
    """The thread that a fact about a subagent says it runs on."""
    name = fact.event_class or ""
    if name in _NO_TEAMMATE or not name.startswith(tuple(f"{it}." for it in TEAMMATE_CLASSES)):
        return []
    words = (fact.payload.get(field) for field in _CHILD_NAMES)
    return [word for word in words if isinstance(word, str) and word][:1]

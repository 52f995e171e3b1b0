"""Families: the facts of a thread and of the threads that it began, which make one screen."""

from collections.abc import Sequence

from factwire.facts import Fact, id_of

Family = tuple[str | None, tuple[Fact, ...]]
"""A thread that is nobody's child, and the facts of its screen. One that no fact names is None."""


def families(facts: Sequence[Fact]) -> list[Family]:
    """Facts by screen; a fact that names no thread belongs to the one before it."""
    parents = {
        fact.thread_id: fact.parent_thread_id
        for fact in facts
        if fact.thread_id is not None and fact.parent_thread_id is not None
    }
    found: dict[str | None, list[Fact]] = {}
    current: str | None = None
    for fact in facts:
        thread = id_of(fact, "threadId")
        if thread is not None:
            root = _root(thread, parents)
            if current is None and None in found:
                found[root] = found.pop(None)
            current = root
        found.setdefault(current, []).append(fact)
    return [(thread, tuple(own)) for thread, own in found.items()]


def _root(thread: str, parents: dict[str, str]) -> str:
    seen: set[str] = set()
    while thread in parents and thread not in seen:
        seen.add(thread)
        thread = parents[thread]
    return thread

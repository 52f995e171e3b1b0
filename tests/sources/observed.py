"""Observed programs in tests: where their facts go, and what is there afterwards."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import factwire
from factwire.facts import Fact, inspect_stream, verify
from factwire.journal import open_journal

PATIENCE = 60.0


class ObservedJournal:
    """A journal on disk that a program is observed into."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:{folder / 'observed.db'}"

    def observe_program(self, program: Callable[[], Any], **options: Any) -> list[Fact]:
        """The facts of a program; they are sound."""
        with factwire.observe(journal=self.url, **options) as observing:
            program()
            assert observing.flush(PATIENCE)
        return self.facts()

    def facts(self) -> list[Fact]:
        facts = asyncio.run(self._read())
        assert inspect_stream(facts) == []
        assert verify(facts) == []
        return facts

    async def _read(self) -> list[Fact]:
        found: list[Fact] = []
        async with open_journal(f"{self.url}?mode=ro") as journal:
            async for batch in journal.read():
                found += [fact for _, fact in batch.facts()]
        return found


def by_thread(facts: list[Fact]) -> list[list[Fact]]:
    """The facts of each thread, in the order of their beginnings."""
    threads: dict[str | None, list[Fact]] = {}
    for fact in facts:
        threads.setdefault(fact.thread_id, []).append(fact)
    return list(threads.values())


def payloads_of(facts: list[Fact], event_class: str) -> list[dict[str, Any]]:
    return [fact.payload for fact in facts if fact.event_class == event_class]


def texts(facts: list[Fact]) -> list[str]:
    return [payload["text"] for payload in payloads_of(facts, "model.completed")]


def end(facts: list[Fact]) -> str | None:
    """How the one turn of a thread ended."""
    [terminal] = [
        fact.event_class
        for fact in facts
        if fact.event_class in ("turn.completed", "turn.failed", "turn.canceled")
    ]
    return terminal

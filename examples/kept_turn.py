"""Keep a recorded turn in a journal, and go on reading where a reader stopped."""

import asyncio
import sys
from pathlib import Path

from factwire.facts import Intake
from factwire.journal import Filter, open_journal

recording = Path(__file__).with_name("first_turn.ndjson")


async def main(path: str) -> None:
    intake = Intake()
    async with open_journal(f"sqlite:{path}") as journal:
        for line in recording.read_bytes().splitlines():
            taken = intake.feed(line)
            await journal.append([taken.fact, *taken.notes])

        tools = Filter(thread="thr_1", classes=("tool",))
        async for stretch in journal.read(after="evt_011", filter=tools):
            for seq, fact in stretch.facts():
                print(f"{seq:3} {fact.event_class:12} {fact.title}")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "facts.db"))

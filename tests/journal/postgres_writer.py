"""A process that appends: `python postgres_writer.py URL NAME COUNT`; prints each place it got."""

import asyncio
import sys

from factwire.journal import open_journal
from tests.journal.contract import make_fact


async def main(url: str, name: str, count: int) -> None:
    numbers = iter(range(count))
    async with open_journal(url) as journal:

        async def produce() -> None:
            for number in numbers:
                batch = [make_fact(f"{name}-{number}-{part}", "shared") for part in range(3)]
                answer = await journal.append(batch)
                for fact, seq in zip(batch, answer.seqs, strict=True):
                    print(seq, fact.id)  # noqa: T201 - what the test reads

        await asyncio.gather(*(produce() for _ in range(8)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

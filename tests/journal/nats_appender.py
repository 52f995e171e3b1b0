"""A process that appends to a journal: `python -m tests.journal.nats_appender URL NAME BATCHES`.

It prints the seqs of each acknowledged batch as one line of JSON.
"""

import asyncio
import json
import sys

from factwire.journal.nats import NatsJournal
from tests.journal.contract import make_fact


async def main(url: str, name: str, batches: int) -> None:
    async with NatsJournal(url) as journal:

        async def produce(lane: int) -> None:
            for number in range(lane, batches, 4):
                size = number % 3 + 1
                batch = [make_fact(f"{name}-{number}-{at}", "shared") for at in range(size)]
                answer = await journal.append(batch)
                acked = {"batch": f"fact-{name}-{number}", "seqs": answer.seqs}
                sys.stdout.write(json.dumps(acked) + "\n")

        await asyncio.gather(*map(produce, range(4)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

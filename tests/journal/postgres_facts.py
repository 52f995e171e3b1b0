"""What the tests of the PostgreSQL journal read, in their words."""

from factwire.journal import Filter, Journal
from tests.journal.contract import close_after, collect, take


async def ids(journal: Journal, wanted: Filter | None = None) -> list[str]:
    """The ids of all facts, in order."""
    return [name for _, name in await collect(journal.read(filter=wanted))]


async def follow_until(journal: Journal, count: int, after: str | None = None) -> list[str]:
    """Follow until `count` facts have come; their ids."""
    async with close_after(journal.follow(after)) as batches:
        return [name for _, name in await take(batches, count)]

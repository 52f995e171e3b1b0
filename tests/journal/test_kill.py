"""kill -9 at any moment loses nothing that was acknowledged, and nothing is ever half there."""

from pathlib import Path
from random import Random
from signal import SIGKILL

import pytest

from factwire.journal import open_journal
from tests.journal.contract import WAIT, collect
from tests.journal.killed_writer import BATCH, start

ROUNDS = 200


def kill_at_random(url: str, number: int, random: Random, *, eager: bool) -> list[str]:
    """Let a writer run for a moment, kill it, and tell which batches it called acknowledged."""
    process, acks = start(url, number, eager=eager)
    acknowledged: list[str] = []
    moment = random.randrange(1, 60)
    try:
        while acks.poll(WAIT):
            acknowledged.append(acks.recv_bytes().decode())
            if len(acknowledged) == moment:
                assert process.pid is not None
                process.kill()
    except (EOFError, ConnectionError):
        pass
    process.join(WAIT)
    assert process.exitcode == -SIGKILL
    return acknowledged


async def read_stored(url: str) -> tuple[list[int], list[str]]:
    async with open_journal(url) as journal:
        assert (await journal.verify()).ok
        found = await collect(journal.read())
    return [seq for seq, _ in found], [fact_id.removeprefix("fact-") for _, fact_id in found]


def check_whole(seqs: list[int], names: list[str]) -> None:
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(set(names)) == len(names)
    for at in range(0, len(names), BATCH):
        lane = names[at].rpartition("-")[0]
        assert names[at : at + BATCH] == [f"{lane}-{part}" for part in range(BATCH)]


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.kill")
async def test_nothing_acknowledged_is_missing_after_kills(tmp_path: Path):
    random = Random(1)
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        url = f"sqlite:{tmp_path / f'journal-{number // 20}.db'}"
        acknowledged |= set(kill_at_random(url, number, random, eager=False))
        seqs, names = await read_stored(url)
        check_whole(seqs, names)
        batches = {name.rpartition("-")[0] for name in names}
        mine = {name for name in acknowledged if int(name.split("-")[0]) // 20 == number // 20}
        assert mine <= batches


@pytest.mark.fault
@pytest.mark.asyncio
async def test_answers_given_before_the_commit_would_be_lost_by_kills(tmp_path: Path):
    random = Random(2)
    url = f"sqlite:{tmp_path / 'journal.db'}"
    acknowledged: set[str] = set()
    for number in range(20):
        acknowledged |= set(kill_at_random(url, number, random, eager=True))
        seqs, names = await read_stored(url)
        check_whole(seqs, names)
        if acknowledged - {name.rpartition("-")[0] for name in names}:
            return
    pytest.fail("no round lost a fact that was acknowledged too early")

"""kill -9 of an Edge that serves: nothing acknowledged is missing, and everything goes on."""

from pathlib import Path
from random import Random
from signal import SIGKILL

import pytest

from tests.edge.edge_process import Client, new_client
from tests.edge.fault_story import Story

ROUNDS = 50
RUNS_EVERY = 5
"""Rounds between two in which runs are under way when the Edge is killed."""


async def kill_amid(story: Story, moment: int, *, runs: bool = False) -> None:
    await story.end_amid(moment, story.edge.kill, runs=runs)
    assert await story.edge.wait_for_end() == -SIGKILL


async def kill_often(story: Story, random: Random) -> None:
    for _ in range(ROUNDS):
        await story.start()
        await kill_amid(story, random.randrange(1, 20))


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("edge.faults.kill")
async def test_nothing_acknowledged_is_missing_after_an_edge_was_killed(tmp_path: Path):
    random = Random(1)
    async with new_client() as http:
        story = Story(Client(http), tmp_path)
        for number in range(ROUNDS):
            await story.start()
            await kill_amid(story, random.randrange(1, 40), runs=number % RUNS_EVERY == 0)
        await story.start()
        assert len(story.producers.acknowledged) >= ROUNDS
        await story.check_readers()


@pytest.mark.fault
@pytest.mark.asyncio
async def test_an_edge_that_answers_before_the_commit_would_lose_facts(tmp_path: Path):
    """The check above bites: answers that do not wait for the disk are lost with the process."""
    random = Random(2)
    async with new_client() as http:
        story = Story(Client(http), tmp_path, eager=True)
        with pytest.raises(AssertionError, match="was acknowledged at"):
            await kill_often(story, random)

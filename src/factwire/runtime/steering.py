"""Steers: what a person says to a turn while it runs.

A steer is a fact before anybody acts on it. The agent takes it between its steps; that is told
first, and puts the words into the conversation at that place. One that the turn never took is the
next turn: it is never lost, and never said twice.
"""

import asyncio
from typing import Any

import msgspec

from factwire.facts import Fact, read_input, write_input
from factwire.facts.spill import json_characters
from factwire.projection.queue import Steer
from factwire.runtime.errors import QueueFull, SteerTooLong
from factwire.runtime.limits import PENDING_STEERS, STEER_CHARACTERS
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.provider import SteerTaken
from factwire.runtime.submission import Submission
from factwire.runtime.thread_log import ThreadLog
from factwire.runtime.turn_queue import TurnQueue


class Steers:
    """The steers of one thread."""

    def __init__(self, log: ThreadLog, mint: Mint, queue: TurnQueue) -> None:
        self._log = log
        self._mint = mint
        self._queue = queue
        self._said: dict[str, SteerTaken] = {}
        self._taken: set[str] = set()
        self._came = asyncio.Event()

    def known(self, steer_id: str) -> Steer | None:
        """A steer that was given before."""
        steers = reversed(self._log.projection.state.queue.steers)
        return next((steer for steer in steers if steer.steer_id == steer_id), None)

    def pending(self, turn_id: str) -> list[Steer]:
        """What waits for a turn to take it, in order."""
        return [
            steer
            for steer in self._log.projection.state.queue.steers
            if steer.turn_id == turn_id
            and steer.status == "pending"
            and steer.steer_id not in self._taken
        ]

    def delivered(self, turn_id: str) -> list[SteerTaken]:
        """What a turn has taken, as far as it can be told in full."""
        steers = self._log.projection.state.queue.steers
        return [
            self._whole(steer)
            for steer in steers
            if steer.turn_id == turn_id and steer.status == "delivered"
        ]

    async def add(self, scope: Scope, said: SteerTaken) -> None:
        """Write down a steer for a turn that runs."""
        await self._add(scope, said, {}, {})

    async def turn_into_steer(self, scope: Scope, submission: Submission) -> None:
        """Take a turn out of the queue and say it to the turn that runs, in one fact."""
        said = SteerTaken(
            steer_id=submission.turn_id, text=submission.prompt, input=submission.input
        )
        fields = {"queued_turn_id": submission.turn_id}
        change = {"queuedTurnId": submission.turn_id, "change": "removed"}
        await self._add(scope, said, change, fields)
        self._queue.left(submission.turn_id)

    async def _add(
        self, scope: Scope, said: SteerTaken, change: dict[str, Any], fields: dict[str, Any]
    ) -> None:
        if len(self.pending(scope.turn_id or "")) >= PENDING_STEERS:
            raise QueueFull(f"{PENDING_STEERS} steers wait for turn {scope.turn_id} already")
        fact = self._fact(scope, said, "pending", change, **fields)
        size = json_characters(fact.payload)
        if size > STEER_CHARACTERS:
            raise SteerTooLong(size)
        self._said[said.steer_id] = said
        await self._log.write(fact)
        self._came.set()

    async def take(self, scope: Scope) -> tuple[SteerTaken, ...]:
        """Hand out what waits for a turn, told as delivered before."""
        pending = self.pending(scope.turn_id or "")
        self._taken |= {steer.steer_id or "" for steer in pending}
        self._came.clear()
        taken = tuple(map(self._whole, pending))
        for said in taken:
            self._log.put(self._fact(scope, said, "delivered", {}, message_id=_message(said)))
        if taken:
            await self._log.flush()
        for said in taken:
            self._said.pop(said.steer_id, None)
        return taken

    async def wait(self, turn_id: str) -> None:
        """Wait until something waits for a turn."""
        while not self.pending(turn_id):
            self._came.clear()
            await self._came.wait()

    def left_over(self, submission: Submission) -> list[Fact]:
        """Facts by which what a turn never took becomes the next turns, in the same order."""
        facts: list[Fact] = []
        # The last one goes first, because each goes before all others.
        for steer in reversed(self.pending(submission.turn_id)):
            said = self._whole(steer)
            asked = _asked(submission, said)
            row = {"steerId": said.steer_id, "text": said.text, "reason": "steer_not_taken"}
            facts.append(
                self._queue.first(asked, control="steer", turn_id=submission.turn_id, **row)
            )
            self._said.pop(said.steer_id, None)
        return facts

    def _whole(self, steer: Steer) -> SteerTaken:
        known = self._said.get(steer.steer_id or "")
        return known or SteerTaken(
            steer_id=steer.steer_id or steer.event_id,
            text=steer.text or "",
            input=read_input(steer.input or []),
        )

    def _fact(
        self, scope: Scope, said: SteerTaken, status: str, change: dict[str, Any], **fields: Any
    ) -> Fact:
        payload: dict[str, Any] = {"steerId": said.steer_id, "text": said.text, "status": status}
        if said.input:
            payload["input"] = write_input(said.input)
        return self._mint.fact(
            scope, "queue.changed", {**payload, **change}, control="steer", **fields
        )


def _message(said: SteerTaken) -> str:
    return f"{said.steer_id}:user"


def _asked(submission: Submission, said: SteerTaken) -> Submission:
    """The turn that a steer becomes: of the same agent, in the same place."""
    return msgspec.structs.replace(
        submission,
        turn_id=said.steer_id,
        prompt=said.text,
        input=said.input,
        retry_of=None,
        attempt=1,
        not_before=None,
    )

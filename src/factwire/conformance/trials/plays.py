"""Plays: the courses that a trial can take."""

from collections.abc import Callable
from typing import Final

import msgspec

from factwire.conformance.trials.trial import THREAD, Trial, theatre
from factwire.conformance.trials.witness import Account, Witness
from factwire.facts import Fact

TURN_PREFIX: Final = "trn_"


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One trial to be run. `make` makes the agent anew, as the start of a process does."""

    name: str
    prompt: str
    witness: Witness
    make: Callable[[], Witness]
    seconds: float

    @property
    def turn_id(self) -> str:
        return f"{TURN_PREFIX}{self.name}"

    @property
    def account(self) -> Account:
        return self.witness.account(self.turn_id)

    @property
    def last_fact(self) -> Fact | None:
        """The last fact that the agent gave."""
        given = reversed(self.account.given)
        return next((fact for fact in given if isinstance(fact, Fact)), None)


async def straight(play: Play, decision: str = "approve") -> Trial:
    """The prompt, with every request answered the same."""
    async with theatre(play.seconds) as place, place.stage(play.witness) as stage:
        await stage.submit(play.turn_id, play.prompt)
        outcome = await stage.ended(play.turn_id, decision)
        return await stage.trial(play.name, play.turn_id, outcome)


async def denied(play: Play) -> Trial:
    return await straight(play, "deny")


async def retried(play: Play) -> Trial:
    """The same turn submitted again while it runs, and once more after its end."""
    async with theatre(play.seconds) as place, place.stage(play.witness) as stage:
        submitted = [await stage.submit(play.turn_id, play.prompt) for _ in range(2)]
        outcome = await stage.ended(play.turn_id)
        submitted.append(await stage.submit(play.turn_id, play.prompt))
        await stage.ended(play.turn_id)
        return await stage.trial(play.name, play.turn_id, outcome, submitted=tuple(submitted))


async def cancelled(play: Play) -> Trial:
    """The turn is cancelled as soon as the agent has given its first fact."""
    async with theatre(play.seconds) as place, place.stage(play.witness) as stage:
        await stage.submit(play.turn_id, play.prompt)
        await stage.under_way(play.turn_id)
        thread = await stage.runtime.thread(THREAD)
        if thread.turn is not None:
            await stage.runtime.cancel(THREAD, play.turn_id, "conformance")
        outcome = await stage.ended(play.turn_id)
        return await stage.trial(play.name, play.turn_id, outcome)


async def restarted(play: Play) -> Trial:
    """The runtime stops while the agent waits; another one, with the agent made anew, goes on."""
    async with theatre(play.seconds) as place:
        async with place.stage(play.witness) as stage:
            await stage.submit(play.turn_id, play.prompt)
            outcome = await stage.ended(play.turn_id, None)
            before = await stage.trial(play.name, play.turn_id, outcome)
        if outcome != "waiting":
            return before
        async with place.stage(play.make()) as stage:
            outcome = await stage.ended(play.turn_id)
            after = await stage.trial(play.name, play.turn_id, outcome)
        account = after.account
        account.given[:0] = before.account.given
        return msgspec.structs.replace(after, waits=before.waits)

"""A witness: an agent, and a record of everything it gave before the runtime looked at it.

A runtime mends and refuses: it ends turns, redacts, spills, and stops at the first bad fact. What
an agent itself does is seen only in front of all that. The witness stands there, lets everything
through unchanged, and listens on for a moment after a turn has ended.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Literal

import msgspec

from factwire.conformance.limits import AFTER_END_FACTS, AFTER_END_SECONDS
from factwire.facts import CapabilityManifest, Fact
from factwire.facts.vocabulary import TURN_TERMINALS
from factwire.projection import ThreadReadModel
from factwire.runtime import (
    ActionAsked,
    CancelTurn,
    Decision,
    Host,
    Means,
    Mint,
    Provider,
    ReadThread,
    RespondAction,
    Scope,
    StartTurn,
    SteerTaken,
)
from factwire.runtime.agent_streams import stream_of
from factwire.runtime.standing_rules import Asked

Ending = Literal["running", "returned", "raised", "stopped"]
"""How a stream ended: by itself, by an exception, or because somebody stopped it."""


class Account(msgspec.Struct, kw_only=True):
    """What an agent did in one turn; `given` are facts, or whatever it took for facts."""

    turn_id: str
    given: list[object] = msgspec.field(default_factory=list[object])
    starts: int = 0
    ending: Ending = "running"
    error: str | None = None


class Witness:
    """The agent, watched."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.accounts: dict[str, Account] = {}

    @property
    def manifest(self) -> CapabilityManifest:
        return self.provider.manifest

    def account(self, turn_id: str) -> Account:
        return self.accounts.setdefault(turn_id, Account(turn_id=turn_id))

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        account = self.account(turn.turn_id)
        account.starts += 1
        watched = msgspec.structs.replace(turn, host=WatchedHost(turn.host, account))
        try:
            stream = stream_of(self.provider, watched)
            async with aclosing(stream) as facts, aclosing(_heard_out(facts, account)) as heard:
                async for fact in heard:
                    yield fact
            account.ending = "returned"
        except (asyncio.CancelledError, GeneratorExit):
            account.ending = "stopped" if account.ending == "running" else account.ending
            raise
        except (Exception, SystemExit) as error:
            account.ending, account.error = "raised", f"{type(error).__name__}: {error}"
            raise

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        said = await self.provider.cancel_turn(cancel)
        self.account(cancel.turn_id).given += [] if said is None else [said]
        return said

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        said = await self.provider.respond_action(respond)
        self.account(respond.turn_id).given += [] if said is None else [said]
        return said

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return await self.provider.read_thread(read)


async def _heard_out(facts: AsyncIterator[Fact], account: Account) -> AsyncGenerator[Fact]:
    """Facts as they come; at a turn's end, what the agent says after it is taken down first, since
    the runtime will not ask for it.
    """
    async for fact in facts:
        account.given.append(fact)
        if _ends(fact, account.turn_id):
            account.ending = "returned"
            await _take_down_rest(facts, account)
        yield fact


def _ends(fact: object, turn_id: str) -> bool:
    if not isinstance(fact, Fact):
        return False
    return fact.event_class in TURN_TERMINALS and fact.turn_id == turn_id


async def _take_down_rest(facts: AsyncIterator[Fact], account: Account) -> None:
    try:
        async with asyncio.timeout(AFTER_END_SECONDS):
            for _ in range(AFTER_END_FACTS):
                account.given.append(await anext(facts))
    except (StopAsyncIteration, TimeoutError):
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the turn has ended in any case
        account.error = f"after the end: {type(error).__name__}: {error}"


class WatchedHost:
    """The host of a turn; what the agent writes through it is taken down as well."""

    def __init__(self, host: Host, account: Account) -> None:
        self._host = host
        self._account = account

    @property
    def mint(self) -> Mint:
        return self._host.mint

    @property
    def scope(self) -> Scope:
        return self._host.scope

    @property
    def workspace(self) -> Path:
        return self._host.workspace

    @property
    def means(self) -> Means:
        return self._host.means

    def emit(self, *batch: Fact) -> None:
        self._account.given += batch
        self._host.emit(*batch)

    async def ask(self, asked: ActionAsked) -> Decision:
        return await self._host.ask(asked)

    def standing_rule(self, asked: Asked) -> str | None:
        return self._host.standing_rule(asked)

    async def await_open(self, action_id: str) -> Decision:
        return await self._host.await_open(action_id)

    async def applied(self, decision: Decision) -> None:
        await self._host.applied(decision)

    async def take_steers(self) -> tuple[SteerTaken, ...]:
        return await self._host.take_steers()

    async def steered(self) -> None:
        await self._host.steered()

"""Small agents to run turns with, and a runtime around them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from factwire.facts import CapabilityManifest, Fact
from factwire.journal import Journal, open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.projection import ThreadReadModel
from factwire.runtime import (
    CancelTurn,
    Decision,
    DecisionRequest,
    Host,
    ReadThread,
    RespondAction,
    Runtime,
    StartTurn,
    TurnSettings,
)
from factwire.runtime.action_cards import shown_hash
from factwire.runtime.standing_rules import GrantDuration

Script = Callable[[StartTurn], AsyncIterator[Fact]]
WAIT = 60.0
"""Seconds after which a wait in a test has failed."""


class Agent:
    """An agent whose turns are what a script says."""

    def __init__(self, script: Script, *, resume: str = "no") -> None:
        self._script = script
        self.started: list[StartTurn] = []
        self.canceled: list[CancelTurn] = []
        self.cancel_error: Exception | None = None
        self.manifest = CapabilityManifest(
            agent_id="scripted",
            title="Scripted",
            resume="yes" if resume == "yes" else "no",
        )

    def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        self.started.append(turn)
        return self._script(turn)

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        self.canceled.append(cancel)
        if self.cancel_error is not None:
            raise self.cancel_error
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:  # noqa: ARG002
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:  # noqa: ARG002
        return None


def make_fact(
    host: Host, event_class: str, payload: dict[str, Any] | None = None, **ids: Any
) -> Fact:
    return host.mint.fact(host.scope, event_class, payload, **ids)


SHOWN_HASH = shown_hash("make deploy", None)[1]
"""The hash of what `approval` shows."""


def approval(call: str | None = None, **changes: Any) -> DecisionRequest:
    fields: dict[str, Any] = {
        "action_type": "tool_approval",
        "prompt": "Run it?",
        "shown": "make deploy",
        "args_hash": SHOWN_HASH,
        "tool_call_id": call,
        **changes,
    }
    return DecisionRequest(**fields)


async def echo(turn: StartTurn) -> AsyncIterator[Fact]:
    """Says the prompt, word by word."""
    for word in turn.prompt.split():
        yield make_fact(
            turn.host, "model.delta", {"delta": f"{word} "}, message_id=f"m-{turn.turn_id}"
        )
    yield make_fact(turn.host, "model.completed", message_id=f"m-{turn.turn_id}")
    yield make_fact(turn.host, "turn.completed")


async def ask_and_obey(turn: StartTurn) -> AsyncIterator[Fact]:
    """Asks before its only tool, and does what it is told."""
    yield make_fact(turn.host, "tool.started", {"toolName": "deploy"}, tool_call_id="call")
    decision = await turn.host.ask(approval("call"))
    if decision.allowed:
        await turn.host.mark_applied(decision)
        yield make_fact(turn.host, "tool.result", {"summary": "deployed"}, tool_call_id="call")
    else:
        failure = {"failureCategory": "permission_denied"}
        yield make_fact(turn.host, "tool.failed", failure, tool_call_id="call")
    yield make_fact(turn.host, "turn.completed")


async def endless(turn: StartTurn) -> AsyncIterator[Fact]:
    """Opens a tool and never comes back."""
    yield make_fact(turn.host, "tool.started", {"toolName": "wait"}, tool_call_id="call")
    await asyncio.Event().wait()
    yield make_fact(turn.host, "turn.completed")


@asynccontextmanager
async def run_agent(
    script: Script, folder: Path, journal: Journal | None = None, **settings: Any
) -> AsyncGenerator[Runtime]:
    """A runtime with one agent, called `agent`, on a memory journal unless another is given."""
    async with open_journal("memory:") if journal is None else _borrow_journal(journal) as opened:
        options: dict[str, Any] = {"interrupt_seconds": 0.01, **settings}
        chosen = TurnSettings(**options)
        agents = {"agent": Agent(script)}
        async with Runtime(
            opened, MemoryBlobs(), agents, workspace=folder, settings=chosen
        ) as runtime:
            yield runtime


@asynccontextmanager
async def _borrow_journal(journal: Journal) -> AsyncGenerator[Journal]:
    yield journal


async def wait_for_end(runtime: Runtime, turn_id: str, thread_id: str = "thread") -> str:
    """How a turn ends, once it does."""
    async with asyncio.timeout(WAIT):
        return await (await runtime.thread(thread_id)).wait_for(turn_id)


async def open_action(runtime: Runtime, thread_id: str = "thread") -> str:
    """The first open request of a thread, once there is one."""
    log = (await runtime.thread(thread_id)).log
    arrived = asyncio.Event()
    stop = log.watch(lambda fact, _: arrived.set() if fact.action_id else None)
    try:
        async with asyncio.timeout(WAIT):
            while True:
                for action in log.projection.state.actions.values():
                    if action.status == "pending":
                        return action.action_id
                arrived.clear()
                await arrived.wait()
    finally:
        stop()


async def decide_shown(
    runtime: Runtime,
    thread_id: str,
    action_id: str,
    decision: str,
    *,
    by: str,
    reason: str | None = None,
    response: object = None,
    always: GrantDuration | None = None,
    expires_in: float | None = None,
) -> Decision:
    """Decide as a person does who reads the card first."""
    card = await runtime.read_card(thread_id, action_id)
    return await runtime.decide(
        thread_id,
        action_id,
        decision,
        by=by,
        args_hash=card.args_hash or "",
        reason=reason,
        response=response,
        always=always,
        expires_in=expires_in,
    )


async def open_tool(runtime: Runtime, thread_id: str = "thread") -> None:
    """Wait until a tool of a thread is open."""
    log = (await runtime.thread(thread_id)).log
    opened = asyncio.Event()
    stop = log.watch(lambda fact, _: opened.set() if fact.event_class == "tool.started" else None)
    try:
        async with asyncio.timeout(WAIT):
            if not log.projection.state.tools:
                await opened.wait()
    finally:
        stop()


async def facts_of(runtime: Runtime, thread_id: str = "thread") -> list[Fact]:
    found: list[Fact] = []
    async for batch in runtime.journal.read():
        found += [fact for _, fact in batch.facts() if fact.thread_id == thread_id]
    return found


def classes(facts: list[Fact]) -> list[str | None]:
    return [fact.event_class for fact in facts]

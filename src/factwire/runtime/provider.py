"""`Provider`: what any agent is to the runtime, and what the runtime is to an agent.

An agent yields facts; the runtime gives them their place, keeps them, and decides nothing about
them beyond its gates. Through its `Host` an agent asks before it acts: what the policy says, what a
person decides, and for a program to be run.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from factwire.facts import CapabilityManifest, Fact, InputPart, Person
from factwire.projection import ProjectionState, ThreadReadModel, thread_read_model
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.standing_rules import RuleSubject
from factwire.runtime.turn_resources import TurnResources


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request. Anything but `allowed` is a no."""

    action_id: str
    allowed: bool
    decision: str
    reason: str | None = None
    decided_by: Person | str | None = None
    response: Any = None


class DecisionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a person: exactly what is shown, and the hash that binds the answer to it."""

    action_type: str
    prompt: str
    shown: str
    args_hash: str
    severity: str = "medium"
    tool_call_id: str | None = None
    tool_name: str | None = None
    subagent_id: str | None = None
    requested_by: str | None = None
    rule: str | None = None
    cwd: str | None = None
    command: Any = None
    args: Any = None
    options: list[Any] | None = None
    response_schema: dict[str, Any] | None = None
    expires_in: float | None = None


class DeliveredSteer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said to the turn while it ran."""

    steer_id: str
    text: str
    input: tuple[InputPart, ...] = ()
    by: Person | None = None


class Host(Protocol):
    """What a runtime offers to the agent of one turn."""

    @property
    def mint(self) -> Mint: ...

    @property
    def scope(self) -> FactScope:
        """The ids of the turn."""
        ...

    @property
    def workspace(self) -> Path:
        """The folder that the turn may work in."""
        ...

    @property
    def resources(self) -> TurnResources:
        """What the turn may act with."""
        ...

    def emit(self, *batch: Fact) -> None:
        """Write facts beside those that the turn yields, in the order of the calls."""
        ...

    async def ask(self, request: DecisionRequest) -> Decision:
        """Ask a person, and wait; an answer that never comes is a no."""
        ...

    def standing_rule(self, subject: RuleSubject) -> str | None:
        """The rule by which a person has allowed this from then on, if one has."""
        ...

    async def await_open(self, action_id: str, shown: str | None = None) -> Decision:
        """Wait for the answer to a request that an earlier run of this turn made; `shown` is what
        would be done now, which a person is shown if it is what was asked about.
        """
        ...

    async def mark_applied(self, decision: Decision) -> None:
        """Say that a decision has been acted upon."""
        ...

    async def take_steers(self) -> tuple[DeliveredSteer, ...]:
        """What was said to the turn and not yet taken, in order, each once; to be asked for between
        steps. It is told as delivered before it is handed out.
        """
        ...

    async def wait_for_steer(self) -> None:
        """Wait until there is something to take; for an agent that can be interrupted."""
        ...


class StartTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn begins with; `resumed` is the state of one that goes on after a restart."""

    turn_id: str
    thread_id: str
    prompt: str
    host: Host
    input: tuple[InputPart, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    history: ProjectionState | None = None
    resumed: bool = False


class CancelTurn(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: str
    thread_id: str
    reason: str | None = None


class RespondAction(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: str
    thread_id: str
    decision: Decision


class ReadThread(msgspec.Struct, frozen=True, kw_only=True):
    """Which thread to read. `state` is what its facts come to, and `agent_id` the name under which
    the runtime has the agent, where it is the runtime that asks.
    """

    thread_id: str
    agent_id: str | None = None
    state: ProjectionState | None = None


def read_from_facts(read: ReadThread) -> ThreadReadModel | None:
    """The thread as its facts have it, under the name that the agent itself has for it; for agents
    that keep no thread of their own.
    """
    if read.state is None:
        return None
    model = thread_read_model(read.state)
    sessions = read.state.agent_sessions or {}
    model.session_id = sessions.get(read.agent_id or "", model.session_id)
    return model


class Provider(Protocol):
    """One agent."""

    @property
    def manifest(self) -> CapabilityManifest: ...

    def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        """Run a turn; the last fact is its terminal."""
        ...

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        """Ask a running turn to stop; a fact if there is something to say about it."""
        ...

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        """Take a decision about an `action.required` that the turn yielded itself, instead of
        asking through its host; a fact if there is something to say about it. What is raised means
        that the decision did not arrive.
        """
        ...

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        """The thread as the agent has it; one that keeps none answers with `read_from_facts`."""
        ...

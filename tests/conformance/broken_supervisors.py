"""A supervisor that keeps every rule, and supervisors that each break exactly one."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from factwire.facts import Fact
from factwire.runtime import StartTurn
from tests.conformance.reference_provider import Fresh, Reference

WORK = "the-greeting"


class Supervises(Fresh):
    """The reference, which also supervises a team: delegates, reviews, approves and finishes."""

    manifest = msgspec.structs.replace(Reference.manifest, structured_output="yes")

    def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        state = turn.options.get("teamState")
        return super().start_turn(turn) if state is None else self.supervise(turn, state)

    async def supervise(self, turn: StartTurn, state: dict[str, Any]) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "turn.completed", {"structuredOutput": self.decide(state)})

    def decide(self, state: dict[str, Any]) -> Any:
        if any(task["approved"] for task in state["tasks"]):
            return {"action": "finish", "summary": "It is done."}
        if state["limits"]["assignmentsLeft"] == 0:
            return {"action": "finish", "blocked_reason": "Nothing is left."}
        if state["assignments"]:
            return self.review()
        return self.delegate("ann" if state["lastRefusal"] is None else "ben")

    def delegate(self, worker: str) -> dict[str, Any]:
        work = {"instructions": "Write a greeting.", "subtask_id": WORK}
        return {"action": "delegate", "next_worker": worker, **work}

    def review(self) -> dict[str, Any]:
        return {"action": "review", "next_worker": "rex", "instructions": "Is it good?"}


class Hangs(Supervises):
    """Never comes to the end of its turn."""

    async def supervise(self, turn: StartTurn, state: dict[str, Any]) -> AsyncIterator[Fact]:
        del state
        yield self.build_fact(turn, "model.delta", {"delta": "Well"}, message_id="msg_well")
        await asyncio.Event().wait()


class LeavesOpen(Supervises):
    """Returns without an end of its turn."""

    async def supervise(self, turn: StartTurn, state: dict[str, Any]) -> AsyncIterator[Fact]:
        del state
        yield self.build_fact(turn, "model.completed", {"text": "Ann."}, message_id="msg_ann")


class Fails(Supervises):
    """Ends its turn as failed."""

    async def supervise(self, turn: StartTurn, state: dict[str, Any]) -> AsyncIterator[Fact]:
        del state
        failure = {"failureCategory": "no_idea", "recoveryHint": "Ask somebody else."}
        yield self.build_fact(turn, "turn.failed", failure)


class SpeaksProse(Supervises):
    """Says what it decides, and gives nothing that could be read."""

    async def supervise(self, turn: StartTurn, state: dict[str, Any]) -> AsyncIterator[Fact]:
        text = {"text": msgspec.json.encode(self.decide(state)).decode()}
        yield self.build_fact(turn, "model.completed", text, message_id=f"msg_{turn.turn_id}")
        yield self.build_fact(turn, "turn.completed")


class WrapsProse(Supervises):
    """Gives a text as its structured output."""

    def decide(self, state: dict[str, Any]) -> Any:
        return msgspec.json.encode(super().decide(state)).decode()


class DecidesTwice(Supervises):
    """Gives two decisions at once."""

    def decide(self, state: dict[str, Any]) -> Any:
        return [super().decide(state), self.delegate("ben")]


class DecidesBeside(Supervises):
    """Gives another decision as a fact of its own."""

    async def supervise(self, turn: StartTurn, state: dict[str, Any]) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "routing.decided", self.delegate("ben"))
        async for fact in super().supervise(turn, state):
            yield fact


class InventsAction(Supervises):
    """Decides something that there is not."""

    def decide(self, state: dict[str, Any]) -> Any:
        return {**super().decide(state), "action": "ponder"}


class AddsFields(Supervises):
    """Says more than a decision has room for."""

    def decide(self, state: dict[str, Any]) -> Any:
        return {**super().decide(state), "mood": "good"}


class ForgetsInstructions(Supervises):
    """Gives somebody work, and does not say which."""

    def delegate(self, worker: str) -> dict[str, Any]:
        return {**super().delegate(worker), "instructions": None}


class NamesStranger(Supervises):
    """Gives work to somebody who is not in the team."""

    def delegate(self, worker: str) -> dict[str, Any]:
        return super().delegate(f"{worker}-2")


class MixesRoles(Supervises):
    """Has an executor review."""

    def review(self) -> dict[str, Any]:
        return {**super().review(), "next_worker": "ben"}


class RenamesWork(Supervises):
    """Has work reviewed under another name than it has."""

    def review(self) -> dict[str, Any]:
        return {**super().review(), "subtask_id": "another"}


class RepeatsItself(Supervises):
    """Decides the same again after it was refused."""

    def delegate(self, worker: str) -> dict[str, Any]:
        del worker
        return super().delegate("ann")


class Overspends(Supervises):
    """Gives work although nothing is left."""

    def decide(self, state: dict[str, Any]) -> Any:
        decision = super().decide(state)
        return self.delegate("ann") if decision.get("blocked_reason") else decision


class NeverFinishes(Supervises):
    """Approves what is approved, on and on."""

    def decide(self, state: dict[str, Any]) -> Any:
        decision = super().decide(state)
        return {"action": "approve", "approved": True} if decision.get("summary") else decision


class NeedsItsMemory(Supervises):
    """Goes on only where it has begun itself."""

    def __init__(self) -> None:
        super().__init__()
        self._has_begun = False

    def decide(self, state: dict[str, Any]) -> Any:
        self._has_begun = self._has_begun or not state["assignments"]
        return super().decide(state) if self._has_begun else None


BROKEN_SUPERVISORS: dict[type[Supervises], set[str]] = {
    Hangs: {"supervisor.ends"},
    LeavesOpen: {"supervisor.ends"},
    Fails: {"supervisor.ends"},
    SpeaksProse: {"supervisor.structured"},
    WrapsProse: {"supervisor.structured"},
    DecidesTwice: {"supervisor.one-decision"},
    DecidesBeside: {"supervisor.one-decision"},
    InventsAction: {"supervisor.schema"},
    AddsFields: {"supervisor.schema"},
    ForgetsInstructions: {"supervisor.complete"},
    NamesStranger: {"supervisor.roster"},
    MixesRoles: {"supervisor.roster"},
    RenamesWork: {"supervisor.ids"},
    RepeatsItself: {"supervisor.refusal"},
    Overspends: {"supervisor.limits"},
    NeverFinishes: {"supervisor.finish"},
    NeedsItsMemory: {"supervisor.restart"},
}

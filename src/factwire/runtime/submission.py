"""A submission: what somebody asks of an agent. Its turn id is the key by which it is done once."""

from typing import Any, cast

import msgspec

from factwire.facts import Fact, InputPart, read_input
from factwire.journal import Filter, Journal


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to be run."""

    turn_id: str
    agent: str
    prompt: str
    input: tuple[InputPart, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    session_id: str | None = None
    project_id: str | None = None
    retry_of: str | None = None
    attempt: int = 1


async def submitted(journal: Journal, thread_id: str, turn_id: str) -> Submission | None:
    """What a turn was asked to do, as the journal has it."""
    wanted = Filter(thread=thread_id, turn=turn_id, classes=("turn.submitted",))
    async for stretch in journal.read(filter=wanted, limit=1):
        for _, fact in stretch.facts():
            return _submission(fact, turn_id)
    return None


def _submission(fact: Fact, turn_id: str) -> Submission:
    said = fact.payload
    return Submission(
        turn_id=turn_id,
        agent=fact.agent_id or str(said.get("agentId", "")),
        prompt=str(said.get("prompt", "")),
        input=read_input(cast("list[Any]", said.get("input", []))),
        options=cast("dict[str, Any]", said.get("options", {})),
        session_id=fact.session_id,
        project_id=fact.project_id,
        retry_of=cast("str | None", said.get("retryOf")),
        attempt=int(said.get("attempt", 1)),
    )

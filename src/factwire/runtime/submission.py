"""A submission: what somebody asks of an agent. Its turn id is the key by which it is done once.

It is kept in `turn.submitted`, and while it waits in `queue.changed`. What was too long for a fact
is read back from where it was spilled to: a turn never runs on the beginning of its prompt.
"""

from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts import Fact, InputPart, Ref, read_input, write_input
from factwire.journal import Filter, Journal
from factwire.journal.blobs import BlobStore

SubmittedAs = Literal["started", "queued", "known"]
SteeredAs = Literal["pending", "delivered", "started", "queued"]

_REF: Final = "Ref"
_WHOLE: Final = "payloadRef"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to be run. `workspace` is a real path, and `worktree` says of which commit of which
    repository it was made for the turn, if it was; before `not_before` it does not start. Its facts
    carry `trace_id`, that of whoever asked for it.
    """

    turn_id: str
    agent: str
    prompt: str
    input: tuple[InputPart, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    session_id: str | None = None
    project_id: str | None = None
    workspace: str | None = None
    worktree: dict[str, str] | None = None
    retry_of: str | None = None
    attempt: int = 1
    not_before: str | None = None
    trace_id: str | None = None

    def payload(self) -> dict[str, Any]:
        """What facts say about it."""
        said: dict[str, Any] = {
            "prompt": self.prompt,
            "agentId": self.agent,
            "input": write_input(self.input) or None,
            "options": self.options or None,
            "workspace": self.workspace,
            "worktree": self.worktree,
            "retryOf": self.retry_of,
            "attempt": self.attempt if self.retry_of is not None else None,
        }
        return {name: value for name, value in said.items() if value is not None}


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a submission; `known` is one that came before and runs only once."""

    turn_id: str
    thread_id: str
    status: SubmittedAs


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a steer. It waits for the turn to take it (`pending`), was taken
    (`delivered`), or is a turn of its own with the steer's id, which was `started` or is `queued`.
    """

    steer_id: str
    thread_id: str
    turn_id: str
    status: SteeredAs


async def submitted(
    journal: Journal, blobs: BlobStore, thread_id: str, turn_id: str
) -> Submission | None:
    """What a turn was asked to do, as the journal has it."""
    wanted = Filter(thread=thread_id, turn=turn_id, classes=("turn.submitted",))
    async for stretch in journal.read(filter=wanted, limit=1):
        for _, fact in stretch.facts():
            return _submission(fact, turn_id, await whole(blobs, fact.payload))
    return None


async def queued(
    journal: Journal, blobs: BlobStore, thread_id: str, turn_id: str
) -> Submission | None:
    """What a turn that waits was asked to do: the last that was said of it counts."""
    found: Submission | None = None
    async for stretch in journal.read(filter=Filter(thread=thread_id, classes=("queue.changed",))):
        for _, fact in stretch.facts():
            for said in _rows(fact, turn_id):
                payload = await whole(blobs, said)
                if "prompt" in payload:
                    found = _submission(fact, turn_id, payload)
    return found


def _rows(fact: Fact, turn_id: str) -> list[dict[str, Any]]:
    """What a fact says of a queued turn: by itself, or among others in a list."""
    if fact.queued_turn_id == turn_id:
        return [fact.payload]
    rows = cast("list[dict[str, Any]]", fact.payload.get("queuedTurns") or [])
    return [row for row in rows if row.get("queuedTurnId") == turn_id]


async def whole(blobs: BlobStore, payload: dict[str, Any]) -> dict[str, Any]:
    """A payload with what was spilled from it."""
    if _WHOLE in payload:
        everything = await _content(blobs, payload[_WHOLE])
        return cast("dict[str, Any]", everything) if isinstance(everything, dict) else payload
    found = dict(payload)
    for name, value in payload.items():
        own = name.removesuffix(_REF)
        if own != name and own not in payload and isinstance(value, dict):
            found[own] = await _content(blobs, cast("dict[str, Any]", value))
    return found


async def _content(blobs: BlobStore, said: Any) -> object:
    ref = msgspec.convert(said, Ref)
    data = b"".join([piece async for piece in blobs.get(ref.ref)])
    if ref.media_type == "text/plain":
        return data.decode("utf-8", "surrogatepass")
    return msgspec.json.decode(data)


def _submission(fact: Fact, turn_id: str, said: dict[str, Any]) -> Submission:
    return Submission(
        turn_id=turn_id,
        agent=str(said.get("agentId") or fact.agent_id or ""),
        prompt=str(said.get("prompt", "")),
        input=read_input(cast("list[Any]", said.get("input", []))),
        options=cast("dict[str, Any]", said.get("options", {})),
        session_id=fact.session_id,
        project_id=fact.project_id,
        workspace=cast("str | None", said.get("workspace")),
        worktree=cast("dict[str, str] | None", said.get("worktree")),
        retry_of=cast("str | None", said.get("retryOf")),
        attempt=int(said.get("attempt", 1)),
        not_before=cast("str | None", said.get("notBefore")),
        trace_id=fact.trace_id,
    )

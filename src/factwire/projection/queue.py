"""The queue: turns that wait for their turn, and text that steers the running one.

A queued turn is shown as such; it never becomes a message before it is submitted.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Queue as QueuePayload
from factwire.projection import messages
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.reading import listed, other_id, read, table, turn_of, word
from factwire.projection.runtime import PATH as RUNTIME
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/queue"


class QueuedTurn(View):
    """One turn that waits."""

    queued_turn_id: str
    prompt: str | None = None
    agent_id: str | None = None
    input: list[Any] | None = None
    options: dict[str, Any] | None = None
    status: str | None = None
    mode: str | None = None
    queued_at: str | None = None
    workspace: str | None = None
    project_id: str | None = None
    retry_of: str | None = None
    attempt: int | None = None
    not_before: str | None = None


class Steer(View):
    """Text given to a turn that was already running. One that was delivered is a message, too."""

    event_id: str
    steer_id: str | None = None
    text: str | None = None
    input: list[Any] | None = None
    status: str | None = None
    turn_id: str | None = None
    created_at: str | None = None


class Queue(View):
    """What waits, in order."""

    turns: list[QueuedTurn]
    steers: list[Steer]
    reason: str | None = None


def nothing() -> Queue:
    return Queue(turns=[], steers=[])


def changed(canvas: "Canvas", fact: Fact) -> None:
    """queue.changed: the whole list, or one turn that came, went or moved."""
    queue, said = canvas.state.queue, read(fact, QueuePayload)
    canvas.put(queue, PATH, "reason", said.reason)
    if fact.control == "steer" or word(fact.payload, "control", "mode") == "steer":
        _steer(canvas, fact)
    if said.queued_turns is not None:
        _replace(canvas, [_turn(row, fact) for row in said.queued_turns])
    else:
        _one(canvas, fact)
    count = said.queued_turn_count
    waiting = len(queue.turns) if count is None else count
    canvas.put(canvas.state.runtime, RUNTIME, "queued_turn_count", waiting)
    canvas.put(canvas.state.runtime, RUNTIME, "queue_reason", said.reason)


def left(canvas: "Canvas", fact: Fact) -> None:
    """A turn that starts waits no longer."""
    started = {turn_of(fact), other_id(fact, "queuedTurnId", "queued_turn_id")}
    turns = canvas.state.queue.turns
    kept = [turn for turn in turns if turn.queued_turn_id not in started]
    if len(kept) < len(turns):
        _replace(canvas, kept)
        canvas.put(canvas.state.runtime, RUNTIME, "queued_turn_count", len(kept))


def _replace(canvas: "Canvas", turns: list[QueuedTurn]) -> None:
    canvas.put(canvas.state.queue, PATH, "turns", turns)


def _one(canvas: "Canvas", fact: Fact) -> None:
    key = fact.queued_turn_id or other_id(fact, "queuedTurnId", "queued_turn_id")
    if key is None:
        return
    turns = canvas.state.queue.turns
    others = [turn for turn in turns if turn.queued_turn_id != key]
    change = word(fact.payload, "change", "action", "status") or ""
    if change in ("removed", "started", "cancelled", "canceled"):
        _replace(canvas, others)
        return
    turn = _turn({**fact.payload, "queuedTurnId": key}, fact)
    known = any(turn.queued_turn_id == key for turn in turns)
    if change == "promoted":
        _replace(canvas, [turn, *others])
    elif known:
        _replace(canvas, [turn if old.queued_turn_id == key else old for old in turns])
    else:
        _replace(canvas, [*others, turn])


def _turn(row: dict[str, Any], fact: Fact) -> QueuedTurn:
    return QueuedTurn(
        queued_turn_id=word(row, "queuedTurnId", "queued_turn_id", "turnId", "id") or fact.id,
        prompt=word(row, "prompt", "text", "preview"),
        agent_id=word(row, "agentId", "agent_id"),
        input=listed(row.get("input")),
        options=table(row.get("options")),
        status=word(row, "status"),
        mode=word(row, "mode"),
        queued_at=word(row, "queuedAt", "createdAt") or fact.created_at,
        workspace=word(row, "workspace"),
        project_id=word(row, "projectId"),
        retry_of=word(row, "retryOf"),
        attempt=_whole(row.get("attempt")),
        not_before=word(row, "notBefore"),
    )


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _steer(canvas: "Canvas", fact: Fact) -> None:
    """A steer that came, or what became of one; the user's words stand where they were taken."""
    steers, said = canvas.state.queue.steers, fact.payload
    key, status = word(said, "steerId", "steer_id"), word(said, "status")
    place = next((n for n, known in enumerate(steers) if key and known.steer_id == key), None)
    if place is not None:
        canvas.fill(steers[place], f"{PATH}/steers/{place}", status=status, turn_id=turn_of(fact))
    else:
        steer = Steer(
            event_id=fact.id,
            steer_id=key,
            text=word(said, "text", "prompt"),
            input=listed(said.get("input")),
            status=status,
            turn_id=turn_of(fact),
            created_at=fact.created_at,
        )
        canvas.push(steers, f"{PATH}/steers", steer, LANE_EVENTS_KEPT)
    if status == "delivered":
        messages.user_turn(canvas, fact)

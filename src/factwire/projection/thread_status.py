"""The thread itself: its title and session, what it is doing now, and which turns wait.

Status comes from facts and never from text. Of all that holds at once the strongest shows: failed,
waiting for a person, blocked, completed, running, idle. A queued turn is shown as such; it never
becomes a message before it is submitted.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.facts.classes.payloads import (
    FailurePayload,
    ModelRequestPayload,
    Person,
    QueuePayload,
    RunStatusPayload,
    TurnEndPayload,
    TurnStartPayload,
    to_person,
)
from factwire.facts.fact import Fact
from factwire.facts.json_values import list_at, number_at, object_at, text_at, whole_number_at
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import messages
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.payload_fields import (
    other_id,
    outcome_of,
    queued_turn_of,
    read_payload,
    task_of,
    turn_of,
    user_texts,
)
from factwire.projection.turns import ENDED_TURNS, is_own_run
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


AGENT_SESSIONS_PATH: Final = 32
"""Agents whose name for a thread is kept: more than ever take turns on one."""


def update_title(draft: "StateDraft", fact: Fact) -> None:
    """The title of the thread; those of a subagent's threads are not its own."""
    if fact.thread_id in (None, draft.state.thread_id):
        draft.fill(draft.state, "", title=text_at(fact.payload, "title", "name"))
        _record_agent_session(draft, fact)


def _record_agent_session(draft: "StateDraft", fact: Fact) -> None:
    """The name that an agent of the thread has for it, so that its next turn goes on with it."""
    name, agent = text_at(fact.payload, "agentSessionId"), fact.agent_id
    existing = draft.state.agent_sessions or {}
    if name is not None and agent is not None and _has_room(existing, agent):
        draft.put(draft.state, "", "agent_sessions", {**existing, agent: name})


def record_agent_usage(draft: "StateDraft", fact: Fact, usage: dict[str, Any] | None) -> None:
    """What an agent of the thread has counted on its session so far, which its next turn
    subtracts.
    """
    agent, existing = fact.agent_id, draft.state.agent_session_usage or {}
    is_own = fact.thread_id in (None, draft.state.thread_id)
    if usage is not None and agent is not None and is_own and _has_room(existing, agent):
        draft.put(draft.state, "", "agent_session_usage", {**existing, agent: usage})


def _has_room(existing: Mapping[str, object], agent: str) -> bool:
    return agent in existing or len(existing) < AGENT_SESSIONS_PATH


def identify_thread(draft: "StateDraft", fact: Fact) -> None:
    """The first fact of a thread tells whose state this is."""
    state = draft.state
    if state.session_id is None and fact.session_id is not None:
        draft.put(state, "", "session_id", fact.session_id)
    if state.thread_id is None and fact.thread_id is not None:
        draft.put(state, "", "thread_id", fact.thread_id)
    if state.runtime_id is None:
        draft.put(state, "", "runtime_id", fact.runtime_id)


RUNTIME_PATH: Final = "/runtime"

_WORK_CLASSES: Final = frozenset(
    {"model.requested", "model.completed", "reasoning.started", "plan.final", "tool.started"}
)
"""Signs that a run goes on, besides everything that streams."""

_END_PHASES: Final = {"completed": "completed", "failed": "failed", "canceled": "cancelled"}
_ENDING_PHASES: Final = frozenset(_END_PHASES.values())
_BLOCKED_PHASE: Final = "waiting"


CANCELLING: Final = "cancelling"
"""The status of a run that was asked to stop and has not ended."""


class RuntimeStatus(View):
    """The status of the thread; `status` follows from the rest. `cancelling_turn_id` was asked to
    stop and has not ended.
    """

    status: str
    phase: str
    latest_event_id: str | None
    latest_sequence: int | None
    active_turn_id: str | None = None
    active_run_id: str | None = None
    active_task_id: str | None = None
    agent_id: str | None = None
    model: str | None = None
    provider: str | None = None
    message: str | None = None
    latest_turn_id: str | None = None
    latest_turn_status: str | None = None
    cancelling_turn_id: str | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None
    blocked_reason: str | None = None
    runtime_entity: str | None = None
    runtime_status: str | None = None
    team_phase: str | None = None
    topology: str | None = None
    queue_reason: str | None = None
    queued_turn_count: int | None = None
    active_turn_count: int | None = None
    parallel_limit: int | None = None


def idle_runtime() -> RuntimeStatus:
    """The runtime of a thread of which nothing is known yet."""
    return RuntimeStatus(status="idle", phase=UNKNOWN, latest_event_id=None, latest_sequence=None)


def submit_turn(draft: "StateDraft", fact: Fact) -> None:
    """A turn that was asked for; it is not active before the runtime starts it."""
    runtime = draft.state.runtime
    if not is_own_run(draft, fact):
        return
    if runtime.active_turn_id is None:
        draft.fill(
            runtime, RUNTIME_PATH, latest_turn_id=turn_of(fact), latest_turn_status="submitted"
        )
        _clear_outcome(draft)
    draft.fill(
        runtime,
        RUNTIME_PATH,
        agent_id=fact.agent_id or read_payload(fact, TurnStartPayload).agent_id,
    )


def start_turn(draft: "StateDraft", fact: Fact) -> None:
    runtime, turn = draft.state.runtime, turn_of(fact)
    if not is_own_run(draft, fact):
        return
    draft.fill(runtime, RUNTIME_PATH, active_turn_id=turn, latest_turn_id=turn)
    draft.put(runtime, RUNTIME_PATH, "latest_turn_status", "running")
    draft.put(runtime, RUNTIME_PATH, "active_task_id", task_of(fact))
    draft.fill(
        runtime,
        RUNTIME_PATH,
        agent_id=fact.agent_id or read_payload(fact, TurnStartPayload).agent_id,
    )
    _clear_outcome(draft)


def end_turn(draft: "StateDraft", fact: Fact) -> None:
    """The end of a turn; one that is not the active turn ends without touching that."""
    runtime, turn, end = draft.state.runtime, turn_of(fact), read_payload(fact, TurnEndPayload)
    status = outcome_of(fact)
    if not is_own_run(draft, fact):
        return
    if runtime.active_turn_id not in (None, turn) and turn is not None:
        return
    for field in ("active_turn_id", "active_run_id", "active_task_id", "message"):
        draft.put(runtime, RUNTIME_PATH, field, None)
    if runtime.cancelling_turn_id is not None:
        draft.put(runtime, RUNTIME_PATH, "cancelling_turn_id", None)
        draft.put(runtime, RUNTIME_PATH, "runtime_status", None)
    _clear_outcome(draft)
    draft.fill(runtime, RUNTIME_PATH, latest_turn_id=turn, latest_turn_status=status)
    if status == "failed":
        draft.put(runtime, RUNTIME_PATH, "failure_category", end.failure_category or UNKNOWN)
        draft.put(runtime, RUNTIME_PATH, "recovery_hint", end.recovery_hint)


def update_run_status(draft: "StateDraft", fact: Fact) -> None:
    runtime, payload = draft.state.runtime, read_payload(fact, RunStatusPayload)
    if not is_own_run(draft, fact):
        return
    draft.fill(runtime, RUNTIME_PATH, message=payload.message)
    if runtime.cancelling_turn_id is None or runtime.cancelling_turn_id != turn_of(fact):
        draft.fill(runtime, RUNTIME_PATH, runtime_status=payload.status)
    if payload.status == CANCELLING:
        draft.put(runtime, RUNTIME_PATH, "cancelling_turn_id", turn_of(fact))
    if runtime.latest_turn_status not in ENDED_TURNS or runtime.active_turn_id is not None:
        draft.fill(runtime, RUNTIME_PATH, active_run_id=fact.run_id)
    if payload.status == "blocked":
        block_run(draft, fact, payload.message or fact.detail or "blocked")
    elif payload.status is not None:
        draft.put(runtime, RUNTIME_PATH, "blocked_reason", None)
    for field, names in _COUNT_FIELDS.items():
        value = number_at(fact.payload, *names)
        draft.fill(runtime, RUNTIME_PATH, **{field: None if value is None else int(value)})
    draft.fill(runtime, RUNTIME_PATH, queue_reason=text_at(fact.payload, "queueReason"))


_COUNT_FIELDS: Final = {
    "queued_turn_count": ("queuedTurnCount", "queued_turn_count"),
    "active_turn_count": ("activeTurnCount", "activeCount", "active_turn_count"),
    "parallel_limit": ("parallelLimit", "parallelBudget", "parallel_limit"),
}


def record_model_request(draft: "StateDraft", fact: Fact) -> None:
    request = read_payload(fact, ModelRequestPayload)
    if is_own_run(draft, fact):
        draft.fill(
            draft.state.runtime, RUNTIME_PATH, model=request.model, provider=request.provider
        )


def record_model_failure(draft: "StateDraft", fact: Fact) -> None:
    failure = read_payload(fact, FailurePayload)
    if is_own_run(draft, fact):
        draft.fill(draft.state.runtime, RUNTIME_PATH, message=failure.message)


def block_run(draft: "StateDraft", fact: Fact, reason: str) -> None:
    """Something keeps the thread's run from going on; the next sign of work lifts it."""
    if is_own_run(draft, fact):
        draft.put(draft.state.runtime, RUNTIME_PATH, "blocked_reason", reason)


def resume_run(draft: "StateDraft", fact: Fact, phase: str) -> None:
    """The run goes on, in this phase."""
    runtime = draft.state.runtime
    if not is_own_run(draft, fact):
        return
    if runtime.phase != phase:
        draft.put(runtime, RUNTIME_PATH, "phase", phase)
    if runtime.blocked_reason is not None:
        draft.put(runtime, RUNTIME_PATH, "blocked_reason", None)
        settle_runtime(draft)


def apply_classification(draft: "StateDraft", fact: Fact, phase: str) -> None:
    """What a fact says about the run whatever its class is."""
    runtime = draft.state.runtime
    if not is_own_run(draft, fact):
        return
    if runtime.blocked_reason is not None and fact.event_class in _WORK_CLASSES:
        draft.put(runtime, RUNTIME_PATH, "blocked_reason", None)
    stated = fact.phase or (text_at(fact.payload, "phase") if "phase" in fact.payload else None)
    stated = stated or phase
    if fact.event_class in TURN_TERMINALS and stated in _ENDING_PHASES:
        # An end of a turn that is not the active one leaves the run as it is.
        stated = _END_PHASES[outcome_of(fact)] if runtime.active_turn_id is None else UNKNOWN
    elif stated in _ENDING_PHASES and not (fact.event_class or "").startswith(("turn.", "run.")):
        # A part or a tool that has ended does not end the run, and nobody waits for an answer
        # that came.
        is_answered = fact.event_class in ACTION_CLOSERS and not draft.memory.open_actions
        stated = "acting" if is_answered and runtime.phase == _BLOCKED_PHASE else UNKNOWN
    if stated not in (UNKNOWN, runtime.phase):
        draft.put(runtime, RUNTIME_PATH, "phase", stated)
    if fact.runtime_entity or fact.runtime_status or fact.team_phase or fact.topology:
        for field in ("runtime_entity", "runtime_status", "team_phase", "topology"):
            draft.fill(runtime, RUNTIME_PATH, **{field: getattr(fact, field)})


def settle_runtime(draft: "StateDraft") -> None:
    """Let the status follow from what holds now."""
    status = _derive_status(draft)
    if status != draft.state.runtime.status:
        draft.put(draft.state.runtime, RUNTIME_PATH, "status", status)


def _derive_status(draft: "StateDraft") -> str:
    runtime = draft.state.runtime
    if runtime.latest_turn_status == "failed":
        return "failed"
    if draft.memory.open_actions:
        return _BLOCKED_PHASE
    if runtime.blocked_reason is not None:
        return "blocked"
    if runtime.latest_turn_status in ENDED_TURNS:
        return runtime.latest_turn_status or UNKNOWN
    if runtime.latest_turn_status == "stale":
        return UNKNOWN
    return "running" if runtime.latest_turn_status or runtime.active_run_id else "idle"


def _clear_outcome(draft: "StateDraft") -> None:
    for field in ("failure_category", "recovery_hint", "blocked_reason"):
        draft.put(draft.state.runtime, RUNTIME_PATH, field, None)


QUEUE_PATH: Final = "/queue"


class QueuedTurn(View):
    """One turn that waits. A `held` one was waiting when a person stopped the thread: it starts
    only when a person releases it.
    """

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
    held_at: str | None = None
    by: Person | None = None


class Steer(View):
    """Text given to a turn that was already running. One that was delivered is a message, too;
    `queued_turn_id` is the turn that waited with this text before.
    """

    event_id: str
    steer_id: str | None = None
    text: str | None = None
    input: list[Any] | None = None
    status: str | None = None
    turn_id: str | None = None
    queued_turn_id: str | None = None
    created_at: str | None = None
    by: Person | None = None


class Queue(View):
    """What waits, in order."""

    turns: list[QueuedTurn]
    steers: list[Steer]
    reason: str | None = None


def empty_queue() -> Queue:
    return Queue(turns=[], steers=[])


def update_queue(draft: "StateDraft", fact: Fact) -> None:
    """queue.changed: the whole list, or one turn that came, went or moved."""
    queue, payload = draft.state.queue, read_payload(fact, QueuePayload)
    draft.put(queue, QUEUE_PATH, "reason", payload.reason)
    if fact.control == "steer" or text_at(fact.payload, "control", "mode") == "steer":
        _record_steer(draft, fact)
    if payload.queued_turns is not None:
        _replace_queue(draft, [_to_queued_turn(row, fact) for row in payload.queued_turns])
    else:
        _update_queued_turn(draft, fact)
    count = payload.queued_turn_count
    waiting = len(queue.turns) if count is None else count
    draft.put(draft.state.runtime, RUNTIME_PATH, "queued_turn_count", waiting)
    draft.put(draft.state.runtime, RUNTIME_PATH, "queue_reason", payload.reason)


def remove_from_queue(draft: "StateDraft", fact: Fact) -> None:
    """A turn that starts waits no longer."""
    if not is_own_run(draft, fact):
        return
    started = {turn_of(fact), other_id(fact, "queuedTurnId", "queued_turn_id")}
    turns = draft.state.queue.turns
    kept = [turn for turn in turns if turn.queued_turn_id not in started]
    if len(kept) < len(turns):
        _replace_queue(draft, kept)
        draft.put(draft.state.runtime, RUNTIME_PATH, "queued_turn_count", len(kept))


def _replace_queue(draft: "StateDraft", turns: list[QueuedTurn]) -> None:
    draft.put(draft.state.queue, QUEUE_PATH, "turns", turns)


def _update_queued_turn(draft: "StateDraft", fact: Fact) -> None:
    key = fact.queued_turn_id or other_id(fact, "queuedTurnId", "queued_turn_id")
    if key is None:
        return
    turns, path = draft.state.queue.turns, f"{QUEUE_PATH}/turns"
    places = draft.memory.index_list(path, turns, attrgetter("queued_turn_id"))
    change = text_at(fact.payload, "change", "action", "status") or ""
    turn = _to_queued_turn({**fact.payload, "queuedTurnId": key}, fact)
    if key not in places and change not in _QUEUE_CHANGES:
        places[key] = len(turns)
        draft.push(turns, path, turn)
        return
    others = [turn for turn in turns if turn.queued_turn_id != key]
    if change in _REMOVED_FROM_QUEUE:
        _replace_queue(draft, others)
        return
    if change in _HOLD_CHANGES:
        _hold_queued_turn(draft, key, fact if change == "held" else None)
        return
    if change == "promoted":
        _replace_queue(draft, [turn, *others])
    else:
        _replace_queue(draft, [turn if old.queued_turn_id == key else old for old in turns])


_HOLD_CHANGES: Final = ("held", "released")
_REMOVED_FROM_QUEUE: Final = ("removed", "started", "delivered", "cancelled", "canceled")
_QUEUE_CHANGES: Final = frozenset({*_HOLD_CHANGES, *_REMOVED_FROM_QUEUE, "promoted"})
"""Changes of a queued turn that add none to the end of the queue."""


def _hold_queued_turn(draft: "StateDraft", key: str, hold: Fact | None) -> None:
    """A turn that waits is held by a fact, or waits for its turn again."""
    for place, turn in enumerate(draft.state.queue.turns):
        if turn.queued_turn_id == key:
            path = f"{QUEUE_PATH}/turns/{place}"
            draft.put(turn, path, "status", "queued" if hold is None else "held")
            draft.put(turn, path, "held_at", None if hold is None else hold.created_at)


def _to_queued_turn(row: dict[str, Any], fact: Fact) -> QueuedTurn:
    return QueuedTurn(
        queued_turn_id=text_at(row, "queuedTurnId", "queued_turn_id", "turnId", "id") or fact.id,
        prompt=text_at(row, "prompt", "text", "preview"),
        agent_id=text_at(row, "agentId", "agent_id"),
        input=list_at(row.get("input")),
        options=object_at(row.get("options")),
        status=text_at(row, "status"),
        mode=text_at(row, "mode"),
        queued_at=text_at(row, "queuedAt", "createdAt") or fact.created_at,
        workspace=text_at(row, "workspace"),
        project_id=text_at(row, "projectId"),
        retry_of=text_at(row, "retryOf"),
        attempt=whole_number_at(row, "attempt"),
        not_before=text_at(row, "notBefore"),
        held_at=fact.created_at if text_at(row, "status") == "held" else None,
        by=to_person(row.get("by")),
    )


def _record_steer(draft: "StateDraft", fact: Fact) -> None:
    """A steer that came, or what became of one; one that was delivered is a message, too."""
    steers, payload = draft.state.queue.steers, fact.payload
    key, status = text_at(payload, "steerId", "steer_id"), text_at(payload, "status")
    if status == "held":
        # What is held is the turn that the steer has become; it waits in the queue like any other.
        status = "queued"
    place = next((n for n, existing in enumerate(steers) if key and existing.steer_id == key), None)
    if place is not None:
        steer = steers[place]
        draft.fill(steer, f"{QUEUE_PATH}/steers/{place}", status=status, turn_id=turn_of(fact))
    else:
        steer = Steer(
            event_id=fact.id,
            steer_id=key,
            text=text_at(payload, "text", "prompt"),
            input=list_at(payload.get("input")),
            status=status,
            turn_id=turn_of(fact),
            queued_turn_id=queued_turn_of(fact),
            created_at=fact.created_at,
            by=to_person(payload.get("by")),
        )
        draft.push(steers, f"{QUEUE_PATH}/steers", steer, LANE_EVENTS_KEPT)
    if "delivered" in (status, text_at(payload, "change")):
        items = payload.get("input") or steer.input
        texts = user_texts({"text": steer.text, **payload, "input": items})
        messages.add_steer_message(draft, fact, key or fact.id, texts, items)

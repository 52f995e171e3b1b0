"""Runtime status: what a thread is doing now, told by facts and never by its text.

Of all that holds at once the strongest shows: failed, waiting for a person, blocked, completed,
running, idle.
"""

from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Failure, ModelRequest, RunStatus, TurnEnd, TurnStart
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.reading import number, outcome_of, read, task_of, turn_of, word
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/runtime"

_ENDED: Final = frozenset({"completed", "failed", "canceled"})
_WORK: Final = frozenset(
    {"model.requested", "model.completed", "reasoning.started", "plan.final", "tool.started"}
)
"""Signs that a run goes on, besides everything that streams."""

_ENDING_PHASES: Final = frozenset({"completed", "failed", "cancelled"})
_BLOCKED_PHASE: Final = "waiting"


class Runtime(View):
    """The status of the thread; `status` follows from the rest."""

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


def idle() -> Runtime:
    """The runtime of a thread of which nothing is known yet."""
    return Runtime(status="idle", phase=UNKNOWN, latest_event_id=None, latest_sequence=None)


def turn_submitted(canvas: "Canvas", fact: Fact) -> None:
    """A turn that was asked for; it is not active before the runtime starts it."""
    runtime = canvas.state.runtime
    if not is_own(canvas, fact):
        return
    if runtime.active_turn_id is None:
        canvas.fill(runtime, PATH, latest_turn_id=turn_of(fact), latest_turn_status="submitted")
        _clear_outcome(canvas)
    canvas.fill(runtime, PATH, agent_id=fact.agent_id or read(fact, TurnStart).agent_id)


def turn_started(canvas: "Canvas", fact: Fact) -> None:
    runtime, turn = canvas.state.runtime, turn_of(fact)
    if not is_own(canvas, fact):
        return
    canvas.fill(runtime, PATH, active_turn_id=turn, latest_turn_id=turn)
    canvas.put(runtime, PATH, "latest_turn_status", "running")
    canvas.put(runtime, PATH, "active_task_id", task_of(fact))
    canvas.fill(runtime, PATH, agent_id=fact.agent_id or read(fact, TurnStart).agent_id)
    _clear_outcome(canvas)


def turn_ended(canvas: "Canvas", fact: Fact) -> None:
    """The end of a turn; one that is not the active turn ends without touching that."""
    runtime, turn, end = canvas.state.runtime, turn_of(fact), read(fact, TurnEnd)
    status = outcome_of(fact)
    if not is_own(canvas, fact):
        return
    if runtime.active_turn_id not in (None, turn) and turn is not None:
        return
    for field in ("active_turn_id", "active_run_id", "active_task_id", "message"):
        canvas.put(runtime, PATH, field, None)
    _clear_outcome(canvas)
    canvas.fill(runtime, PATH, latest_turn_id=turn, latest_turn_status=status)
    if status == "failed":
        canvas.put(runtime, PATH, "failure_category", end.failure_category or UNKNOWN)
        canvas.put(runtime, PATH, "recovery_hint", end.recovery_hint)


def run_status(canvas: "Canvas", fact: Fact) -> None:
    runtime, said = canvas.state.runtime, read(fact, RunStatus)
    if not is_own(canvas, fact):
        return
    canvas.fill(runtime, PATH, message=said.message, runtime_status=said.status)
    if runtime.latest_turn_status not in _ENDED or runtime.active_turn_id is not None:
        canvas.fill(runtime, PATH, active_run_id=fact.run_id)
    if said.status == "blocked":
        block(canvas, said.message or fact.detail or "blocked")
    elif said.status is not None:
        canvas.put(runtime, PATH, "blocked_reason", None)
    for field, names in _COUNTS.items():
        value = number(fact.payload, *names)
        canvas.fill(runtime, PATH, **{field: None if value is None else int(value)})
    canvas.fill(runtime, PATH, queue_reason=word(fact.payload, "queueReason"))


_COUNTS: Final = {
    "queued_turn_count": ("queuedTurnCount", "queued_turn_count"),
    "active_turn_count": ("activeTurnCount", "activeCount", "active_turn_count"),
    "parallel_limit": ("parallelLimit", "parallelBudget", "parallel_limit"),
}


def model_requested(canvas: "Canvas", fact: Fact) -> None:
    asked = read(fact, ModelRequest)
    if is_own(canvas, fact):
        canvas.fill(canvas.state.runtime, PATH, model=asked.model, provider=asked.provider)


def model_failed(canvas: "Canvas", fact: Fact) -> None:
    failure = read(fact, Failure)
    canvas.fill(canvas.state.runtime, PATH, message=failure.message)


def block(canvas: "Canvas", reason: str) -> None:
    """Something keeps the run from going on; the next sign of work lifts it."""
    canvas.put(canvas.state.runtime, PATH, "blocked_reason", reason)


def at_work(canvas: "Canvas", phase: str) -> None:
    """The run goes on, in this phase."""
    runtime = canvas.state.runtime
    if runtime.phase != phase:
        canvas.put(runtime, PATH, "phase", phase)
    if runtime.blocked_reason is not None:
        canvas.put(runtime, PATH, "blocked_reason", None)
        settle(canvas)


def classified(canvas: "Canvas", fact: Fact, phase: str) -> None:
    """What a fact says about the run whatever its class is."""
    runtime = canvas.state.runtime
    if not is_own(canvas, fact):
        return
    if runtime.blocked_reason is not None and fact.event_class in _WORK:
        canvas.put(runtime, PATH, "blocked_reason", None)
    stated = fact.phase or (word(fact.payload, "phase") if "phase" in fact.payload else None)
    stated = stated or phase
    if stated in _ENDING_PHASES and not (fact.event_class or "").startswith(("turn.", "run.")):
        # A part or a tool that has ended does not end the run.
        stated = UNKNOWN
    if stated not in (UNKNOWN, runtime.phase):
        canvas.put(runtime, PATH, "phase", stated)
    if fact.runtime_entity or fact.runtime_status or fact.team_phase or fact.topology:
        for field in ("runtime_entity", "runtime_status", "team_phase", "topology"):
            canvas.fill(runtime, PATH, **{field: getattr(fact, field)})


def settle(canvas: "Canvas") -> None:
    """Let the status follow from what holds now."""
    status = _status(canvas)
    if status != canvas.state.runtime.status:
        canvas.put(canvas.state.runtime, PATH, "status", status)


def _status(canvas: "Canvas") -> str:
    runtime = canvas.state.runtime
    if runtime.latest_turn_status == "failed":
        return "failed"
    if canvas.memory.open_actions:
        return _BLOCKED_PHASE
    if runtime.blocked_reason is not None:
        return "blocked"
    if runtime.latest_turn_status in _ENDED:
        return runtime.latest_turn_status or UNKNOWN
    if runtime.latest_turn_status == "stale":
        return UNKNOWN
    return "running" if runtime.latest_turn_status or runtime.active_run_id else "idle"


def is_own(canvas: "Canvas", fact: Fact) -> bool:
    """Whether a fact is about this thread's own run, and not about that of a subagent."""
    if fact.thread_id is not None and fact.thread_id != canvas.state.thread_id:
        return False
    return fact.runtime_entity != "subagent_turn"


def _clear_outcome(canvas: "Canvas") -> None:
    for field in ("failure_category", "recovery_hint", "blocked_reason"):
        canvas.put(canvas.state.runtime, PATH, field, None)

"""Staleness: what was under way where facts were passed over, and nobody says how it went on.

A read model may stand in for facts that never came. What it states is taken; anything else that
was going on then reads `stale`: it is neither shown as live nor given an end that nobody stated.
The next fact about it moves it on; a text is whole again once the whole of it was said.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from factwire.projection import coding, context, processes, subagents, tasks, team
from factwire.projection.alignment import align
from factwire.projection.messages import grow_stale
from factwire.projection.parts import Message, ReasoningPart, TextPart
from factwire.projection.pointers import escaped
from factwire.projection.reasoning import PLANS
from factwire.projection.timeline import part_key

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

STALE: Final = "stale"

_RUNNING: Final = frozenset({"running"})
_TASKS: Final = frozenset(
    {
        *("preparing", "running", "retrying", "cancelling"),
        *("waiting_input", "waiting_permission", "waiting_resource"),
    }
)
"""What claims that somebody is at it now; a task that only waits in a list claims nothing."""


def texts(canvas: "Canvas", over: Collection[str], *, missed: bool) -> None:
    """Open texts of turns that are over, and all of the thread's own where facts were missed."""
    own = (None, canvas.state.thread_id)
    for path, message in canvas.memory.open_messages_in_order():
        if message.turn_id in over or (missed and message.thread_id in own):
            grow_stale(canvas, message, path)
            for key in _stale_keys(message):
                align(canvas, key, STALE)


def _stale_keys(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart | ReasoningPart) and part.state == STALE:
            kind = "text" if isinstance(part, TextPart) else "reasoning"
            yield f"{kind}:{part_key(message, part)}"


def work(canvas: "Canvas") -> None:
    """Everything else that a read model does not speak of."""
    _plans(canvas)
    _things(canvas)
    _attempts(canvas)
    _compactions(canvas)
    _team(canvas)


def _plans(canvas: "Canvas") -> None:
    for key, plan in canvas.state.plans.items():
        if plan.state == "streaming":
            canvas.put(plan, f"{PLANS}/{escaped(key)}", "state", STALE)
            align(canvas, f"plan:{plan.turn_id}", STALE)


def _things(canvas: "Canvas") -> None:
    state = canvas.state
    surfaces: tuple[tuple[dict[str, Any], str, tuple[str, ...], frozenset[str]], ...] = (
        (state.tasks, tasks.PATH, ("task",), _TASKS),
        (state.jobs, tasks.JOBS, ("job",), _RUNNING),
        (state.subagents.threads, subagents.THREADS, ("subagent",), subagents.ACTIVE),
        (state.processes, processes.PATH, ("process", "command"), _RUNNING),
        (state.hooks, processes.HOOKS, ("hook",), _RUNNING),
        (state.coding.patches, f"{coding.PATH}/patches", ("patch",), _RUNNING),
        (state.coding.tests, f"{coding.PATH}/tests", ("test",), _RUNNING),
    )
    for things, path, names, under_way in surfaces:
        for key, thing in things.items():
            if thing.status in under_way:
                canvas.put(thing, f"{path}/{escaped(key)}", "status", STALE)
                for name in names:
                    align(canvas, f"{name}:{key}", STALE)


def _attempts(canvas: "Canvas") -> None:
    for key, task in canvas.state.tasks.items():
        for place, attempt in enumerate(task.attempts):
            if attempt.status == "running":
                path = f"{tasks.PATH}/{escaped(key)}/attempts/{place}"
                canvas.put(attempt, path, "status", STALE)
                align(canvas, f"attempt:{attempt.attempt_id}", STALE)


def _compactions(canvas: "Canvas") -> None:
    for place, boundary in enumerate(canvas.state.context.compactions):
        if boundary.status == "running":
            canvas.put(boundary, f"{context.PATH}/compactions/{place}", "status", STALE)
            align(canvas, f"compaction:{place + 1}", STALE)


def _team(canvas: "Canvas") -> None:
    """Roster, board and the list of the active say what members and tasks say."""
    state, bench = canvas.state, canvas.state.team_workbench
    active = [key for key in state.subagents.active_thread_ids if not _is_stale(canvas, key)]
    canvas.put(state.subagents, subagents.PATH, "active_thread_ids", active)
    for key, member in bench.roster_nodes.items():
        if _is_stale(canvas, key):
            canvas.put(member, f"{team.PATH}/rosterNodes/{escaped(key)}", "status", STALE)
    for key, item in bench.work_items.items():
        if key in state.tasks and state.tasks[key].status == STALE:
            canvas.put(item, f"{team.PATH}/workItems/{escaped(key)}", "status", STALE)


def _is_stale(canvas: "Canvas", member: str) -> bool:
    thread = canvas.state.subagents.threads.get(member)
    return thread is not None and thread.status == STALE

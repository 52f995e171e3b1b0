"""A read model drawn onto a state: the first screen, or the repair of what a stream lost.

What a newer read model states is the owner's word and is taken: open requests, calls with their
states, the active turn and how the last one ended, the queue. A request that it no longer lists is
closed. What was under way and it does not speak of reads `stale`. It reopens no call that has
ended and takes away no failure. One that is older than the state changes nothing but a mark.
"""

from collections.abc import Collection
from copy import deepcopy
from typing import Final

from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import actions, permissions, queue, runtime, staleness, tools
from factwire.projection.alignment import align
from factwire.projection.canvas import Canvas
from factwire.projection.diagnostics import keep
from factwire.projection.pointers import escaped
from factwire.projection.read_models import ThreadReadModel, ToolCallSummary
from factwire.projection.staleness import STALE
from factwire.projection.text import Text
from factwire.projection.tools import Tool

PATH: Final = "/readModel"

_OVER: Final = {"completed": "completed", "failed": "failed", "canceled": "cancelled"}
"""How a turn may have ended, and the phase of a run that has ended so."""

_ENTRIES: Final = {
    "output-available": "completed",
    "output-error": "failed",
    "cancelled": "canceled",
    STALE: STALE,
}
"""State of a call → status of its entry; in any other state it runs."""


def is_older(canvas: Canvas, model: ThreadReadModel) -> bool:
    """Whether the state has come further than the read model."""
    cursor = canvas.state.hydration.cursor
    return cursor is not None and (model.event_cursor is None or model.event_cursor < cursor)


def mark_stale(canvas: Canvas) -> None:
    canvas.put(canvas.state.read_model, PATH, "stale", value=True)


def draw(canvas: Canvas, model: ThreadReadModel, *, missed: bool) -> None:
    """Bring a state in line with a read model that is at least as new; `missed` when it stands in
    for facts that are not in the state.
    """
    model = deepcopy(model)
    over = _turns_over(canvas, model)
    _note(canvas, model)
    _draw_actions(canvas, model, missed=missed)
    _draw_tools(canvas, model, over, missed=missed)
    _draw_queue(canvas, model)
    _draw_turns(canvas, model, over, missed=missed)
    _draw_runtime(canvas, model, missed=missed)
    staleness.texts(canvas, over, missed=missed)
    permissions.forget(canvas, over, every=missed)
    if missed:
        staleness.work(canvas)
    for remark in model.diagnostics:
        if remark.diagnostic_id not in canvas.state.diagnostics.items:
            keep(canvas, remark)


def _turns_over(canvas: Canvas, model: ThreadReadModel) -> set[str]:
    """Turns that the state may have under way and that are over by the read model."""
    ended = model.last_outcome.turn_id if model.last_outcome else None
    return {
        turn
        for turn in (canvas.state.runtime.active_turn_id, ended)
        if turn is not None and turn != model.active_turn_id
    }


def _note(canvas: Canvas, model: ThreadReadModel) -> None:
    state = canvas.state
    if state.thread_id is None:
        canvas.put(state, "", "thread_id", model.thread_id)
    if state.session_id is None:
        canvas.put(state, "", "session_id", model.session_id)
    if state.runtime_id is None:
        canvas.put(state, "", "runtime_id", model.runtime_id)
    canvas.put(state.read_model, PATH, "stale", None)
    canvas.put(state.read_model, PATH, "event_cursor", model.event_cursor)
    canvas.put(state.read_model, PATH, "history_cursor", model.history_cursor)
    canvas.put(state.read_model, PATH, "status", model.status)


def _draw_actions(canvas: Canvas, model: ThreadReadModel, *, missed: bool) -> None:
    listed = {action.action_id for action in model.pending_actions}
    known, pending = canvas.state.actions, canvas.memory.open_actions
    for action_id in [key for key in known if key in pending and key not in listed]:
        actions.close_absent(canvas, action_id)
        align(canvas, f"action:{action_id}", known[action_id].status)
    for action in model.pending_actions:
        key = action.action_id
        if key not in known or (missed and key not in pending):
            action.status = "pending"
            canvas.create(known, actions.PATH, key, action)
            pending[key] = None
            align(canvas, f"action:{key}", "blocked", node="pending")


def _draw_tools(
    canvas: Canvas, model: ThreadReadModel, over: Collection[str], *, missed: bool
) -> None:
    listed = {call.tool_call_id for call in model.tool_calls}
    for call in model.tool_calls:
        known = canvas.state.tools.get(call.tool_call_id)
        if known is None:
            _add_tool(canvas, call)
        elif not tools.has_ended(known):
            _catch_up(canvas, known, call)
    for key in canvas.memory.open_tools_in_order():
        tool, path = canvas.state.tools[key], f"{tools.PATH}/{escaped(key)}"
        if missed and key not in listed and not _is_elsewhere(canvas, tool.subagent_id):
            canvas.put(tool, path, "state", STALE)
            _tell_tool(canvas, tool)
        if tool.turn_id in over:
            canvas.put(tool, path, "unclosed", value=True)
            del canvas.memory.open_tools[key]


def _add_tool(canvas: Canvas, call: ToolCallSummary) -> None:
    tool = Tool(
        tool_call_id=call.tool_call_id,
        state=call.state,
        args_text=Text(),
        output_text=Text(),
        output_characters=0,
        tool_name=call.tool_name,
        title=call.title,
        turn_id=call.turn_id,
        subagent_id=call.subagent_id,
        output_ref=call.output_ref,
        failure_category=call.failure_category,
        started_at=call.started_at,
        completed_at=call.completed_at,
    )
    canvas.create(canvas.state.tools, tools.PATH, call.tool_call_id, tool)
    if tools.is_open(tool):
        canvas.memory.open_tool(call.tool_call_id)


def _catch_up(canvas: Canvas, tool: Tool, call: ToolCallSummary) -> None:
    """The owner's own record of a call whose end is not known here."""
    path = f"{tools.PATH}/{escaped(tool.tool_call_id)}"
    changed = tool.state != call.state
    canvas.put(tool, path, "state", call.state)
    canvas.fill(
        tool,
        path,
        output_ref=call.output_ref,
        failure_category=call.failure_category,
        completed_at=call.completed_at,
    )
    if tools.has_ended(tool):
        canvas.put(tool, path, "unclosed", None)
        canvas.memory.open_tools.pop(tool.tool_call_id, None)
    if changed:
        _tell_tool(canvas, tool)


def _tell_tool(canvas: Canvas, tool: Tool) -> None:
    tools.show(canvas, tool)
    status = _ENTRIES.get(tool.state, "running")
    key = f"tool:{tool.tool_call_id}"
    align(canvas, key, status, node=tool.state, at=tool.completed_at)


def _is_elsewhere(canvas: Canvas, subagent_id: str | None) -> bool:
    """Whether a subagent speaks on a thread of its own, of which a read model says nothing."""
    thread = canvas.state.subagents.threads.get(subagent_id or "")
    return thread is not None and thread.thread_id not in (None, canvas.state.thread_id)


def _draw_queue(canvas: Canvas, model: ThreadReadModel) -> None:
    if model.queued_turns != canvas.state.queue.turns:
        canvas.put(canvas.state.queue, queue.PATH, "turns", model.queued_turns)
        waiting = len(model.queued_turns)
        canvas.put(canvas.state.runtime, runtime.PATH, "queued_turn_count", waiting)


def _draw_turns(
    canvas: Canvas, model: ThreadReadModel, over: Collection[str], *, missed: bool
) -> None:
    """Turns and runs that are under way in timeline and graph."""
    for entry in canvas.state.timeline:
        kind, _, key = entry.entry_id.partition(":")
        if kind not in ("turn", "run") or entry.status in _OVER:
            continue
        turn = key if kind == "turn" else entry.turn_id
        status = _told(model, turn)
        if status is None and turn in over:
            status = STALE
        elif status is None and missed and not _is_elsewhere(canvas, entry.subagent_id):
            status = None if _is_waiting(canvas, model, turn) else STALE
        if status is not None and (status != "running" or kind == "turn"):
            align(canvas, entry.entry_id, status)


def _told(model: ThreadReadModel, turn: str | None) -> str | None:
    """What a read model says of a turn."""
    if turn is None:
        return None
    if turn == model.active_turn_id:
        return "running"
    outcome = model.last_outcome
    return outcome.status if outcome is not None and outcome.turn_id == turn else None


def _is_waiting(canvas: Canvas, model: ThreadReadModel, turn: str | None) -> bool:
    """Whether a turn that was asked for has still to be started."""
    if any(queued.queued_turn_id == turn for queued in model.queued_turns):
        return True
    asked = canvas.state.runtime.latest_turn_id == turn
    return asked and model.status == "running" and model.active_turn_id is None


def _draw_runtime(canvas: Canvas, model: ThreadReadModel, *, missed: bool) -> None:
    now, active = canvas.state.runtime, model.active_turn_id
    was, moved = now.active_turn_id, missed or now.phase == UNKNOWN
    if was != active or (missed and active is None):
        for field in ("active_run_id", "active_task_id", "message"):
            canvas.put(now, runtime.PATH, field, None)
    canvas.put(now, runtime.PATH, "active_turn_id", active)
    _draw_latest_turn(canvas, model, was)
    if model.status not in ("failed", "waiting"):
        # These two stand before a block, and leave open whether there is one.
        reason = now.blocked_reason or "blocked" if model.status == "blocked" else None
        canvas.put(now, runtime.PATH, "blocked_reason", reason)
    if moved or was != active:
        canvas.put(now, runtime.PATH, "phase", _phase(canvas))
    runtime.settle(canvas)


def _draw_latest_turn(canvas: Canvas, model: ThreadReadModel, was: str | None) -> None:
    now, outcome = canvas.state.runtime, model.last_outcome
    if model.active_turn_id is not None:
        outcome, turn, status = None, model.active_turn_id, "running"
    elif outcome is not None:
        turn, status = outcome.turn_id, outcome.status
    else:
        status = _unstated(now, model, was)
        same = status in (now.latest_turn_status, STALE)
        turn = now.latest_turn_id if same else None  # Of which turn, nobody says.
    canvas.put(now, runtime.PATH, "latest_turn_id", turn)
    canvas.put(now, runtime.PATH, "latest_turn_status", status)
    category, hint = (outcome.failure_category, outcome.recovery_hint) if outcome else (None, None)
    canvas.put(now, runtime.PATH, "failure_category", category)
    canvas.put(now, runtime.PATH, "recovery_hint", hint)


def _unstated(now: "runtime.Runtime", model: ThreadReadModel, was: str | None) -> str | None:
    """The status of the latest turn by a read model that names neither an active one nor an end."""
    if model.status in _OVER:
        return model.status
    if model.status == "idle":
        return None
    if model.status == "running":
        # A thread that runs without a started turn has one that was asked for, or a run of none.
        return None if now.active_run_id and not now.latest_turn_status else "submitted"
    return STALE if was is not None else now.latest_turn_status


def _phase(canvas: Canvas) -> str:
    if canvas.memory.open_actions:
        return "waiting"
    return _OVER.get(canvas.state.runtime.latest_turn_status or "", UNKNOWN)

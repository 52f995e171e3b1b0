"""A read model drawn onto a state: the first screen, or the repair of what a stream lost.

A read model closes an action by no longer listing it, and adds what the state has never heard of.
It completes no tool that is open, reopens nothing that is closed, and takes away no failure. One
that is older than the state changes nothing but a mark that it came.
"""

from copy import deepcopy
from typing import Final

from factwire.projection import actions, queue, runtime, tools
from factwire.projection.canvas import Canvas
from factwire.projection.diagnostics import ITEMS as DIAGNOSTICS
from factwire.projection.read_models import ThreadReadModel, ToolCallSummary
from factwire.projection.text import Text
from factwire.projection.tools import Tool

PATH: Final = "/readModel"


def is_older(canvas: Canvas, model: ThreadReadModel) -> bool:
    """Whether the state has come further than the read model."""
    cursor = canvas.state.hydration.cursor
    return cursor is not None and (model.event_cursor is None or model.event_cursor < cursor)


def mark_stale(canvas: Canvas) -> None:
    canvas.put(canvas.state.read_model, PATH, "stale", value=True)


def draw(canvas: Canvas, model: ThreadReadModel) -> None:
    """Bring a state in line with a read model that is at least as new."""
    model = deepcopy(model)
    _note(canvas, model)
    _draw_actions(canvas, model)
    for call in model.tool_calls:
        _draw_tool(canvas, call)
    canvas.put(canvas.state.queue, queue.PATH, "turns", model.queued_turns)
    _draw_runtime(canvas, model)
    for remark in model.diagnostics:
        if remark.diagnostic_id not in canvas.state.diagnostics.items:
            kept = canvas.state.diagnostics.items
            canvas.create(kept, DIAGNOSTICS, remark.diagnostic_id, remark)


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


def _draw_actions(canvas: Canvas, model: ThreadReadModel) -> None:
    listed = {action.action_id for action in model.pending_actions}
    known = canvas.memory.open_actions
    for action_id in [key for key in canvas.state.actions if key in known and key not in listed]:
        actions.close_absent(canvas, action_id)
    for action in model.pending_actions:
        if action.action_id not in canvas.state.actions:
            action.status = "pending"
            canvas.create(canvas.state.actions, actions.PATH, action.action_id, action)
            canvas.memory.open_actions[action.action_id] = None


def _draw_tool(canvas: Canvas, call: ToolCallSummary) -> None:
    """Only a call that the state does not know is taken over; its own facts tell of the others."""
    if call.tool_call_id in canvas.state.tools:
        return
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
    if call.completed_at is None:
        canvas.memory.open_tool(call.tool_call_id)


def _draw_runtime(canvas: Canvas, model: ThreadReadModel) -> None:
    now, outcome = canvas.state.runtime, model.last_outcome
    canvas.put(now, runtime.PATH, "active_turn_id", model.active_turn_id)
    if model.active_turn_id is not None:
        canvas.put(now, runtime.PATH, "latest_turn_id", model.active_turn_id)
        canvas.put(now, runtime.PATH, "latest_turn_status", "running")
    elif outcome is not None:
        canvas.fill(now, runtime.PATH, latest_turn_id=outcome.turn_id)
        canvas.put(now, runtime.PATH, "latest_turn_status", outcome.status)
        canvas.put(now, runtime.PATH, "failure_category", outcome.failure_category)
        canvas.put(now, runtime.PATH, "recovery_hint", outcome.recovery_hint)
    runtime.settle(canvas)

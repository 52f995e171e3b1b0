"""Merging a read model into a state: the first screen, or the repair of what a stream lost.

What a newer read model states comes from the owner and is taken: open requests, calls with their
states, the active turn and how the last one ended, the queue, and the rows of the conversation and
of the work where it carries them. A request that it no longer lists is closed. Anything else that
was under way where facts were missed reads `stale`: it is neither shown as live nor given an end
that nobody stated. Timeline and graph follow, so that no surface contradicts another.
"""

from collections.abc import Collection, Iterator
from copy import deepcopy
from typing import Any, Final

from factwire.facts.json_patch import escape_key
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import (
    actions,
    coding,
    graph,
    hydration,
    model_usage,
    subagents,
    tasks,
    team,
    thread_status,
    timeline,
    tools,
    turns,
)
from factwire.projection.diagnostics import keep_diagnostic
from factwire.projection.draft import StateDraft
from factwire.projection.messages import Message, ReasoningPart, TextPart, mark_message_stale
from factwire.projection.read_model_rows import STALE, copy_fields, merge_rows, message_key
from factwire.projection.read_models import (
    FAILED_TURN,
    ThreadReadModel,
    ToolCallSummary,
    incident_id,
)
from factwire.projection.reasoning import PLANS_PATH
from factwire.projection.timeline import part_entry_key
from factwire.projection.tools import Tool
from factwire.projection.turns import ENDED_TURNS
from factwire.projection.views import Text


def align_timeline_and_graph(
    draft: "StateDraft", key: str, status: str, *, node: str | None = None, at: str | None = None
) -> None:
    """Give the entry and the node of a subject its status; `node` where a node has its own word."""
    place = draft.memory.entries.get(key)
    if place is not None:
        entry = draft.state.timeline[place]
        timeline.set_entry_status(draft, place, status, at or entry.completed_at)
    existing = draft.state.graph.nodes.get(key)
    if existing is not None:
        path = f"{graph.GRAPH_NODES_PATH}/{escape_key(key)}"
        draft.put(existing, path, "status", node or status)
        draft.fill(existing, path, completed_at=at)


_RUNNING_STATUS: Final = frozenset({"running"})
_ACTIVE_TASK_STATES: Final = frozenset(
    {
        *("preparing", "running", "retrying", "cancelling"),
        *("waiting_input", "waiting_permission", "waiting_resource"),
    }
)
"""What claims that somebody is at it now; a task that only waits in a list claims nothing."""


def mark_texts_stale(
    draft: "StateDraft", over: Collection[str], stated: Collection[str], *, missed: bool
) -> None:
    """Open texts of turns that are over, and all of the thread's own where facts were missed that
    the read model does not state.
    """
    own = (None, draft.state.thread_id)
    for path, message in draft.memory.open_messages_in_order():
        lacks_facts = missed and message.thread_id in own and message_key(message) not in stated
        if message.turn_id in over or lacks_facts:
            mark_message_stale(draft, message, path)
            for key in _stale_keys(message):
                align_timeline_and_graph(draft, key, STALE)


def _stale_keys(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart | ReasoningPart) and part.state == STALE:
            kind = "text" if isinstance(part, TextPart) else "reasoning"
            yield f"{kind}:{part_entry_key(message, part)}"


def mark_work_stale(draft: "StateDraft", stated: Collection[str]) -> None:
    """Everything else that a read model does not speak of."""
    _mark_plans(draft)
    _mark_running(draft, stated)
    _mark_attempts(draft, stated)
    _mark_compactions(draft)
    _mark_team(draft)


def _mark_plans(draft: "StateDraft") -> None:
    for key, plan in draft.state.plans.items():
        if plan.state == "streaming":
            draft.put(plan, f"{PLANS_PATH}/{escape_key(key)}", "state", STALE)
            align_timeline_and_graph(draft, f"plan:{plan.turn_id}", STALE)


def _mark_running(draft: "StateDraft", stated: Collection[str]) -> None:
    state = draft.state
    surfaces: tuple[tuple[dict[str, Any], str, tuple[str, ...], frozenset[str]], ...] = (
        (state.tasks, tasks.TASKS_PATH, ("task",), _ACTIVE_TASK_STATES),
        (state.jobs, tasks.JOBS_PATH, ("job",), _RUNNING_STATUS),
        (
            state.subagents.threads,
            subagents.SUBAGENT_THREADS_PATH,
            ("subagent",),
            subagents.ACTIVE_STATES,
        ),
        (state.processes, coding.PROCESSES_PATH, ("process", "command"), _RUNNING_STATUS),
        (state.hooks, coding.HOOKS_PATH, ("hook",), _RUNNING_STATUS),
        (state.coding.patches, f"{coding.CODING_PATH}/patches", ("patch",), _RUNNING_STATUS),
        (state.coding.tests, f"{coding.CODING_PATH}/tests", ("test",), _RUNNING_STATUS),
    )
    for things, path, names, under_way in surfaces:
        for key, thing in things.items():
            if thing.status in under_way and f"{names[0]}:{key}" not in stated:
                draft.put(thing, f"{path}/{escape_key(key)}", "status", STALE)
                for name in names:
                    align_timeline_and_graph(draft, f"{name}:{key}", STALE)


def _mark_attempts(draft: "StateDraft", stated: Collection[str]) -> None:
    for key, task in draft.state.tasks.items():
        for place, attempt in enumerate(task.attempts):
            if attempt.status == "running" and f"task:{key}" not in stated:
                path = f"{tasks.TASKS_PATH}/{escape_key(key)}/attempts/{place}"
                draft.put(attempt, path, "status", STALE)
                align_timeline_and_graph(draft, f"attempt:{attempt.attempt_id}", STALE)


def _mark_compactions(draft: "StateDraft") -> None:
    for place, boundary in enumerate(draft.state.context.compactions):
        if boundary.status == "running":
            draft.put(boundary, f"{model_usage.CONTEXT_PATH}/compactions/{place}", "status", STALE)
            align_timeline_and_graph(draft, f"compaction:{place + 1}", STALE)


def _mark_team(draft: "StateDraft") -> None:
    """Roster, board and the list of the active say what members and tasks say."""
    state, workbench = draft.state, draft.state.team_workbench
    active = [key for key in state.subagents.active_thread_ids if not _is_stale(draft, key)]
    draft.put(state.subagents, subagents.SUBAGENTS_PATH, "active_thread_ids", active)
    for key, member in workbench.roster_nodes.items():
        if _is_stale(draft, key):
            draft.put(member, f"{team.TEAM_PATH}/rosterNodes/{escape_key(key)}", "status", STALE)
    for key, item in workbench.work_items.items():
        if key in state.tasks and state.tasks[key].status == STALE:
            draft.put(item, f"{team.TEAM_PATH}/workItems/{escape_key(key)}", "status", STALE)


def _is_stale(draft: "StateDraft", member: str) -> bool:
    thread = draft.state.subagents.threads.get(member)
    return thread is not None and thread.status == STALE


READ_MODEL_PATH: Final = "/readModel"

_END_PHASES: Final = {"completed": "completed", "failed": "failed", "canceled": "cancelled"}
"""How a turn may have ended, and the phase of a run that has ended so."""

_ENTRIES: Final = {
    "output-available": "completed",
    "output-error": "failed",
    "cancelled": "canceled",
    STALE: STALE,
}
"""State of a call → status of its entry; in any other state it runs."""


_ACTION_ENTRIES: Final = {"resolved": "completed", "cancelled": "canceled"}
"""Status of an action that is over → status of its entry, where that has another word."""


def is_older_read_model(draft: StateDraft, model: ThreadReadModel) -> bool:
    """Whether the state has come further than the read model."""
    cursor = draft.state.hydration.cursor
    return cursor is not None and (model.event_cursor is None or model.event_cursor < cursor)


def mark_read_model_stale(draft: StateDraft) -> None:
    draft.put(draft.state.read_model, READ_MODEL_PATH, "stale", value=True)


def merge_read_model(draft: StateDraft, model: ThreadReadModel, *, missed: bool) -> None:
    """Bring a state in line with a read model that is at least as new; `missed` when it stands in
    for facts that are not in the state.
    """
    model = deepcopy(model)
    over = _find_ended_turns(draft, model)
    _note_read_model(draft, model)
    merged = merge_rows(draft, model, missed=missed)
    for key, status, node in merged.changed:
        align_timeline_and_graph(draft, key, status, node=node)
    _merge_actions(draft, model, missed=missed)
    _merge_tools(draft, model, over, missed=missed)
    _merge_queue(draft, model)
    if model.shared is not None and (missed or not draft.state.shared):
        draft.put(draft.state, "", "shared", model.shared)
    _merge_turns(draft, model, over, missed=missed)
    _merge_runtime(draft, model, missed=missed)
    _merge_turn_records(draft, model, over)
    mark_texts_stale(draft, over, merged.stated, missed=missed)
    actions.forget_permissions(draft, over, every=missed)
    if missed:
        mark_work_stale(draft, merged.stated)
    latest = {remark.diagnostic_id for remark in model.diagnostics}
    earlier = [remark for remark in model.incidents if remark.diagnostic_id not in latest]
    shown = {*draft.state.diagnostics.items, *map(incident_id, draft.state.turns.values())}
    for remark in (*earlier, *model.diagnostics):
        is_own_turn = remark.diagnostic_id == f"{FAILED_TURN}{remark.turn_id}"
        if not is_own_turn and remark.diagnostic_id not in shown:
            keep_diagnostic(draft, remark)


def settle_doubts(draft: StateDraft, model: ThreadReadModel, *, missed: bool) -> None:
    """A read model settles what was in doubt, unless it says nothing of it or doubts it, too. One
    without messages settles nothing about the texts that were missed.
    """
    doubts = set(model.doubts or ())
    doubts |= {"state_delta_failed"} if model.shared is None else set()
    for reason in draft.state.hydration.reasons:
        if reason not in doubts:
            hydration.clear_doubt(draft, reason)
    for reason in model.doubts or ():
        if reason not in draft.state.hydration.reasons:
            hydration.add_doubt(draft, reason, model.event_cursor)
    if missed and model.messages is None:
        hydration.add_doubt(draft, "messages_missing", model.event_cursor)


def _find_ended_turns(draft: StateDraft, model: ThreadReadModel) -> set[str]:
    """Turns that the state may have under way and that are over by the read model."""
    ended = model.last_outcome.turn_id if model.last_outcome else None
    return {
        turn
        for turn in (draft.state.runtime.active_turn_id, ended)
        if turn is not None and turn != model.active_turn_id
    }


def _note_read_model(draft: StateDraft, model: ThreadReadModel) -> None:
    state = draft.state
    if state.thread_id is None:
        draft.put(state, "", "thread_id", model.thread_id)
    if state.session_id is None:
        draft.put(state, "", "session_id", model.session_id)
    if state.runtime_id is None:
        draft.put(state, "", "runtime_id", model.runtime_id)
    draft.put(state.read_model, READ_MODEL_PATH, "stale", None)
    draft.put(state.read_model, READ_MODEL_PATH, "event_cursor", model.event_cursor)
    draft.put(state.read_model, READ_MODEL_PATH, "history_cursor", model.history_cursor)
    draft.put(state.read_model, READ_MODEL_PATH, "status", model.status)
    draft.put(state.read_model, READ_MODEL_PATH, "extensions", model.extensions)
    if not state.messages:
        earlier = model.earlier_messages
        draft.put(state.read_model, READ_MODEL_PATH, "earlier_messages", earlier)


def _merge_actions(draft: StateDraft, model: ThreadReadModel, *, missed: bool) -> None:
    listed = {action.action_id for action in model.pending_actions}
    existing, pending = draft.state.actions, draft.memory.open_actions
    for action in model.resolved_actions or ():
        if action.action_id not in existing or action.action_id in pending:
            actions.restore_action(draft, action)
            status = _ACTION_ENTRIES.get(action.status, action.status)
            key = f"action:{action.action_id}"
            align_timeline_and_graph(draft, key, status, node=action.status, at=action.resolved_at)
    for action_id in [key for key in existing if key in pending and key not in listed]:
        actions.close_absent_action(draft, action_id)
        align_timeline_and_graph(draft, f"action:{action_id}", existing[action_id].status)
    for action in model.pending_actions:
        key = action.action_id
        if key not in existing or (missed and key not in pending):
            action.status = "pending"
            draft.create(existing, actions.ACTIONS_PATH, key, action)
            pending[key] = None
            align_timeline_and_graph(draft, f"action:{key}", "blocked", node="pending")


def _merge_tools(
    draft: StateDraft, model: ThreadReadModel, over: Collection[str], *, missed: bool
) -> None:
    listed = {call.tool_call_id for call in model.tool_calls}
    for call in model.tool_calls:
        existing = draft.state.tools.get(call.tool_call_id)
        if existing is None:
            _add_tool(draft, call)
        elif not tools.has_ended(existing):
            _update_tool(draft, existing, call)
    for key in draft.memory.open_tools_in_order():
        tool, path = draft.state.tools[key], f"{tools.TOOLS_PATH}/{escape_key(key)}"
        if missed and key not in listed and not _has_own_thread(draft, tool.subagent_id):
            draft.put(tool, path, "state", STALE)
            _align_tool(draft, tool)
        if tool.turn_id in over:
            draft.put(tool, path, "unclosed", value=True)
            del draft.memory.open_tools[key]


def _add_tool(draft: StateDraft, call: ToolCallSummary) -> None:
    """A call as a read model states it; output that was written before is counted, not shown."""
    tool = copy_fields(
        call,
        Tool,
        args_text=Text(),
        output_text=Text(),
        args_truncated=True if call.state == "input-streaming" else None,
        output_truncated=True if call.output_characters else None,
    )
    tools.add_tool(draft, tool)


def _update_tool(draft: StateDraft, tool: Tool, call: ToolCallSummary) -> None:
    """The owner's own record of a call whose end is not known here."""
    path = f"{tools.TOOLS_PATH}/{escape_key(tool.tool_call_id)}"
    changed = tool.state != call.state
    stated = {name: getattr(call, name) for name in call.__struct_fields__}
    if call.output_characters < tool.output_characters:
        del stated["output_characters"]
    elif call.output_characters > tool.output_characters:
        stated["output_truncated"] = True
    draft.fill(tool, path, **stated)
    if tools.has_ended(tool):
        draft.put(tool, path, "unclosed", None)
        draft.memory.open_tools.pop(tool.tool_call_id, None)
    if changed:
        _align_tool(draft, tool)


def _align_tool(draft: StateDraft, tool: Tool) -> None:
    tools.update_preview(draft, tool)
    status = _ENTRIES.get(tool.state, "running")
    key = f"tool:{tool.tool_call_id}"
    align_timeline_and_graph(draft, key, status, node=tool.state, at=tool.completed_at)


def _has_own_thread(draft: StateDraft, subagent_id: str | None) -> bool:
    """Whether a subagent speaks on a thread of its own, of which a read model says nothing."""
    thread = draft.state.subagents.threads.get(subagent_id or "")
    return thread is not None and thread.thread_id not in (None, draft.state.thread_id)


def _merge_queue(draft: StateDraft, model: ThreadReadModel) -> None:
    if model.queued_turns != draft.state.queue.turns:
        draft.put(draft.state.queue, thread_status.QUEUE_PATH, "turns", model.queued_turns)
        waiting = len(model.queued_turns)
        draft.put(draft.state.runtime, thread_status.RUNTIME_PATH, "queued_turn_count", waiting)


def _merge_turns(
    draft: StateDraft, model: ThreadReadModel, over: Collection[str], *, missed: bool
) -> None:
    """Turns and runs that are under way in timeline and graph."""
    for entry in draft.state.timeline:
        kind, _, key = entry.entry_id.partition(":")
        if kind not in ("turn", "run") or entry.status in _END_PHASES:
            continue
        turn = key if kind == "turn" else entry.turn_id
        status = _turn_status(model, turn)
        if status is None and turn in over:
            status = STALE
        elif status is None and missed and not _has_own_thread(draft, entry.subagent_id):
            status = None if _is_waiting(draft, model, turn) else STALE
        if status is not None and (status != "running" or kind == "turn"):
            align_timeline_and_graph(draft, entry.entry_id, status)


def _merge_turn_records(draft: StateDraft, model: ThreadReadModel, over: Collection[str]) -> None:
    """How turns ended, as far as the read model states it; of one that is over and that it does not
    speak of, nobody knows.
    """
    records = draft.state.turns
    for turn in over:
        if turn in records and records[turn].status not in ENDED_TURNS:
            turns.restore_turn(draft, turn, STALE)
    for incident in model.incidents:
        turn = incident.turn_id
        is_failed_turn = incident.diagnostic_id == f"{FAILED_TURN}{turn}"
        if turn is not None and is_failed_turn and incident.subject is None:
            turns.restore_turn(
                draft,
                turn,
                "failed",
                category=incident.failure_category,
                message=incident.message if incident.message != incident.code else None,
                hint=incident.recovery_hint,
                at=incident.created_at,
                ended_by=incident.event_id if incident.event_id != turn else None,
            )
    outcome = model.last_outcome
    if model.active_turn_id is not None:
        turns.restore_turn(draft, model.active_turn_id, "running")
    elif outcome is not None and outcome.turn_id is not None:
        turns.restore_turn(
            draft,
            outcome.turn_id,
            outcome.status,
            category=outcome.failure_category,
            hint=outcome.recovery_hint,
            cancelled_by=outcome.cancelled_by,
        )


def _turn_status(model: ThreadReadModel, turn: str | None) -> str | None:
    """What a read model says of a turn."""
    if turn is None:
        return None
    if turn == model.active_turn_id:
        return "running"
    outcome = model.last_outcome
    return outcome.status if outcome is not None and outcome.turn_id == turn else None


def _is_waiting(draft: StateDraft, model: ThreadReadModel, turn: str | None) -> bool:
    """Whether a turn that was asked for has still to be started."""
    if any(queued.queued_turn_id == turn for queued in model.queued_turns):
        return True
    is_latest = draft.state.runtime.latest_turn_id == turn
    return is_latest and model.status == "running" and model.active_turn_id is None


def _merge_runtime(draft: StateDraft, model: ThreadReadModel, *, missed: bool) -> None:
    now, active = draft.state.runtime, model.active_turn_id
    was, moved = now.active_turn_id, missed or now.phase == UNKNOWN
    if was != active or (missed and active is None):
        for field in ("active_run_id", "active_task_id", "message"):
            draft.put(now, thread_status.RUNTIME_PATH, field, None)
    draft.put(now, thread_status.RUNTIME_PATH, "active_turn_id", active)
    _merge_latest_turn(draft, model, was)
    if model.blocked_reason is not None:
        draft.put(now, thread_status.RUNTIME_PATH, "blocked_reason", model.blocked_reason)
    elif model.status not in ("failed", "waiting"):
        # These two stand before a block, and leave open whether there is one.
        reason = now.blocked_reason or "blocked" if model.status == "blocked" else None
        draft.put(now, thread_status.RUNTIME_PATH, "blocked_reason", reason)
    if moved or was != active:
        draft.put(now, thread_status.RUNTIME_PATH, "phase", _current_phase(draft))
    thread_status.settle_runtime(draft)


def _merge_latest_turn(draft: StateDraft, model: ThreadReadModel, was: str | None) -> None:
    now, outcome = draft.state.runtime, model.last_outcome
    if model.active_turn_id is not None:
        outcome, turn, status = None, model.active_turn_id, "running"
    elif outcome is not None:
        turn, status = outcome.turn_id, outcome.status
    else:
        status = _infer_turn_status(now, model, was)
        same = status in (now.latest_turn_status, STALE)
        turn = now.latest_turn_id if same else None  # Of which turn, nobody says.
    draft.put(now, thread_status.RUNTIME_PATH, "latest_turn_id", turn)
    draft.put(now, thread_status.RUNTIME_PATH, "latest_turn_status", status)
    category, hint = (outcome.failure_category, outcome.recovery_hint) if outcome else (None, None)
    draft.put(now, thread_status.RUNTIME_PATH, "failure_category", category)
    draft.put(now, thread_status.RUNTIME_PATH, "recovery_hint", hint)


def _infer_turn_status(
    now: "thread_status.RuntimeStatus", model: ThreadReadModel, was: str | None
) -> str | None:
    """The status of the latest turn by a read model that names neither an active one nor an end."""
    if model.status in _END_PHASES:
        return model.status
    if model.status == "idle":
        return None
    if model.status == "running":
        # A thread that runs without a started turn has one that was asked for, or a run of none.
        return None if now.active_run_id and not now.latest_turn_status else "submitted"
    return STALE if was is not None else now.latest_turn_status


def _current_phase(draft: StateDraft) -> str:
    if draft.memory.open_actions:
        return "waiting"
    return _END_PHASES.get(draft.state.runtime.latest_turn_status or "", UNKNOWN)

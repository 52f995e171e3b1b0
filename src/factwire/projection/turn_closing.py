"""What the end of a turn does to whatever is still open in it, on every surface.

Nothing of a turn that is over reads as pending, running or blocked. What was cut off by a
cancellation is cancelled; text and runs end as their turn does; of anything else nobody knows how
it ended, so it reads `unknown` and has no time of its end, until a fact says more. What facts state
to be apart from the turn keeps its status: jobs, tasks that are worked on elsewhere, teammates that
are remote, in the background or in a turn of their own, and programs in the background. A call that
is cancelled takes its own work with it in the same way.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.outcomes import ENDED_STATUSES, OPEN_STATUSES
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import (
    actions,
    coding,
    graph,
    model_usage,
    subagents,
    tasks,
    team,
    timeline,
    tools,
)
from factwire.projection.actions import Action
from factwire.projection.coding import Hook, Patch, TestRun, Work
from factwire.projection.messages import TEXT_PARTS, Message, part_entry_key
from factwire.projection.payload_fields import outcome_of, tool_of, turn_of
from factwire.projection.subagents import SubagentThread
from factwire.projection.tools import Tool
from factwire.projection.turns import (
    ENDED_TURNS,
    find_entity,
    is_in_ended_turn,
    is_own_run,
    run_key,
    turn_key,
)

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


class TurnEnding(msgspec.Struct, frozen=True):
    """The status of an open thing after its turn completed, failed or was canceled."""

    completed: str
    failed: str
    canceled: str


_AS_THE_TURN: Final = TurnEnding("completed", "failed", "canceled")
_CUT_OFF: Final = TurnEnding(UNKNOWN, UNKNOWN, "cancelled")
_WITHDRAWN: Final = TurnEnding("closed", "closed", "cancelled")
_HAPPENED: Final = TurnEnding("completed", "completed", "completed")

TURN_ENDINGS: Final[dict[str, TurnEnding | None]] = {
    "turn": _AS_THE_TURN,
    "run": _AS_THE_TURN,
    "text": _AS_THE_TURN,
    "reasoning": _AS_THE_TURN,
    "plan": _AS_THE_TURN,
    "fact": _AS_THE_TURN,
    "tool": _CUT_OFF,
    "command": _CUT_OFF,
    "patch": _CUT_OFF,
    "test": _CUT_OFF,
    "hook": _CUT_OFF,
    "compaction": _CUT_OFF,
    "permission": _CUT_OFF,
    "action": _WITHDRAWN,
    "task": _CUT_OFF,
    "attempt": _CUT_OFF,
    "subagent": _CUT_OFF,
    "agent": _CUT_OFF,
    "handoff": _CUT_OFF,
    "review": _CUT_OFF,
    "trial": _CUT_OFF,
    "artifact": _HAPPENED,
    "export": _CUT_OFF,
    "evidence": _HAPPENED,
    "rollback": _CUT_OFF,
    "process": None,
    "job": None,
    "repair": None,
}
"""Kind of an open thing, which is also the first word of its entry → how the end of its turn leaves
it; None is for what outlives a turn. `fact` is an entry of a single fact, and a kind that is not
here is treated like one. An artifact is there once its fact is, and only its `export` can be under
way. A process outlives its turn in the background, once its call has ended;
the process of a call that is cut off ends with the call.
"""

_ENTRY_WORDS: Final = {"cancelled": "canceled", "closed": UNKNOWN}
"""Words of a state → those of the timeline."""

_OF_NO_SUBAGENT: Final = (Hook, Patch, TestRun)
_TEXT_KINDS: Final = ("text", "reasoning")


def close_turn_work(draft: "StateDraft", fact: Fact) -> None:
    """Close what is open in a turn that ends. Runs before the messages of the turn are closed."""
    outcome = outcome_of(fact)
    for key in draft.memory.open_tools_in_order():
        if _ends_with_turn(draft, fact, draft.state.tools[key]):
            _close_call(draft, fact, key, outcome)
    for key in sorted(draft.memory.open_actions):
        if _ends_with_turn(draft, fact, draft.state.actions[key]):
            _close_action(draft, fact, key, outcome)
    for kind, key in coding.open_work(draft):
        if _ends_with_turn(draft, fact, coding.find_work(draft, kind, key)):
            _close_work(draft, fact, kind, key, outcome)
    _close_teammates(draft, fact, outcome)
    _close_tasks(draft, fact, outcome)
    _close_compactions(draft, fact, outcome)
    _close_runs(draft, fact, outcome)
    _close_entries(draft, fact, outcome)


def _close_teammates(draft: "StateDraft", fact: Fact, outcome: str) -> None:
    threads, status = draft.state.subagents.threads, _status_after("subagent", outcome)
    for key in list(draft.state.subagents.active_thread_ids):
        row = threads[key]
        if is_in_ended_turn(draft, fact, row.turn_id, row.parent_subagent_id) and not _is_apart(
            draft, row
        ):
            subagents.end_thread(draft, fact, key, status)
            team.update_member(draft, fact, key)
            _show_end(draft, fact, f"subagent:{key}", status)


def _is_apart(draft: "StateDraft", row: SubagentThread) -> bool:
    """Whether a teammate goes on without the turn that set it to work."""
    if row.channel_id or row.remote_task_id or row.topology in subagents.REMOTE_TOPOLOGIES:
        return True
    return any(
        turn.subagent_id == row.subagent_id and turn.status not in ENDED_TURNS
        for turn in (draft.state.turns.values() if draft.memory.has_turns_beside else ())
    )


def _close_tasks(draft: "StateDraft", fact: Fact, outcome: str) -> None:
    status, active = _status_after("task", outcome), set(draft.state.subagents.active_thread_ids)
    for key in draft.memory.tasks_by_status.list_keys(tasks.OPEN_TASKS):
        task = draft.state.tasks[key]
        workers = task.subagent_ids or [None]
        if (
            not tasks.is_elsewhere(task)
            and active.isdisjoint(workers)
            and is_in_ended_turn(draft, fact, task.turn_id, workers[0])
        ):
            for attempt in tasks.end_task(draft, fact, key, status):
                _show_end(draft, fact, f"attempt:{attempt}", status)
            team.update_work_item(draft, fact, key)
            _show_end(draft, fact, f"task:{key}", status)


def _close_compactions(draft: "StateDraft", fact: Fact, outcome: str) -> None:
    status = _status_after("compaction", outcome)
    for place, row in enumerate(draft.state.context.compactions):
        if row.status == "running" and is_in_ended_turn(draft, fact, row.turn_id, None):
            path = f"{model_usage.CONTEXT_PATH}/compactions/{place}"
            draft.put(row, path, "status", status)
            draft.put(row, path, "completed_at", _end_time(fact, _ENTRY_WORDS.get(status, status)))


def align_entity(draft: "StateDraft", fact: Fact) -> None:
    """Give the entry and the node of whoever took a turn the state that the turn left them in."""
    entity, state = find_entity(draft, fact), draft.state
    if entity is None or entity.id is None:
        return
    lists = {"subagent": state.subagents.threads, "task": state.tasks, "job": state.jobs}
    found = lists.get(entity.kind, {}).get(entity.id)
    if found is None:
        return
    key, ended = f"{entity.kind}:{entity.id}", found.completed_at
    place, node = draft.memory.entries.get(key), state.graph.nodes.get(key)
    if place is not None:
        status = "canceled" if found.status == "cancelled" else found.status
        is_over = ended is not None or status in ENDED_STATUSES or status == UNKNOWN
        if is_over:
            timeline.end_entry(draft, place, status, ended)
        else:
            timeline.set_entry_status(draft, place, "running", ended)
    if node is not None:
        path = f"{graph.GRAPH_NODES_PATH}/{escape_key(key)}"
        draft.put(node, path, "status", found.status)
        draft.put(node, path, "completed_at", ended)


def withdraw_call_work(draft: "StateDraft", fact: Fact) -> None:
    """Runs after the end of a call: one that was cancelled takes what is open in it along."""
    key = tool_of(fact) or ""
    if draft.state.tools[key].state != "cancelled":
        return
    for action in sorted(draft.memory.open_actions):
        if draft.state.actions[action].tool_call_id == key:
            _close_action(draft, fact, action, "canceled")
    _close_inner_work(draft, fact, key, "canceled")


def _close_call(draft: "StateDraft", fact: Fact, key: str, outcome: str) -> None:
    if outcome == "canceled":
        tools.cancel_tool(draft, fact, key)
    else:
        tools.leave_unclosed(draft, fact, key)
    _show_end(draft, fact, f"tool:{key}", _status_after("tool", outcome))
    _close_inner_work(draft, fact, key, outcome)


def _close_inner_work(draft: "StateDraft", fact: Fact, call: str, outcome: str) -> None:
    """What a call that is cut off has open: its program, its patch, its tests."""
    for kind, key in coding.open_work(draft):
        if coding.find_work(draft, kind, key).tool_call_id == call:
            _close_work(draft, fact, kind, key, outcome, with_call=True)


def _close_action(draft: "StateDraft", fact: Fact, key: str, outcome: str) -> None:
    status = _status_after("action", outcome)
    actions.withdraw_action(draft, key, status)
    _show_end(draft, fact, f"action:{key}", status)


def _close_work(
    draft: "StateDraft", fact: Fact, kind: str, key: str, outcome: str, *, with_call: bool = False
) -> None:
    ending = TURN_ENDINGS[kind] or (_CUT_OFF if with_call else None)
    if ending is not None:
        status: str = getattr(ending, outcome)
        ended = fact.created_at if status == "cancelled" else None
        coding.end_work(draft, kind, key, status, ended)
        _show_end(draft, fact, f"{kind}:{key}", status)


def _status_after(kind: str, outcome: str) -> str:
    status: str = getattr(TURN_ENDINGS[kind], outcome)
    return status


def _ends_with_turn(draft: "StateDraft", fact: Fact, work: Tool | Action | Work) -> bool:
    """Whether an open thing is over with the turn that a fact ends; what names no subagent belongs
    to the one whose call it is part of.
    """
    call = None if isinstance(work, Tool) else draft.state.tools.get(work.tool_call_id or "")
    subagent = None if isinstance(work, _OF_NO_SUBAGENT) else work.subagent_id
    if subagent is None and call is not None:
        subagent = call.subagent_id
    return is_in_ended_turn(draft, fact, work.turn_id, subagent)


def _close_runs(draft: "StateDraft", fact: Fact, outcome: str) -> None:
    own = is_own_run(draft, fact)
    run = fact.run_id or (draft.state.runtime.active_run_id if own else None)
    named = (f"run:{run_key(draft, fact, name)}" for name in (run, turn_of(fact)) if name)
    turn = turn_key(draft, fact)
    of_turn = [key for key in sorted(draft.memory.open_runs) if _is_of_turn(draft, key, turn)]
    for key in dict.fromkeys((*named, *of_turn)):
        _show_end(draft, fact, key, outcome)


def _is_of_turn(draft: "StateDraft", node_id: str, turn: str | None) -> bool:
    node = draft.state.graph.nodes[node_id]
    return turn is not None and node.parent_id == f"turn:{turn}" and node.status in OPEN_STATUSES


def _close_entries(draft: "StateDraft", fact: Fact, outcome: str) -> None:
    """Whatever else is open in the timeline, as its kind ends; a text that may not be whole is
    stale.
    """
    is_whole = not draft.memory.unreconciled
    spoken = _open_texts(draft, fact)
    for key, is_stale in spoken.items():
        if is_whole and not is_stale:
            _end_entry(draft, fact, key, outcome)
    for place in sorted(draft.memory.take_open_entries(turn_of(fact))):
        entry = draft.state.timeline[place]
        kind = entry.entry_id.partition(":")[0]
        is_export = entry.event_class == "artifact.export.started"
        ending = TURN_ENDINGS.get("export" if is_export else kind, _AS_THE_TURN)
        goes_on = ending is None or _outlives(draft, entry.entry_id)
        is_over = is_in_ended_turn(draft, fact, entry.turn_id, entry.subagent_id)
        if goes_on or not is_over:
            draft.memory.track_entry(entry, place)
        elif entry.entry_id in spoken or (kind in _TEXT_KINDS and not is_whole):
            timeline.end_entry(draft, place, "stale", None)
        elif kind != "turn":
            _end_entry(draft, fact, entry.entry_id, getattr(ending, outcome))


def _outlives(draft: "StateDraft", entry_id: str) -> bool:
    """Whether a teammate or a task goes on after the turn, because it is apart from that."""
    kind, _, key = entry_id.partition(":")
    if kind == "subagent":
        return key in draft.state.subagents.active_thread_ids
    task = draft.state.tasks.get(key) if kind == "task" else None
    return task is not None and task.status in tasks.OPEN_TASKS


def _open_texts(draft: "StateDraft", fact: Fact) -> dict[str, bool]:
    """The entries of texts in open messages, and whether it is unknown how far one got."""
    found: dict[str, bool] = {}
    for _, message in draft.memory.open_messages_in_order():
        if is_in_ended_turn(draft, fact, message.turn_id, message.subagent_id):
            found |= _texts_of(message)
    return found


def end_settled_texts(draft: "StateDraft") -> None:
    """Runs once facts are whole again: a text of a turn that is over ended with the turn."""
    settled = (
        f"{kind}:{part_entry_key(message, part)}"
        for message in draft.state.messages
        for part in message.parts
        if isinstance(part, TEXT_PARTS) and part.state in ("final", "interrupted")
        for kind in _TEXT_KINDS
    )
    for place in (draft.memory.entries[key] for key in settled if key in draft.memory.entries):
        entry = draft.state.timeline[place]
        turn = draft.state.turns.get(entry.turn_id or "")
        is_over = turn is not None and turn.status in ENDED_TURNS
        if turn is not None and is_over and entry.status not in ENDED_STATUSES:
            timeline.end_entry(draft, place, turn.status, turn.completed_at)


def _texts_of(message: Message) -> dict[str, bool]:
    return {
        f"{kind}:{part_entry_key(message, part)}": (
            isinstance(part, TEXT_PARTS) and part.state == "stale"
        )
        for part in message.parts
        for kind in _TEXT_KINDS
    }


def _show_end(draft: "StateDraft", fact: Fact, key: str, status: str) -> None:
    _end_entry(draft, fact, key, status)
    _end_node(draft, fact, key, status)


def _end_entry(draft: "StateDraft", fact: Fact, key: str, status: str) -> None:
    place = draft.memory.entries.get(key)
    entry = None if place is None else draft.state.timeline[place]
    if place is not None and entry is not None and entry.status not in ENDED_STATUSES:
        word = _ENTRY_WORDS.get(status, status)
        timeline.end_entry(draft, place, word, _end_time(fact, word))


def _end_node(draft: "StateDraft", fact: Fact, key: str, status: str) -> None:
    node = draft.state.graph.nodes.get(key)
    if node is not None:
        path = f"{graph.GRAPH_NODES_PATH}/{escape_key(key)}"
        draft.put(node, path, "status", status)
        draft.put(node, path, "completed_at", _end_time(fact, _ENTRY_WORDS.get(status, status)))
        draft.memory.open_runs.pop(key, None)


def _end_time(fact: Fact, word: str) -> str | None:
    """When something ended with its turn; of what has no known end, nothing is said."""
    return None if word == UNKNOWN else fact.completed_at or fact.created_at

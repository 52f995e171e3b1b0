"""What the end of a turn does to whatever is still open in it, on every surface.

Nothing of a turn that is over reads as pending, running or blocked. What was cut off by a
cancellation is cancelled; text and runs end as their turn does; of anything else nobody knows how
it ended, so it reads `unknown` and has no time of its end. What works on without the turn keeps its
status. A call that is cancelled takes its own work with it in the same way.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.outcomes import OPEN_STATUSES
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import actions, coding, graph, timeline, tools
from factwire.projection.messages import Message, ReasoningPart, TextPart
from factwire.projection.payload_fields import outcome_of, tool_of, turn_of

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
    "process": None,
    "task": None,
    "attempt": None,
    "job": None,
    "subagent": None,
    "agent": None,
    "handoff": None,
    "review": None,
    "trial": None,
    "artifact": None,
    "evidence": None,
    "repair": None,
    "rollback": None,
}
"""Kind of an open thing, which is also the first word of its entry → how the end of its turn leaves
it; None is for what outlives a turn. `fact` is an entry of a single fact, and a kind that is not
here is treated like one. A process outlives its turn in the background, once its call has ended;
the process of a call that is cut off ends with the call.
"""

_ENTRY_WORDS: Final = {"cancelled": "canceled", "closed": UNKNOWN}
"""Words of a state → those of the timeline."""

_TEXT_KINDS: Final = ("text", "reasoning")


def close_turn_work(draft: "StateDraft", fact: Fact) -> None:
    """Close what is open in a turn that ends. Runs before the messages of the turn are closed."""
    turn, outcome = turn_of(fact), outcome_of(fact)
    for key in draft.memory.open_tools_in_order():
        if draft.state.tools[key].turn_id == turn:
            _close_call(draft, fact, key, outcome)
    for key in sorted(draft.memory.open_actions):
        if draft.state.actions[key].turn_id == turn:
            _close_action(draft, fact, key, outcome)
    for kind, key in coding.open_work(draft):
        if coding.find_work(draft, kind, key).turn_id == turn:
            _close_work(draft, fact, kind, key, outcome)
    _close_runs(draft, fact, turn, outcome)
    _close_entries(draft, fact, turn, outcome)


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


def _close_runs(draft: "StateDraft", fact: Fact, turn: str | None, outcome: str) -> None:
    named = (fact.run_id or draft.state.runtime.active_run_id, turn)
    of_turn = [run for run in sorted(draft.memory.open_runs) if _is_of_turn(draft, run, turn)]
    for key in dict.fromkeys((*(f"run:{run}" for run in named), *of_turn)):
        _show_end(draft, fact, key, outcome)


def _is_of_turn(draft: "StateDraft", node_id: str, turn: str | None) -> bool:
    node = draft.state.graph.nodes[node_id]
    return turn is not None and node.parent_id == f"turn:{turn}" and node.status in OPEN_STATUSES


def _close_entries(draft: "StateDraft", fact: Fact, turn: str | None, outcome: str) -> None:
    """Whatever else is open in the timeline, as its kind ends; a text only once it is whole."""
    is_whole = not draft.memory.unreconciled
    spoken = _open_texts(draft, turn) if is_whole else {}
    for key, is_stale in spoken.items():
        if not is_stale:
            _end_entry(draft, fact, key, outcome)
    for place in sorted(draft.memory.take_open_entries(turn)):
        entry = draft.state.timeline[place]
        kind = entry.entry_id.partition(":")[0]
        ending = TURN_ENDINGS.get(kind, _AS_THE_TURN)
        if entry.entry_id in spoken or (kind in _TEXT_KINDS and not is_whole):
            draft.memory.track_entry(entry, place)
        elif ending is not None and kind != "turn":
            _end_entry(draft, fact, entry.entry_id, getattr(ending, outcome))


def _open_texts(draft: "StateDraft", turn: str | None) -> dict[str, bool]:
    """The entries of texts in open messages, and whether it is unknown how far one got."""
    found: dict[str, bool] = {}
    for _, message in draft.memory.open_messages_in_order():
        if message.turn_id == turn:
            found |= _texts_of(message)
    return found


def _texts_of(message: Message) -> dict[str, bool]:
    return {
        f"{kind}:{timeline.part_entry_key(message, part)}": (
            isinstance(part, TextPart | ReasoningPart) and part.state == "stale"
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
    if place is not None and entry is not None and entry.completed_at is None:
        word = _ENTRY_WORDS.get(status, status)
        timeline.set_entry_status(draft, place, word, _end_time(fact, word))


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

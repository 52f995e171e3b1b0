"""Endings: what a turn's end cuts off no longer reads as under way, in timeline and graph.

Text that was open ends as its turn does. A tool that was open is cancelled with a cancelled turn;
at any other end nobody knows how it ended, and its entry stays as it was.
"""

from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.projection import graph, timeline
from factwire.projection.parts import Message, ReasoningPart, TextPart
from factwire.projection.pointers import escaped
from factwire.projection.reading import outcome_of, turn_of

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

_KINDS: Final = ("text", "reasoning")


def cut_off(canvas: "Canvas", fact: Fact) -> None:
    """Runs before tools and messages of the turn are closed, since it closes what is open."""
    turn = turn_of(fact)
    if fact.event_class == "turn.canceled":
        for key in canvas.memory.open_tools_in_order():
            if canvas.state.tools[key].turn_id == turn:
                _end_entry(canvas, fact, f"tool:{key}")
                _end_node(canvas, fact, f"tool:{key}", "cancelled")
    run = fact.run_id or canvas.state.runtime.active_run_id
    for key in dict.fromkeys((run, turn)):
        _end_entry(canvas, fact, f"run:{key}")
        _end_node(canvas, fact, f"run:{key}", outcome_of(fact))
    if canvas.memory.unreconciled:
        return
    for _, message in canvas.memory.open_messages_in_order():
        if message.turn_id == turn:
            _end_texts(canvas, fact, message)


def _end_texts(canvas: "Canvas", fact: Fact, message: Message) -> None:
    """How far a stale text got is not known, whatever becomes of its turn."""
    for part in message.parts:
        if not isinstance(part, TextPart | ReasoningPart) or part.state != "stale":
            key = timeline.part_key(message, part)
            for kind in _KINDS:
                _end_entry(canvas, fact, f"{kind}:{key}")


def _end_entry(canvas: "Canvas", fact: Fact, key: str) -> None:
    place = canvas.memory.entries.get(key)
    entry = None if place is None else canvas.state.timeline[place]
    if entry is not None and entry.completed_at is None:
        path = f"{timeline.PATH}/{place}"
        canvas.put(entry, path, "status", fact.status)
        canvas.put(entry, path, "completed_at", fact.completed_at or fact.created_at)


def _end_node(canvas: "Canvas", fact: Fact, key: str, status: str) -> None:
    node = canvas.state.graph.nodes.get(key)
    if node is not None:
        path = f"{graph.NODES}/{escaped(key)}"
        canvas.put(node, path, "status", status)
        canvas.put(node, path, "completed_at", fact.completed_at or fact.created_at)

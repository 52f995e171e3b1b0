"""Alignment: timeline and graph follow a surface that changed without a fact of its own.

Reducers write entries and nodes as facts come. A read model changes calls, requests and turns
without one; what draws it says so here, so that no surface contradicts another.
"""

from typing import TYPE_CHECKING

from factwire.projection import graph, timeline
from factwire.projection.pointers import escaped

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas


def align(
    canvas: "Canvas", key: str, status: str, *, node: str | None = None, at: str | None = None
) -> None:
    """Give the entry and the node of a subject its status; `node` where a node has its own word."""
    place = canvas.memory.entries.get(key)
    if place is not None:
        entry, path = canvas.state.timeline[place], f"{timeline.PATH}/{place}"
        canvas.put(entry, path, "status", status)
        canvas.fill(entry, path, completed_at=at)
    known = canvas.state.graph.nodes.get(key)
    if known is not None:
        path = f"{graph.NODES}/{escaped(key)}"
        canvas.put(known, path, "status", node or status)
        canvas.fill(known, path, completed_at=at)

"""The execution graph: what hangs on what, from turns down to tools and actions.

Nodes and edges come from ids that facts carry. A node that is only named reads `unknown`; an edge
that no fact states is not drawn.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.asides import ASIDE, COUNTED
from factwire.projection.changes import Operation
from factwire.projection.limits import GRAPH_DEPTH
from factwire.projection.pointers import escaped
from factwire.projection.reading import (
    joined,
    other_id,
    refs_of,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
    word,
)
from factwire.projection.subagents import teammate_of
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/graph"
NODES: Final = "/graph/nodes"
EDGES: Final = "/graph/edges"


class GraphNode(View):
    """One node; `parent_id` is set where a fact says so."""

    node_id: str
    node_type: str
    status: str
    title: str
    source_event_ids: list[str]
    parent_id: str | None = None
    refs: list[str] | None = None
    started_at: str | None = None
    completed_at: str | None = None


class GraphEdge(View):
    """From one node to another, and why."""

    edge_id: str
    source: str
    target: str
    kind: str


class Graph(View):
    """Nodes and edges by id."""

    nodes: dict[str, GraphNode]
    edges: dict[str, GraphEdge]


def nothing() -> Graph:
    return Graph(nodes={}, edges={})


_Find = Callable[[Fact], str | None]


def _run(fact: Fact) -> str | None:
    return fact.run_id or other_id(fact, "runId", "run_id")


def _attempt(fact: Fact) -> str | None:
    return fact.attempt_id or other_id(fact, "attemptId", "attempt_id") or _run(fact)


def _parent_task(fact: Fact) -> str | None:
    return fact.parent_task_id or other_id(fact, "parentTaskId", "parent_task_id")


def _parent_subagent(fact: Fact) -> str | None:
    return word(fact.payload, "parentSubagentId")


def _action(fact: Fact) -> str | None:
    return fact.action_id or other_id(fact, "actionId", "action_id")


def _job(fact: Fact) -> str | None:
    return fact.job_id or other_id(fact, "jobId", "job_id")


def _step(fact: Fact) -> str | None:
    return fact.step_id or other_id(fact, "stepId", "step_id")


_OWN: Final[dict[str, tuple[str, _Find]]] = {
    "turn": ("turn", turn_of),
    "run": ("run", _run),
    "task": ("task", task_of),
    "subagent": ("subagent", teammate_of),
    "worker": ("subagent", teammate_of),
    "agent": ("subagent", teammate_of),
    "job": ("job", _job),
    "tool": ("tool", tool_of),
    "action": ("action", _action),
}

_PARENTS: Final[dict[str, tuple[tuple[str, _Find], ...]]] = {
    "turn": (),
    "run": (("turn", turn_of),),
    "step": (("run", _run), ("turn", turn_of)),
    "task": (("task", _parent_task), ("turn", turn_of)),
    "attempt": (("task", task_of),),
    "job": (("task", task_of), ("turn", turn_of)),
    "subagent": (("subagent", _parent_subagent), ("task", task_of), ("turn", turn_of)),
    "tool": (
        ("subagent", subagent_of),
        ("step", _step),
        ("task", task_of),
        ("run", _run),
        ("turn", turn_of),
    ),
    "action": (
        ("tool", tool_of),
        ("subagent", subagent_of),
        ("task", task_of),
        ("turn", turn_of),
    ),
}

_KIND: Final = {"subagent": "spawned", "tool": "called", "action": "asked", "attempt": "tried"}
_SILENT: Final = frozenset({"worker.notification", "tool.catalog.resolved"})


def draw(canvas: "Canvas", fact: Fact) -> None:
    """Draw what a fact is about, and where it hangs."""
    name = fact.event_class or ""
    kind, find, links = _rule(name)
    key = find(fact) if find else None
    if key is not None and name.startswith("agent."):
        key = key if key in canvas.state.subagents.threads else None
    if key is not None:
        node = _node(canvas, fact, kind, key)
        _describe(canvas, fact, node)
        if node.parent_id is None:
            _hang(canvas, fact, node)
    if links:
        _draw_links(canvas, fact, name)


@lru_cache(maxsize=1_024)
def _rule(name: str) -> tuple[str, "_Find | None", bool]:
    """Which node a class is about, how its key is found, and whether it may draw other edges."""
    if name in _SILENT:
        return "", None, False
    own = ("attempt", _attempt) if name.startswith("task.attempt.") else _OWN.get(_family(name))
    kind, find = own or ("", None)
    return kind, find, name.startswith(("task.", "handoff.", "subagent.", "agent."))


def _family(name: str) -> str:
    return "turn" if name in _TURN_NAMES else name.partition(".")[0]


_TURN_NAMES: Final = frozenset({"run.started", "run.finished", "run.failed"})


def _describe(canvas: "Canvas", fact: Fact, node: GraphNode) -> None:
    path = f"{NODES}/{escaped(node.node_id)}"
    sources = node.source_event_ids
    if sources[-1] != fact.id and fact.event_class not in COUNTED:
        sources.append(fact.id)
        canvas.ops.append(Operation("add", f"{path}/sourceEventIds/-", fact.id))
    aside = fact.event_class in ASIDE
    canvas.put(
        node, path, "status", _status(canvas, node) or (node.status if aside else fact.status)
    )
    canvas.put(node, path, "title", _title(canvas, node) or (node.title if aside else fact.title))
    if node.started_at is None:
        canvas.put(node, path, "started_at", fact.created_at)
    refs = refs_of(fact)
    if refs:
        canvas.put(node, path, "refs", joined(node.refs, refs))
    if not aside:
        ended = fact.status in ("completed", "failed", "canceled")
        if ended or node.completed_at is not None:
            at = fact.completed_at or fact.created_at
            canvas.put(node, path, "completed_at", at if ended else None)


def _hang(canvas: "Canvas", fact: Fact, node: GraphNode) -> None:
    for kind, find in _PARENTS[node.node_type]:
        key = find(fact)
        if key is not None and f"{kind}:{key}" != node.node_id:
            parent = _node(canvas, fact, kind, key)
            if _descends(canvas, parent, node):
                continue
            canvas.put(node, f"{NODES}/{escaped(node.node_id)}", "parent_id", parent.node_id)
            _edge(canvas, parent.node_id, node.node_id, _KIND.get(node.node_type, "contains"))
            if kind in ("step", "run") and parent.parent_id is None:
                # Steps and runs are only ever named; whoever names one says where it belongs.
                _hang(canvas, fact, parent)
            return


def _descends(canvas: "Canvas", node: GraphNode, ancestor: GraphNode) -> bool:
    """Whether a node hangs on another, or so deep that nobody can tell."""
    above: str | None = node.node_id
    for _ in range(GRAPH_DEPTH):
        if above is None or above == ancestor.node_id:
            return above is not None
        above = canvas.state.graph.nodes[above].parent_id
    return True


def _draw_links(canvas: "Canvas", fact: Fact, name: str) -> None:
    if name in ("subagent.spawned", "subagent.started", "agent.spawned"):
        call, teammate = tool_of(fact), teammate_of(fact)
        if call is not None and teammate is not None:
            _link(canvas, fact, ("tool", call), ("subagent", teammate), "delegated")
    elif name.startswith("task."):
        task = canvas.state.tasks.get(task_of(fact) or "")
        for other in (task.depends_on or ()) if task else ():
            _link(canvas, fact, ("task", task_of(fact) or ""), ("task", other), "depends_on")
    elif name.startswith("handoff.") or name == "agent.handoff":
        key = fact.handoff_id or other_id(fact, "handoffId", "handoff_id") or fact.id
        event = canvas.state.team_workbench.handoff_events.get(key)
        if event is None or event.status not in ("accepted", "completed"):
            return
        if event.from_agent and event.to_agent:
            ends = (("subagent", event.from_agent), ("subagent", event.to_agent))
            _link(canvas, fact, *ends, "handed_off")


def _link(
    canvas: "Canvas", fact: Fact, source: tuple[str, str], target: tuple[str, str], kind: str
) -> None:
    first, second = _node(canvas, fact, *source), _node(canvas, fact, *target)
    _edge(canvas, first.node_id, second.node_id, kind)


def _node(canvas: "Canvas", fact: Fact, kind: str, key: str) -> GraphNode:
    node_id = f"{kind}:{key}"
    known = canvas.state.graph.nodes.get(node_id)
    if known is not None:
        return known
    node = GraphNode(
        node_id=node_id, node_type=kind, status=UNKNOWN, title=key, source_event_ids=[fact.id]
    )
    return canvas.create(canvas.state.graph.nodes, NODES, node_id, node)


def _edge(canvas: "Canvas", source: str, target: str, kind: str) -> None:
    edge_id = f"{source}>{target}:{kind}"
    if edge_id not in canvas.state.graph.edges:
        edge = GraphEdge(edge_id=edge_id, source=source, target=target, kind=kind)
        canvas.create(canvas.state.graph.edges, EDGES, edge_id, edge)


def _status(canvas: "Canvas", node: GraphNode) -> str | None:
    state, key = canvas.state, node.node_id.partition(":")[2]
    match node.node_type:
        case "tool":
            return state.tools[key].state if key in state.tools else None
        case "action":
            return state.actions[key].status if key in state.actions else None
        case "task":
            return state.tasks[key].status if key in state.tasks else None
        case "subagent":
            threads = state.subagents.threads
            return threads[key].status if key in threads else None
        case "job":
            return state.jobs[key].status if key in state.jobs else None
        case _:
            return None


def _title(canvas: "Canvas", node: GraphNode) -> str | None:
    state, key = canvas.state, node.node_id.partition(":")[2]
    match node.node_type:
        case "tool":
            tool = state.tools.get(key)
            return (tool.title or tool.tool_name) if tool else None
        case "task":
            task = state.tasks.get(key)
            return (task.title or task.objective) if task else None
        case "subagent":
            thread = state.subagents.threads.get(key)
            return (thread.name or thread.title or thread.role) if thread else None
        case _:
            return None

"""The execution graph: what hangs on what, from turns down to tools and actions.

Nodes and edges come from ids that facts carry. A node that is only named reads `unknown`; an edge
that no fact states is not drawn.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact, entity_of
from factwire.facts.json_patch import escape_key
from factwire.facts.outcomes import ENDED_STATUSES, OPEN_STATUSES
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.changes import Operation
from factwire.projection.limits import GRAPH_DEPTH
from factwire.projection.payload_fields import (
    other_id,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
)
from factwire.projection.subagents import stated_parent_of, teammate_of
from factwire.projection.tasks import COUNTED_CLASSES, STATUSLESS_CLASSES
from factwire.projection.turns import run_key, turn_key
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

GRAPH_PATH: Final = "/graph"
GRAPH_NODES_PATH: Final = "/graph/nodes"
GRAPH_EDGES_PATH: Final = "/graph/edges"


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


def empty_graph() -> Graph:
    return Graph(nodes={}, edges={})


_Find = Callable[[Fact], str | None]


def _run_of(fact: Fact) -> str | None:
    return fact.run_id or other_id(fact, "runId", "run_id")


def _attempt_of(fact: Fact) -> str | None:
    return fact.attempt_id or other_id(fact, "attemptId", "attempt_id") or _run_of(fact)


def _parent_task_of(fact: Fact) -> str | None:
    return fact.parent_task_id or other_id(fact, "parentTaskId", "parent_task_id")


def _entity_finder(kind: str) -> _Find:
    """What finds who takes a turn beside the thread, where it is of this kind."""

    def find(fact: Fact) -> str | None:
        entity = entity_of(fact)
        return entity.id if entity is not None and entity.kind == kind else None

    return find


def _action_of(fact: Fact) -> str | None:
    return fact.action_id or other_id(fact, "actionId", "action_id")


def _job_of(fact: Fact) -> str | None:
    return fact.job_id or other_id(fact, "jobId", "job_id")


def _step_of(fact: Fact) -> str | None:
    return fact.step_id or other_id(fact, "stepId", "step_id")


_OWN: Final[dict[str, tuple[str, _Find]]] = {
    "turn": ("turn", turn_of),
    "run": ("run", _run_of),
    "task": ("task", task_of),
    "subagent": ("subagent", teammate_of),
    "worker": ("subagent", teammate_of),
    "agent": ("subagent", teammate_of),
    "job": ("job", _job_of),
    "tool": ("tool", tool_of),
    "action": ("action", _action_of),
}

_PARENTS: Final[dict[str, tuple[tuple[str, _Find], ...]]] = {
    "turn": (
        ("subagent", _entity_finder("subagent")),
        ("job", _entity_finder("job")),
        ("task", _entity_finder("task")),
    ),
    "run": (("turn", turn_of),),
    "step": (("run", _run_of), ("turn", turn_of)),
    "task": (("task", _parent_task_of), ("turn", turn_of)),
    "attempt": (("task", task_of),),
    "job": (("task", task_of), ("turn", turn_of)),
    "subagent": (
        ("subagent", stated_parent_of),
        ("task", task_of),
        ("task", _parent_task_of),
        ("turn", turn_of),
    ),
    "tool": (
        ("subagent", subagent_of),
        ("step", _step_of),
        ("task", task_of),
        ("run", _run_of),
        ("turn", turn_of),
    ),
    "action": (
        ("tool", tool_of),
        ("subagent", subagent_of),
        ("task", task_of),
        ("turn", turn_of),
    ),
}

_STARTING_CLASSES: Final = frozenset(
    {
        *("turn.started", "run.started", "tool.started", "action.required", "job.started"),
        *("task.started", "task.attempt.started", "subagent.spawned", "subagent.started"),
        *("worker.started", "agent.spawned"),
    }
)
"""Classes that say when a node began; of any other node the start is not known."""

_KIND: Final = {"subagent": "spawned", "tool": "called", "action": "asked", "attempt": "tried"}
_SILENT: Final = frozenset({"worker.notification", "tool.catalog.resolved"})


def draw_graph(draft: "StateDraft", fact: Fact, status: str | None, refs: list[str]) -> None:
    """Draw what a fact is about, and where it hangs; `status` and `refs` are those that the fact
    states.
    """
    name = fact.event_class or ""
    kind, find, links = _node_rule(name)
    key = find(fact) if find else None
    if key is not None and kind in ("turn", "run"):
        key = turn_key(draft, fact) if kind == "turn" else run_key(draft, fact, key)
    if key is not None and name.startswith("agent."):
        key = key if key in draft.state.subagents.threads else None
    if key is not None:
        node = _draw_node(draft, fact, (kind, key), status, refs)
        if node.parent_id is None:
            _set_parent(draft, fact, node)
    if links:
        _draw_links(draft, fact, name)


@lru_cache(maxsize=1_024)
def _node_rule(name: str) -> tuple[str, "_Find | None", bool]:
    """Which node a class is about, how its key is found, and whether it may draw other edges."""
    if name in _SILENT:
        return "", None, False
    own = (
        ("attempt", _attempt_of)
        if name.startswith("task.attempt.")
        else _OWN.get(_node_family(name))
    )
    kind, find = own or ("", None)
    return kind, find, name.startswith(("task.", "handoff.", "subagent.", "agent."))


def _node_family(name: str) -> str:
    return "turn" if name in _TURN_NAMES else name.partition(".")[0]


_TURN_NAMES: Final = frozenset({"run.started", "run.finished", "run.failed"})


def _draw_node(
    draft: "StateDraft", fact: Fact, subject: tuple[str, str], status: str | None, refs: list[str]
) -> GraphNode:
    """The node that a fact is about, as it is with the fact."""
    (kind, key), name = subject, fact.event_class
    node_id, starts = f"{kind}:{key}", name in _STARTING_CLASSES
    aside = name in STATUSLESS_CLASSES or draft.overruled == fact.id
    status = None if aside else status
    shown = _node_status(draft, kind, key) or status
    title = _node_title(draft, kind, key) or (None if aside else fact.title)
    ended = (fact.completed_at or fact.created_at) if status in ENDED_STATUSES else None
    node = draft.state.graph.nodes.get(node_id)
    if node is None:
        node = GraphNode(
            node_id=node_id,
            node_type=kind,
            status=shown or UNKNOWN,
            title=key if title is None else title,
            source_event_ids=[fact.id],
            refs=list(refs) or None,  # The timeline has a list of its own.
            started_at=fact.created_at if starts else None,
            completed_at=ended,
        )
        draft.create(draft.state.graph.nodes, GRAPH_NODES_PATH, node_id, node)
    else:
        path = f"{GRAPH_NODES_PATH}/{escape_key(node_id)}"
        _continue_node(draft, fact, node, path)
        if shown is not None:
            draft.put(node, path, "status", shown)
        if title is not None:
            draft.put(node, path, "title", title)
        if starts and node.started_at is None:
            draft.put(node, path, "started_at", fact.created_at)
        if refs:
            draft.extend(node, path, "refs", refs)
        if status is not None:
            draft.put(node, path, "completed_at", ended)
    if kind == "run":
        _track_run(draft, node)
    return node


def _continue_node(draft: "StateDraft", fact: Fact, node: GraphNode, path: str) -> None:
    if node.source_event_ids[-1] != fact.id and fact.event_class not in COUNTED_CLASSES:
        node.source_event_ids.append(fact.id)
        draft.ops.append(Operation("add", f"{path}/sourceEventIds/-", fact.id))


def _track_run(draft: "StateDraft", node: GraphNode) -> None:
    if node.status in OPEN_STATUSES:
        draft.memory.open_runs[node.node_id] = None
    else:
        draft.memory.open_runs.pop(node.node_id, None)


def _set_parent(draft: "StateDraft", fact: Fact, node: GraphNode) -> None:
    for kind, find in _PARENTS[node.node_type]:
        key = _parent_key(draft, fact, node, kind) if kind in _INFERRED_KINDS else None
        key = key or find(fact)
        if key is not None and f"{kind}:{key}" != node.node_id:
            parent = _ensure_node(draft, fact, kind, key)
            if _descends(draft, parent, node):
                continue
            draft.put(
                node, f"{GRAPH_NODES_PATH}/{escape_key(node.node_id)}", "parent_id", parent.node_id
            )
            _add_edge(draft, parent.node_id, node.node_id, _KIND.get(node.node_type, "contains"))
            if parent.parent_id is None and _places_parent(fact, kind, key):
                _set_parent(draft, fact, parent)
            return


_INFERRED_KINDS: Final = ("subagent", "turn")


def _parent_key(draft: "StateDraft", fact: Fact, node: GraphNode, kind: str) -> str | None:
    """The parent that the state knows and the fact alone does not show."""
    if kind == "subagent" and node.node_type == "subagent":
        thread = draft.state.subagents.threads.get(node.node_id.partition(":")[2])
        return None if thread is None else thread.parent_subagent_id
    if kind == "turn" and turn_of(fact) is not None:
        key = turn_key(draft, fact)
        return key if f"turn:{key}" in draft.state.graph.nodes else None
    return None


def _places_parent(fact: Fact, kind: str, key: str) -> bool:
    """Whether a fact also states where the parent belongs: steps and runs are only ever named, and
    a task is placed by whoever names the task above it.
    """
    if kind == "task":
        return key == task_of(fact) and _parent_task_of(fact) is not None
    return kind in ("step", "run")


def _descends(draft: "StateDraft", node: GraphNode, ancestor: GraphNode) -> bool:
    """Whether a node hangs on another, or so deep that nobody can tell."""
    above: str | None = node.node_id
    for _ in range(GRAPH_DEPTH):
        if above is None or above == ancestor.node_id:
            return above is not None
        above = draft.state.graph.nodes[above].parent_id
    return True


def _draw_links(draft: "StateDraft", fact: Fact, name: str) -> None:
    if name in ("subagent.spawned", "subagent.started", "agent.spawned"):
        call, teammate = tool_of(fact), teammate_of(fact)
        if call is not None and teammate is not None:
            _link_nodes(draft, fact, ("tool", call), ("subagent", teammate), "delegated")
    elif name.startswith("task."):
        key = task_of(fact) or ""
        for other in _list_unlinked(draft, fact, key):
            _link_nodes(draft, fact, ("task", key), ("task", other), "depends_on")
    elif name.startswith("handoff.") or name == "agent.handoff":
        key = fact.handoff_id or other_id(fact, "handoffId", "handoff_id") or fact.id
        event = draft.state.team_workbench.handoff_events.get(key)
        if event is None or event.status not in ("accepted", "completed"):
            return
        if event.from_agent and event.to_agent:
            ends = (("subagent", event.from_agent), ("subagent", event.to_agent))
            _link_nodes(draft, fact, *ends, "handed_off")


def _list_unlinked(draft: "StateDraft", fact: Fact, key: str) -> list[str]:
    """What a task waits for and has no edge to: those that were listed last, unless the fact lists
    them anew.
    """
    task = draft.state.tasks.get(key)
    others = (task.depends_on or []) if task else []
    if not {"dependsOn", "depends_on"}.isdisjoint(fact.payload):
        return others
    edges = draft.state.graph.edges
    found = takewhile(
        lambda other: f"task:{key}>task:{other}:depends_on" not in edges, reversed(others)
    )
    return [*found][::-1]


def _link_nodes(
    draft: "StateDraft", fact: Fact, source: tuple[str, str], target: tuple[str, str], kind: str
) -> None:
    first, second = _ensure_node(draft, fact, *source), _ensure_node(draft, fact, *target)
    _add_edge(draft, first.node_id, second.node_id, kind)


def _ensure_node(draft: "StateDraft", fact: Fact, kind: str, key: str) -> GraphNode:
    node_id = f"{kind}:{key}"
    existing = draft.state.graph.nodes.get(node_id)
    if existing is not None:
        return existing
    node = GraphNode(
        node_id=node_id, node_type=kind, status=UNKNOWN, title=key, source_event_ids=[fact.id]
    )
    return draft.create(draft.state.graph.nodes, GRAPH_NODES_PATH, node_id, node)


def _add_edge(draft: "StateDraft", source: str, target: str, kind: str) -> None:
    edge_id = f"{source}>{target}:{kind}"
    if edge_id not in draft.state.graph.edges:
        edge = GraphEdge(edge_id=edge_id, source=source, target=target, kind=kind)
        draft.create(draft.state.graph.edges, GRAPH_EDGES_PATH, edge_id, edge)


def _node_status(draft: "StateDraft", kind: str, key: str) -> str | None:
    state = draft.state
    match kind:
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


def _node_title(draft: "StateDraft", kind: str, key: str) -> str | None:
    state = draft.state
    match kind:
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

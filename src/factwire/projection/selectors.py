"""Selectors: what a screen asks of a state, in the order in which it shows it.

They only choose and sort what is in the state. None of them knows anything that it does not say.
"""

from typing import Final, Literal

from factwire.projection.actions import Action
from factwire.projection.coding import Process
from factwire.projection.graph import GraphEdge, GraphNode
from factwire.projection.messages import Message
from factwire.projection.model_usage import Compaction
from factwire.projection.reasoning import Plan
from factwire.projection.state import ProjectionState
from factwire.projection.subagents import SubagentThread
from factwire.projection.tasks import ENDED_TASKS, ProjectedTask
from factwire.projection.team import HandoffEvent, LaneEvent, Notification, RosterNode, WorkItem
from factwire.projection.timeline import TimelineEntry
from factwire.projection.tools import Tool
from factwire.projection.views import View

AttentionKind = Literal["needs_input", "plan_ready", "failed", "running"]

_ORDER: Final[tuple[AttentionKind, ...]] = ("needs_input", "plan_ready", "failed", "running")
_SEVERITY: Final = {"critical": 0, "high": 1, "medium": 2, "low": 4}
_UNSTATED_SEVERITY: Final = 3
_PLAN_DECISIONS: Final = ("plan_decision", "teammate_plan_decision")
_COLUMN: Final = {
    "draft": "todo",
    "accepted": "todo",
    "queued": "todo",
    "unknown": "todo",
    "preparing": "doing",
    "running": "doing",
    "retrying": "doing",
    "waiting_input": "waiting",
    "waiting_permission": "waiting",
    "waiting_resource": "waiting",
    "blocked": "waiting",
    "paused": "waiting",
    "cancelling": "waiting",
    "stale": "waiting",
    "failed": "failed",
    "timed_out": "failed",
    "lost": "failed",
    "cancelled": "done",
    "completed": "done",
    "archived": "done",
}
_FAILED_TASKS: Final = ("failed", "timed_out", "lost")


class Attention(View):
    """Something that a person should look at, and why."""

    kind: AttentionKind
    subject_id: str
    title: str
    severity: str | None = None
    requester: str | None = None
    turn_id: str | None = None
    since: str | None = None


class PendingAction(View):
    """An open action, with the name of who asks."""

    action: Action
    requester: str
    severity: str


class ActiveProcess(View):
    """What is going on now: the phase, and everything that is open in it."""

    status: str
    phase: str
    tools: list[Tool]
    processes: list[Process]
    turn_id: str | None = None
    message: str | None = None
    plan: Plan | None = None
    compaction: Compaction | None = None


class TimelinePage(View):
    """Some entries of the timeline; `next_after` asks for what comes behind them."""

    entries: list[TimelineEntry]
    total: int
    next_after: int | None = None


class GraphView(View):
    """Nodes, parents before children, and the edges between them."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class TeamMember(View):
    """One member: its card, and its thread where one is known."""

    node: RosterNode
    thread: SubagentThread | None = None


class TeamView(View):
    """A team at work; `board` holds the columns todo, doing, waiting, failed and done."""

    members: list[TeamMember]
    board: dict[str, list[WorkItem]]
    handoffs: list[HandoffEvent]
    reviews: list[LaneEvent]
    notifications: list[Notification]
    delegated: list[PendingAction]
    topology: str | None = None
    active_agent: str | None = None


def conversation(state: ProjectionState) -> list[Message]:
    """What user and assistant said to each other; a subagent's words are in its transcript."""
    return [
        message
        for message in state.messages
        if message.subagent_id is None and message.status != "retracted"
    ]


def transcript(state: ProjectionState, subagent_id: str) -> list[Message]:
    """What one subagent said."""
    return [
        message
        for message in state.messages
        if message.subagent_id == subagent_id and message.status != "retracted"
    ]


def pending_actions(state: ProjectionState) -> list[PendingAction]:
    """Open actions, the most severe first, then the oldest."""
    found = [
        PendingAction(
            action=action,
            requester=_name_requester(state, action),
            severity=action.severity or "unknown",
        )
        for action in state.actions.values()
        if action.status == "pending"
    ]
    return sorted(found, key=_rank_urgency)


def attention(state: ProjectionState) -> list[Attention]:
    """What needs a person: input first, then plans, then what failed, then what runs."""
    found = [*_find_questions(state), *_find_failures(state), *_find_running(state)]
    return sorted(found, key=lambda item: _ORDER.index(item.kind))


def active_process(state: ProjectionState) -> ActiveProcess:
    """What is going on now."""
    turn = state.runtime.active_turn_id
    plans = [plan for plan in state.plans.values() if turn is not None and plan.turn_id == turn]
    last = state.context.compactions[-1] if state.context.compactions else None
    return ActiveProcess(
        status=state.runtime.status,
        phase=state.runtime.phase,
        turn_id=turn,
        message=state.runtime.message,
        tools=[
            tool
            for tool in state.tools.values()
            if tool.completed_at is None and turn is not None and tool.turn_id == turn
        ],
        processes=[process for process in state.processes.values() if process.status == "running"],
        plan=plans[-1] if plans else None,
        compaction=last if last is not None and last.status == "running" else None,
    )


def timeline_page(state: ProjectionState, after: int = 0, limit: int = 100) -> TimelinePage:
    """`limit` entries from the place `after` on, counted from the beginning."""
    if after < 0 or limit < 1:
        raise ValueError(f"expected a place from 0 and a limit from 1, got {after} and {limit}")
    entries = state.timeline[after : after + limit]
    end = after + len(entries)
    total = len(state.timeline)
    return TimelinePage(entries=entries, total=total, next_after=end if end < total else None)


def graph_view(state: ProjectionState, root: str | None = None) -> GraphView:
    """The whole graph, or what hangs on one node."""
    children: dict[str | None, list[GraphNode]] = {}
    for node in state.graph.nodes.values():
        children.setdefault(node.parent_id, []).append(node)
    roots = [*children.get(None, ()), *state.graph.nodes.values()]
    waiting = list(reversed(roots if root is None else [state.graph.nodes[root]]))
    visible: dict[str, GraphNode] = {}
    while waiting:
        node = waiting.pop()
        if node.node_id not in visible:
            visible[node.node_id] = node
            waiting += reversed(children.get(node.node_id, ()))
    edges = [e for e in state.graph.edges.values() if e.source in visible and e.target in visible]
    return GraphView(nodes=list(visible.values()), edges=edges)


def team_view(state: ProjectionState) -> TeamView:
    """The team: who is in it, the board by column, and what goes between its members."""
    team = state.team_workbench
    board: dict[str, list[WorkItem]] = {column: [] for column in dict.fromkeys(_COLUMN.values())}
    for item in team.work_items.values():
        board[_COLUMN.get(item.status, "doing")].append(item)
    return TeamView(
        members=[
            TeamMember(node=node, thread=state.subagents.threads.get(node.member_id))
            for node in team.roster_nodes.values()
        ],
        board=board,
        handoffs=list(team.handoff_events.values()),
        reviews=team.review_events,
        notifications=team.notifications,
        delegated=[
            pending
            for pending in pending_actions(state)
            if pending.action.subagent_id is not None
            or pending.action.action_type == "delegated_permission"
        ],
        topology=team.topology,
        active_agent=team.active_agent,
    )


def unconfirmed_ids(state: ProjectionState, optimistic: list[str]) -> list[str]:
    """Those of a client's own message ids that the runtime has not yet given an id of its own."""
    confirmed = {message.optimistic_id for message in state.messages}
    known = {message.message_id for message in state.messages}
    return [key for key in optimistic if key not in confirmed and key not in known]


def _find_questions(state: ProjectionState) -> list[Attention]:
    found: list[Attention] = []
    for pending in pending_actions(state):
        action = pending.action
        is_plan = action.action_type in _PLAN_DECISIONS
        found.append(
            Attention(
                kind="plan_ready" if is_plan else "needs_input",
                subject_id=action.action_id,
                title=action.prompt or action.title or action.action_id,
                severity=action.severity,
                requester=pending.requester,
                turn_id=action.turn_id,
                since=action.requested_at,
            )
        )
    return found


def _find_failures(state: ProjectionState) -> list[Attention]:
    found: list[Attention] = []
    runtime = state.runtime
    if runtime.status == "failed" and runtime.latest_turn_id is not None:
        title = runtime.recovery_hint or runtime.failure_category or "failed"
        turn = runtime.latest_turn_id
        found.append(Attention(kind="failed", subject_id=turn, title=title, turn_id=turn))
    return found + [
        _to_attention("failed", task)
        for task in state.tasks.values()
        if task.status in _FAILED_TASKS
    ]


def _find_running(state: ProjectionState) -> list[Attention]:
    found: list[Attention] = []
    turn = state.runtime.active_turn_id
    if turn is not None:
        title = state.runtime.message or state.runtime.phase
        found.append(Attention(kind="running", subject_id=turn, title=title, turn_id=turn))
    return found + [
        _to_attention("running", task)
        for task in state.tasks.values()
        if task.status not in ENDED_TASKS and task.status not in ("unknown", "draft", "stale")
    ]


def _to_attention(kind: AttentionKind, task: ProjectedTask) -> Attention:
    return Attention(
        kind=kind,
        subject_id=task.task_id,
        title=task.title or task.objective or task.task_id,
        requester=task.assignee,
        turn_id=task.turn_id,
        since=task.updated_at,
    )


def _name_requester(state: ProjectionState, action: Action) -> str:
    """Who asks: the teammate's name where one is known, else whatever id the fact gave."""
    thread = state.subagents.threads.get(action.subagent_id or action.requested_by or "")
    name = (thread.name or thread.title or thread.role) if thread is not None else None
    return name or action.requested_by or action.agent_id or "unknown"


def _rank_urgency(pending: PendingAction) -> tuple[int, int]:
    severity = _SEVERITY.get(pending.severity, _UNSTATED_SEVERITY)
    return severity, pending.action.sequence or 0

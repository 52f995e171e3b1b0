"""The team in lines: who is there, who works on what, and what was handed over."""

from collections.abc import Iterator

from rich.text import Text

from factwire.cli.sections.lines import NAME, Section, described, newest
from factwire.cli.terminal_text import harmless
from factwire.projection import ProjectionState
from factwire.projection.team import HandoffEvent, RosterNode, WorkItem


def team(state: ProjectionState, last: int) -> Section:
    """The team, if there is one: at most `last` of each kind."""
    if not _has_team(state):
        return Section("Team", [])
    found = state.team_workbench
    kinds = (found.roster_nodes, found.work_items, found.handoff_events)
    lists = (found.review_events, found.notifications)
    left_out = sum(max(0, len(each) - last) for each in (*kinds, *lists))
    return Section("Team", list(_lines(state, last)), left_out)


def _has_team(state: ProjectionState) -> bool:
    """Whether others than the one agent are, or were, at work."""
    found = state.team_workbench
    named = found.team_id or found.team_name or found.topology not in (None, "solo_run")
    return bool(found.roster_nodes or found.handoff_events or found.notifications or named)


def _lines(state: ProjectionState, last: int) -> Iterator[Text]:
    found = state.team_workbench

    def member(key: str, node: RosterNode) -> Text:
        thread = state.subagents.threads.get(key)
        said = thread and (thread.message or thread.summary)
        task = node.task_id and f"on {node.task_id}"
        return described(node.status, node.name or key, node.role or node.kind, task, said)

    words = (found.team_name or found.team_id, found.topology, found.team_phase)
    about = "  ".join(harmless(word, NAME) for word in words if word)
    if about:
        yield Text(about, style="bold")
    yield from newest("", found.roster_nodes, last, member).lines
    yield from newest("", found.work_items, last, _work_item).lines
    yield from newest("", found.handoff_events, last, _handoff).lines
    for review in found.review_events[-last:]:
        yield described(review.status, f"review {review.title}", review.verdict)
    for said in found.notifications[-last:]:
        worker = f"{said.worker_id or 'a worker'} says"
        yield described(said.status or "info", worker, said.message or said.title)


def _work_item(key: str, item: WorkItem) -> Text:
    waits = item.blocked_by and f"after {', '.join(item.blocked_by)}"
    owner = item.assignee and f"by {item.assignee}"
    return described(item.status, f"task {item.title or key}", owner, waits)


def _handoff(_: str, event: HandoffEvent) -> Text:
    way = f"handoff {event.from_agent or 'unknown'} → {event.to_agent or 'unknown'}"
    return described(event.status, way, event.reason)

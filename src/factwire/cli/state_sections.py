"""A projection's state in lines, part by part: a state goes in, lines come out."""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from factwire.cli.terminal import (
    DIM,
    LINE,
    NAME,
    Section,
    build_line,
    build_newest_section,
    count_of,
    status_mark,
    terminal_safe,
    terminal_safe_lines,
    to_text,
)
from factwire.projection import ProjectionState
from factwire.projection.actions import Action
from factwire.projection.artifacts import ArtifactState, EvidenceItem
from factwire.projection.diagnostics import Diagnostic
from factwire.projection.hydration import Gap, Hydration
from factwire.projection.messages import ArtifactCardPart, EvidenceCitationPart, Message, TextPart
from factwire.projection.tasks import ProjectedTask
from factwire.projection.team import HandoffEvent, RosterNode, WorkItem
from factwire.projection.timeline import TimelineEntry
from factwire.projection.tools import Tool

_CHARACTERS: Final = 4_000
"""Characters of one text that are shown, the last ones."""

_SPEAKERS: Final = {"user": "bold cyan", "assistant": "bold green"}


def conversation_section(state: ProjectionState, last: int) -> Section:
    """The newest messages."""
    messages = state.messages[-last:]
    blocks = [lines for message in messages if (lines := list(_message_lines(state, message)))]
    spaced = [line for lines in blocks for line in (Text(" "), *lines)]
    return Section("Conversation", spaced[1:], len(state.messages) - len(messages))


def _message_lines(state: ProjectionState, message: Message) -> Iterator[Text]:
    lines = list(_part_lines(state, message))
    if not lines:
        return
    if message.status in ("interrupted", "retracted", "stale"):
        lines.append(Text(f"({message.status})", style="yellow"))
    elif message.status == "streaming":
        lines[-1].append(" ▌", style="green")
    speaker = _speaker(state, message)
    style = _SPEAKERS.get(speaker, "bold magenta")
    yield Text.assemble((terminal_safe(speaker, NAME), style), "  ", lines[0])
    yield from lines[1:]


def _speaker(state: ProjectionState, message: Message) -> str:
    if message.subagent_id is None:
        return message.role
    thread = state.subagents.threads.get(message.subagent_id)
    return (thread and (thread.name or thread.title)) or message.subagent_id


def _part_lines(state: ProjectionState, message: Message) -> Iterator[Text]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from _text_lines(str(part.text))
        elif isinstance(part, ArtifactCardPart):
            made = state.artifacts.get(part.artifact_id)
            title = (made and made.title) or part.artifact_id
            yield Text(f"[artifact: {terminal_safe(title, NAME)}]", style="blue")
        elif isinstance(part, EvidenceCitationPart):
            item = state.evidence.items.get(part.evidence_id)
            title = (item and item.title) or part.evidence_id
            verdict = f" – {terminal_safe(part.verdict, NAME)}" if part.verdict else ""
            yield Text(f"[evidence: {terminal_safe(title, NAME)}{verdict}]", style="blue")


def _text_lines(text: str) -> Iterator[Text]:
    before = len(text) - _CHARACTERS
    if before > 0:
        yield Text(f"({before:,} earlier characters)", style=DIM)
    if text.strip():
        yield from map(Text, terminal_safe_lines(text[max(0, before) :]))


_CONVERSATION: Final = "text:"
_LOOKED_AT: Final = 4
"""Entries looked at for each one shown, because those of the conversation are passed over."""


def process_section(state: ProjectionState, last: int) -> Section:
    """The newest of the timeline, without what is conversation."""
    entries = [
        entry
        for entry in state.timeline[-_LOOKED_AT * last :]
        if not entry.entry_id.startswith(_CONVERSATION)
    ]
    return Section("Process", [_entry_line(state, entry) for entry in entries[-last:]])


def tools_section(state: ProjectionState, last: int) -> Section:
    def line(key: str, tool: Tool) -> Text:
        return build_line(
            tool.state, tool.tool_name or key, tool.title, *_tool_outcome(state, tool)
        )

    return build_newest_section("Tools", state.tools, last, line)


def open_actions_section(state: ProjectionState, last: int) -> Section:
    """What waits for a person, the oldest first."""
    waiting = [action for action in state.actions.values() if action.status == "pending"]
    lines = [line for action in waiting[:last] for line in _action_lines(action)]
    return Section("Open actions", lines, max(0, len(waiting) - last))


def _entry_line(state: ProjectionState, entry: TimelineEntry) -> Text:
    kind, _, key = entry.entry_id.partition(":")
    tool = state.tools.get(key) if kind == "tool" else None
    if tool is not None:
        details = (tool.tool_name, *_tool_outcome(state, tool), entry.subagent_id)
        return build_line(tool.state, entry.title, *details)
    missing = "incomplete" if entry.degraded else None
    name = None if entry.title == entry.event_class else entry.event_class
    return build_line(entry.status, entry.title, name, entry.detail, missing, entry.subagent_id)


def _tool_outcome(state: ProjectionState, tool: Tool) -> Iterator[str | None]:
    """What a call says of itself, how far it is, how it ended, and whether somebody is asked."""
    yield tool.summary or tool.message
    if tool.progress is not None and tool.completed_at is None:
        yield f"{tool.progress:g}" if tool.total is None else f"{tool.progress:g}/{tool.total:g}"
    if tool.exit_code:
        yield f"exit {tool.exit_code}"
    yield tool.failure_category
    action = state.actions.get(tool.action_id or "")
    if action is not None and action.status == "pending":
        yield "waiting for a decision"


def _action_lines(action: Action) -> Iterator[Text]:
    question = action.prompt or action.title or action.action_id
    line = Text.assemble(("? ", "bold yellow"), (terminal_safe(question, LINE), "bold"))
    if action.severity:
        line.append(f"  {terminal_safe(action.severity, NAME)}", style="red")
    yield line
    who = f"requested by {action.requested_by}" if action.requested_by else "requested by unknown"
    words = (action.action_id, action.action_type, who, action.tool_name, action.rule)
    yield Text("  " + "  ".join(terminal_safe(word, NAME) for word in words if word), style=DIM)
    if action.command:
        place = f"  in {terminal_safe(action.cwd, NAME)}" if action.cwd else ""
        yield Text.assemble(
            "  $ ", (terminal_safe(to_text(action.command), LINE), "cyan"), (place, DIM)
        )


_GAPS = 5


def status_text(state: ProjectionState) -> Text:
    """What the thread is doing."""
    runtime = state.runtime
    line = Text()
    line.append_text(status_mark(runtime.status))
    if line.plain != runtime.status:
        line.append(f" {terminal_safe(runtime.status, NAME)}", style="bold")
    turn = runtime.latest_turn_id and f"turn {runtime.latest_turn_id} {runtime.latest_turn_status}"
    shown = ("unknown", runtime.status, runtime.latest_turn_status)
    phase = runtime.phase if runtime.phase not in shown else None
    queued = runtime.queued_turn_count and f"{runtime.queued_turn_count} queued"
    remarks = (runtime.message, runtime.failure_category, runtime.recovery_hint)
    for word in (phase, turn, runtime.model, *remarks, runtime.blocked_reason, queued):
        if word:
            line.append(f" · {terminal_safe(str(word), LINE)}")
    return line


def hydration_text(state: ProjectionState) -> Text:
    """Whether the state is whole, and what is missing if not."""
    whole = state.hydration
    line = Text()
    line.append(whole.status, style="green" if whole.status in ("live", "idle") else "yellow")
    line.append(f" · {count_of(whole.event_count, 'fact')}")
    if whole.cursor is not None:
        line.append(f" up to sequence {whole.cursor}")
    for word in _doubts(whole):
        line.append(f" · {word}", style="yellow")
    return line


def _doubts(whole: Hydration) -> list[str]:
    words: list[str] = []
    if whole.gaps:
        more = len(whole.gaps) - _GAPS
        places = ", ".join(map(_gap_text, whole.gaps[:_GAPS]))
        words.append(f"missing {places}{f' and {more} more' if more > 0 else ''}")
    if whole.held:
        words.append(f"{whole.held:,} held back")
    if whole.late:
        words.append(f"{whole.late:,} too late")
    if whole.dropped:
        words.append(f"{whole.dropped:,} left out")
    return words + [terminal_safe(reason, NAME) for reason in whole.reasons]


def _gap_text(gap: Gap) -> str:
    first, last = gap.from_sequence, gap.to_sequence
    place = f"{first}" if first == last else f"{first}–{last}"
    return place if gap.thread_id is None else f"{place} of {terminal_safe(gap.thread_id, NAME)}"


def team_section(state: ProjectionState, last: int) -> Section:
    """The team, if there is one: at most `last` of each kind."""
    if not _has_team(state):
        return Section("Team", [])
    found = state.team_workbench
    kinds = (found.roster_nodes, found.work_items, found.handoff_events)
    lists = (found.review_events, found.notifications)
    left_out = sum(max(0, len(each) - last) for each in (*kinds, *lists))
    return Section("Team", list(_team_lines(state, last)), left_out)


def _has_team(state: ProjectionState) -> bool:
    """Whether others than the one agent are, or were, at work."""
    found = state.team_workbench
    named = found.team_id or found.team_name or found.topology not in (None, "solo_run")
    return bool(found.roster_nodes or found.handoff_events or found.notifications or named)


def _team_lines(state: ProjectionState, last: int) -> Iterator[Text]:
    found = state.team_workbench

    def member(key: str, node: RosterNode) -> Text:
        thread = state.subagents.threads.get(key)
        message = thread and (thread.message or thread.summary)
        task = node.task_id and f"on {node.task_id}"
        return build_line(node.status, node.name or key, node.role or node.kind, task, message)

    words = (found.team_name or found.team_id, found.topology, found.team_phase)
    about = "  ".join(terminal_safe(word, NAME) for word in words if word)
    if about:
        yield Text(about, style="bold")
    yield from build_newest_section("", found.roster_nodes, last, member).lines
    yield from build_newest_section("", found.work_items, last, _work_item_line).lines
    yield from build_newest_section("", found.handoff_events, last, _handoff_line).lines
    for review in found.review_events[-last:]:
        yield build_line(review.status, f"review {review.title}", review.verdict)
    for notification in found.notifications[-last:]:
        worker = f"{notification.worker_id or 'a worker'} says"
        yield build_line(
            notification.status or "info", worker, notification.message or notification.title
        )


def _work_item_line(key: str, item: WorkItem) -> Text:
    waits = item.blocked_by and f"after {', '.join(item.blocked_by)}"
    owner = item.assignee and f"by {item.assignee}"
    return build_line(item.status, f"task {item.title or key}", owner, waits)


def _handoff_line(_: str, event: HandoffEvent) -> Text:
    handoff = f"handoff {event.from_agent or 'unknown'} → {event.to_agent or 'unknown'}"
    return build_line(event.status, handoff, event.reason)


def tasks_section(state: ProjectionState, last: int) -> Section:
    return build_newest_section("Tasks", state.tasks, last, _task_line)


def artifacts_section(state: ProjectionState, last: int) -> Section:
    return build_newest_section("Artifacts", state.artifacts, last, _artifact_line)


def evidence_section(state: ProjectionState, last: int) -> Section:
    return build_newest_section("Evidence", state.evidence.items, last, _evidence_line)


def diagnostics_section(state: ProjectionState, last: int) -> Section:
    section = build_newest_section("Diagnostics", state.diagnostics.items, last, _diagnostic_line)
    return section._replace(left_out=max(0, state.diagnostics.total - last))


def _task_line(key: str, task: ProjectedTask) -> Text:
    total = "?" if task.total_steps is None else task.total_steps
    steps = task.completed_steps is not None and f"{task.completed_steps}/{total} steps"
    retries = task.retries and f"retries: {task.retries}"
    return build_line(task.status, task.title or task.objective or key, steps, retries)


def _artifact_line(key: str, made: ArtifactState) -> Text:
    return build_line(made.status, made.title or made.path or key, made.kind, made.version_id)


def _evidence_line(key: str, item: EvidenceItem) -> Text:
    return build_line(item.status, item.title or key, item.kind, item.verdict, item.summary)


def _diagnostic_line(_: str, found: Diagnostic) -> Text:
    return build_line(found.severity, found.code, found.message, found.recovery_hint)

"""Tasks, artifacts, evidence and diagnostics in lines."""

from rich.text import Text

from factwire.cli.sections.lines import Section, described, newest
from factwire.projection import ProjectionState
from factwire.projection.artifacts import Artifact
from factwire.projection.diagnostics import Diagnostic
from factwire.projection.evidence import EvidenceItem
from factwire.projection.tasks import Task


def tasks(state: ProjectionState, last: int) -> Section:
    return newest("Tasks", state.tasks, last, _task)


def artifacts(state: ProjectionState, last: int) -> Section:
    return newest("Artifacts", state.artifacts, last, _artifact)


def evidence(state: ProjectionState, last: int) -> Section:
    return newest("Evidence", state.evidence.items, last, _evidence)


def diagnostics(state: ProjectionState, last: int) -> Section:
    section = newest("Diagnostics", state.diagnostics.items, last, _diagnostic)
    return section._replace(left_out=max(0, state.diagnostics.total - last))


def _task(key: str, task: Task) -> Text:
    total = "?" if task.total_steps is None else task.total_steps
    steps = task.completed_steps is not None and f"{task.completed_steps}/{total} steps"
    retries = task.retries and f"retries: {task.retries}"
    return described(task.status, task.title or task.objective or key, steps, retries)


def _artifact(key: str, made: Artifact) -> Text:
    return described(made.status, made.title or made.path or key, made.kind, made.version_id)


def _evidence(key: str, item: EvidenceItem) -> Text:
    return described(item.status, item.title or key, item.kind, item.verdict, item.summary)


def _diagnostic(_: str, found: Diagnostic) -> Text:
    return described(found.severity, found.code, found.message, found.recovery_hint)

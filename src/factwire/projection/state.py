"""`ProjectionState`: everything a screen shows of one thread, as one document.

Every root is always there; what no fact has said is absent or reads `unknown`.
"""

from typing import Any, Final

import msgspec

from factwire.projection import (
    coding,
    context,
    diagnostics,
    evidence,
    graph,
    hydration,
    metrics,
    permissions,
    queue,
    runtime,
    subagents,
    team,
)
from factwire.projection.actions import Action
from factwire.projection.artifacts import Artifact
from factwire.projection.parts import Message
from factwire.projection.processes import Hook, Process
from factwire.projection.reasoning import Plan
from factwire.projection.restored import RestoredFrom
from factwire.projection.tasks import Job, Task
from factwire.projection.timeline import TimelineEntry
from factwire.projection.tools import Tool
from factwire.projection.views import View

_encoder: Final = msgspec.json.Encoder(enc_hook=str)

STATE_VERSION: Final = "factwire-projection/v1"


class ProjectionState(View):
    """The roots. `shared` is the application's own state, which `state.delta` patches;
    `agent_sessions` is the name under which each outside agent knows this thread.
    """

    schema_version: str
    runtime: runtime.Runtime
    messages: list[Message]
    plans: dict[str, Plan]
    timeline: list[TimelineEntry]
    graph: graph.Graph
    tools: dict[str, Tool]
    actions: dict[str, Action]
    artifacts: dict[str, Artifact]
    evidence: evidence.Evidence
    diagnostics: diagnostics.Diagnostics
    tasks: dict[str, Task]
    jobs: dict[str, Job]
    queue: queue.Queue
    context: context.Context
    subagents: subagents.Subagents
    team_workbench: team.TeamWorkbench
    permissions: permissions.Permissions
    metrics: metrics.Metrics
    processes: dict[str, Process]
    hooks: dict[str, Hook]
    coding: coding.Coding
    shared: dict[str, Any]
    hydration: hydration.Hydration
    read_model: RestoredFrom
    runtime_id: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    title: str | None = None
    agent_sessions: dict[str, str] | None = None


def empty_state(thread_id: str | None = None) -> ProjectionState:
    """The state of a thread of which no fact is known."""
    return ProjectionState(
        schema_version=STATE_VERSION,
        thread_id=thread_id,
        runtime=runtime.idle(),
        messages=[],
        plans={},
        timeline=[],
        graph=graph.nothing(),
        tools={},
        actions={},
        artifacts={},
        evidence=evidence.nothing(),
        diagnostics=diagnostics.nothing(),
        tasks={},
        jobs={},
        queue=queue.nothing(),
        context=context.nothing(),
        subagents=subagents.nothing(),
        team_workbench=team.nothing(),
        permissions=permissions.nothing(),
        metrics=metrics.nothing(),
        processes={},
        hooks={},
        coding=coding.nothing(),
        shared={},
        hydration=hydration.idle(),
        read_model=RestoredFrom(),
    )


def encode_state(state: ProjectionState) -> bytes:
    """The state as JSON."""
    return _encoder.encode(state)


def decode_state(data: bytes) -> ProjectionState:
    """The state that `encode_state` wrote."""
    return msgspec.json.decode(data, type=ProjectionState, dec_hook=_text)


def _text(kind: type, value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")  # noqa: TRY004
    return kind(value)

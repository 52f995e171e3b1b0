"""Who emits each event type: an agent at work, or what somebody does over REST.

Every scene is played on a running Edge, and what it shows is read as Server-Sent Events. `EMITTERS`
says where each type is to be seen; the scenes of agents that are not ours are in `tests/agents`.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import httpx

from factwire.facts import KNOWN_CLASSES
from factwire.serving.envelopes import VIEWS, View
from tests.edge.edges import WAIT_SECONDS, RunningEdge
from tests.edge.event_spec import SPECIFIED

EMITTERS: Final = {
    "resources": "project.created project.updated project.deleted conversation.created "
    "conversation.member.added thread.created thread.updated thread.deleted thread.forked "
    "preview.ready preview.stopped runner.online runner.offline",
    "demo tour": "run.queued run.started run.finished run.status.changed message.created "
    "message.delta item.created item.updated approval.requested approval.decided "
    "artifact.created run.agent.text_delta run.agent.text_block "
    "run.agent.thinking run.agent.tool_call run.agent.tool_result run.agent.file_change "
    "run.agent.permission_requested run.agent.permission_decided run.agent.session_state_changed "
    "run.agent.session_metrics run.agent.task_dispatched "
    "run.agent.sub_agents_complete",
    "shell": "run.output run.output.batch run.failed",
    "stop": "run.cancelled",
    "full disk": "run.persistence_error",
    "openai": "run.agent.session_init run.agent.context_usage run.agent.context_warning "
    "run.agent.api_retry run.agent.rate_limit run.agent.auth_status run.agent.result",
    "bad cursor": "error",
    "claude tools": "run.agent.hook_started run.agent.hook_progress run.agent.hook_response "
    "run.agent.tool_use_summary",
    "claude team": "run.agent.task_started run.agent.task_progress run.agent.task_notification",
    "claude compaction": "run.agent.compact_boundary",
    "claude route": "run.agent.route_decision",
    "claude mode": "run.agent.status_change",
    "codex files": "artifact.updated",
    "codex compaction": "run.agent.context_compaction",
}
"""Scene → the types that it has to show, with the fields of the specification."""

NOT_SHOWN: Final = {
    "run.started": "finishedAt",
    "item.updated": "createdAt",
    "run.agent.file_change": "diff",
    "run.agent.tool_result": "ref exitCode",
    "run.agent.tool_call": "elapsed",
    "run.output": "truncated maxBytes bytesWritten ref",
    "run.output.batch": "truncated maxBytes bytesWritten ref",
    "approval.decided": "reason",
    "run.agent.permission_decided": "reason",
    "run.agent.rate_limit": "utilization resetsAt",
    "run.agent.auth_status": "output",
    "run.agent.result": "totalCostUsd errors structuredOutput",
    "run.agent.route_decision": "context approved feedback summary blocked_reason subtask_id "
    "parent_task_id correlation_id",
    "run.agent.status_change": "permissionMode",
    "run.agent.context_compaction": "threshold",
}
"""Fields that a type has in some cases only, and not in its scene."""


def types_of(scene: str) -> list[str]:
    return EMITTERS[scene].split()


def fields_of(name: str) -> set[str]:
    """The fields that a type has to be seen with."""
    named = set(SPECIFIED.get(name, "").split())
    return named - set(NOT_SHOWN.get(name, "").split())


Shown = dict[str, list[dict[str, Any]]]
"""Envelopes by their type."""


async def read_events(http: httpx.AsyncClient, view: View, head: int) -> list[dict[str, Any]]:
    """What an Edge has sent up to a place in its journal, as a stream sends it."""
    found: list[dict[str, Any]] = []
    headers = {"accept": "text/event-stream"}
    request = http.stream("GET", "/v1/events", params={"view": view}, headers=headers)
    async with asyncio.timeout(WAIT_SECONDS), request as answer:
        assert answer.status_code == 200
        async for envelope in _messages(answer.aiter_lines()):
            found.append(envelope)
            if envelope["seq"] >= head:
                break
    return found


async def _messages(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def read_shown(edge: RunningEdge) -> Shown:
    """What an Edge shows until now, in both views; all of it is on the list of types, or is a class
    of facts.
    """
    head = (await edge.machine.journal.head()).seq
    shown: Shown = defaultdict(list)
    for view in VIEWS:
        for envelope in await read_events(edge.http, view, head):
            shown[envelope["type"]].append(envelope)
    unlisted = [name for name in shown if name not in SPECIFIED and name not in KNOWN_CLASSES]
    assert set(unlisted) <= {"project.deleted"}, unlisted
    return shown


def assert_shows(shown: Shown, names: Iterable[str]) -> None:
    """Each of these types was sent, and has been seen with all its fields."""
    missing: dict[str, Any] = {}
    for name in names:
        seen = {field for envelope in shown.get(name, ()) for field in envelope["payload"]}
        if name not in shown or fields_of(name) - seen:
            missing[name] = sorted(fields_of(name) - seen) if name in shown else "never sent"
    assert missing == {}, missing

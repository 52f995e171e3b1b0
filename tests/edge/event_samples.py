"""Facts as runtimes, sources and routes write them, and what each is told as."""

from typing import Any, NamedTuple

from factwire.edge.events import build_envelope
from factwire.facts import Fact
from factwire.facts.shapes import read_fact
from factwire.serving.envelopes import Envelope, View

EPOCH = "0123456789abcdef"
EDGE = "edge_1"
TIME = "2026-06-10T00:00:00.000Z"
TURN = {"threadId": "thr_1", "turnId": "trn_1", "runId": "run_1", "projectId": "prj_1"}
ITEM = {"projectId": "prj_1", "threadId": "thr_1", "runId": "run_1"}
REF = "output:sha256:" + "0" * 64


def fact(event_class: str | None, payload: dict[str, Any] | None = None, /, **ids: Any) -> Fact:
    """A fact of this class."""
    value = {
        "id": "evt_1",
        "kind": "state",
        "status": "running",
        "title": "A fact",
        "createdAt": TIME,
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "edge",
        "sequence": 1,
        "payload": payload or {},
        **ids,
    }
    return read_fact(value if event_class is None else value | {"eventClass": event_class}, "facts")


def to_envelope(value: Fact, view: View = "runtime", seq: int = 7) -> Envelope:
    """The envelope of a fact."""
    return build_envelope(seq, value, view, epoch=EPOCH, edge_id=EDGE)


class Sample(NamedTuple):
    """A fact, and in one or both views its type and payload."""

    fact: Fact
    type: str
    payload: dict[str, Any]
    views: tuple[View, ...] = ("runtime", "conversation")


RUNTIME: tuple[View, ...] = ("runtime",)
CONVERSATION: tuple[View, ...] = ("conversation",)

_PROJECT = {"name": "Site", "workDir": "site", "createdAt": TIME, "updatedAt": TIME}
_THREAD = {"title": "Fix it", "status": "active", "createdAt": TIME}
_ASKED = {
    "actionType": "tool_approval",
    "severity": "high",
    "prompt": "Run it?",
    "shown": "rm x",
    "args": {"command": "rm x"},
    "argsHash": "h",
    "expiresAt": TIME,
    "requestedBy": "demo",
    "toolName": "run",
}
_ACTION = {**TURN, "actionId": "act_1", "toolCallId": "call_1"}
_CALL = {**TURN, "toolCallId": "call_1"}
_TASK = {**TURN, "taskId": "task_1", "parentTaskId": "task_0"}

SAMPLES = [
    # the Edge's own
    Sample(
        fact("project.created", _PROJECT, projectId="prj_1"),
        "project.created",
        {"projectId": "prj_1", **_PROJECT},
    ),
    Sample(
        fact("project.updated", {"name": "New"}, projectId="prj_1"),
        "project.updated",
        {"projectId": "prj_1", "name": "New", "updatedAt": TIME},
    ),
    Sample(fact("project.deleted", projectId="prj_1"), "project.deleted", {"projectId": "prj_1"}),
    Sample(
        fact("conversation.created", {"title": "Talk"}, conversationId="cnv_1"),
        "conversation.created",
        {"conversationId": "cnv_1", "title": "Talk", "createdAt": TIME, "updatedAt": TIME},
    ),
    Sample(
        fact(
            "conversation.member.added",
            {"memberId": "ann", "memberType": "user"},
            conversationId="cnv_1",
        ),
        "conversation.member.added",
        {"conversationId": "cnv_1", "memberId": "ann", "memberType": "user"},
    ),
    Sample(
        fact("thread.created", _THREAD, threadId="thr_1", projectId="prj_1"),
        "thread.created",
        {"threadId": "thr_1", "projectId": "prj_1", **_THREAD, "updatedAt": TIME},
    ),
    Sample(
        fact("thread.updated", {"status": "archived"}, threadId="thr_1"),
        "thread.updated",
        {"threadId": "thr_1", "status": "archived", "updatedAt": TIME},
    ),
    Sample(fact("thread.deleted", threadId="thr_1"), "thread.deleted", {"threadId": "thr_1"}),
    Sample(
        fact("thread.forked", {"fromItemId": "i1"}, threadId="thr_2", parentThreadId="thr_1"),
        "thread.forked",
        {"threadId": "thr_2", "parentThreadId": "thr_1", "fromItemId": "i1", "status": "active"}
        | {"createdAt": TIME, "updatedAt": TIME},
    ),
    Sample(
        fact(
            "message.created",
            {"role": "user", "status": "completed", "content": {"text": "Hello", "exitCode": "x"}},
            itemId="i1",
            threadId="thr_1",
        ),
        "message.created",
        {
            "itemId": "i1",
            "type": "user_message",
            "status": "completed",
            "threadId": "thr_1",
            "role": "user",
            "content": {"text": "Hello"},
            "createdAt": TIME,
            "updatedAt": TIME,
        },
    ),
    *(
        Sample(
            fact(name, {"type": "note", "status": "completed"}, itemId="i2", threadId="thr_1"),
            name,
            {
                "itemId": "i2",
                "type": "note",
                "status": "completed",
                "threadId": "thr_1",
                "createdAt": TIME,
                "updatedAt": TIME,
            },
        )
        for name in ("item.created", "item.updated")
    ),
    *(
        Sample(fact(name, {"runnerId": "r1"}), name, {"runnerId": "r1"})
        for name in ("runner.online", "runner.offline")
    ),
    Sample(
        fact("run.persistence_error", {"error": "disk full"}, **TURN),
        "run.persistence_error",
        {"runId": "run_1", "error": "disk full"},
    ),
    *(
        Sample(
            fact(f"preview.{status}", {"previewId": "pre_1", "url": "http://localhost:1/"}, **TURN),
            f"preview.{status}",
            {
                "previewId": "pre_1",
                "status": status,
                "runId": "run_1",
                "url": "http://localhost:1/",
            },
        )
        for status in ("ready", "stopped")
    ),
    # runs
    Sample(
        fact("turn.submitted", {"prompt": "Do it", "agentId": "demo"}, **TURN),
        "run.queued",
        {"runId": "run_1", "status": "queued", "agentId": "demo", "createdAt": TIME}
        | {"projectId": "prj_1", "threadId": "thr_1"},
        RUNTIME,
    ),
    Sample(
        fact("turn.submitted", {"prompt": "Do it", "agentId": "demo"}, **TURN),
        "message.created",
        {
            "itemId": "trn_1:user",
            "type": "user_message",
            "role": "user",
            "status": "completed",
            **ITEM,
            "content": {"text": "Do it"},
            "createdAt": TIME,
            "updatedAt": TIME,
        },
        CONVERSATION,
    ),
    Sample(
        fact("turn.submitted", {"agentId": "demo"}, threadId="thr_1", turnId="trn_1"),
        "run.queued",
        {"runId": "run_1", "status": "queued", "agentId": "demo", "createdAt": TIME}
        | {"threadId": "thr_1"},
        CONVERSATION,
    ),
    Sample(
        fact(
            "queue.changed",
            {"change": "added", "agentId": "demo", "retryOf": "trn_1", "projectId": "prj_1"},
            threadId="thr_1",
            queuedTurnId="trn_2",
        ),
        "run.queued",
        {"runId": "run_2", "status": "queued", "agentId": "demo", "retryOf": "run_1"}
        | {"threadId": "thr_1", "projectId": "prj_1", "createdAt": TIME},
    ),
    Sample(
        fact("queue.changed", {"change": "removed"}, threadId="thr_1", queuedTurnId="trn_2"),
        "run.cancelled",
        {"runId": "run_2", "status": "cancelled", "threadId": "thr_1", "finishedAt": TIME},
        RUNTIME,
    ),
    Sample(
        fact("queue.changed", {"change": "removed"}, threadId="thr_1", queuedTurnId="trn_2"),
        "run.status.changed",
        {"runId": "run_2", "from": "queued", "to": "cancelled", "finishedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("turn.started", {"agentId": "demo"}, **TURN),
        "run.started",
        {"runId": "run_1", "status": "running", "startedAt": TIME}
        | {"projectId": "prj_1", "threadId": "thr_1"},
        RUNTIME,
    ),
    Sample(
        fact("turn.started", {"agentId": "demo"}, **TURN),
        "run.status.changed",
        {"runId": "run_1", "from": "queued", "to": "running", "startedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("run.status", {"status": "waiting", "from": "running"}, **TURN),
        "run.status.changed",
        {"runId": "run_1", "from": "running", "to": "waiting"},
        CONVERSATION,
    ),
    *(
        Sample(
            fact(
                "queue.changed",
                {"steerId": "s1", "text": "Faster", "status": status},
                **TURN,
                control="steer",
            ),
            name,
            {
                "itemId": "s1:user",
                "type": "user_message",
                "role": "user",
                "status": shown,
                **ITEM,
                "content": {"text": "Faster"},
                "createdAt": TIME,
                "updatedAt": TIME,
            },
            CONVERSATION,
        )
        for status, name, shown in (
            ("pending", "item.created", "pending"),
            ("delivered", "message.created", "completed"),
        )
    ),
    Sample(
        fact("turn.completed", **TURN),
        "run.finished",
        {"runId": "run_1", "status": "finished", "finishedAt": TIME}
        | {"projectId": "prj_1", "threadId": "thr_1"},
        RUNTIME,
    ),
    Sample(
        fact("turn.completed", **TURN),
        "run.status.changed",
        {"runId": "run_1", "from": "running", "to": "finished", "finishedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("turn.canceled", {"reason": "requested"}, **TURN),
        "run.cancelled",
        {"runId": "run_1", "status": "cancelled", "reason": "requested", "finishedAt": TIME}
        | {"projectId": "prj_1", "threadId": "thr_1"},
        RUNTIME,
    ),
    Sample(
        fact("turn.canceled", {"reason": "requested"}, **TURN),
        "run.status.changed",
        {"runId": "run_1", "to": "cancelled", "finishedAt": TIME},
        CONVERSATION,
    ),
    *(
        Sample(
            fact("turn.canceled", times, **TURN),
            "run.status.changed",
            {"runId": "run_1", "from": before, "to": "cancelled", **times, "finishedAt": TIME},
            CONVERSATION,
        )
        for before, times in (
            ("queued", {"createdAt": TIME}),
            ("running", {"createdAt": TIME, "startedAt": TIME}),
        )
    ),
    Sample(
        fact(
            "turn.failed",
            {"failureCategory": "timeout", "message": "too long", "recoveryHint": "Retry."},
            **TURN,
        ),
        "run.failed",
        {
            "runId": "run_1",
            "status": "failed",
            "error": {
                "code": "TIMEOUT",
                "message": "too long",
                "details": {"failureCategory": "timeout", "recoveryHint": "Retry."},
            },
            "projectId": "prj_1",
            "threadId": "thr_1",
            "finishedAt": TIME,
        },
        RUNTIME,
    ),
    Sample(
        fact("run.finished", **TURN, status="canceled"),
        "run.cancelled",
        {"runId": "run_1", "status": "cancelled", "finishedAt": TIME}
        | {"projectId": "prj_1", "threadId": "thr_1"},
        RUNTIME,
    ),
    # output
    Sample(
        fact(
            "process.output", {"stream": "stdout", "offset": 3, "text": "é"}, **TURN, processId="p1"
        ),
        "run.output",
        {"runId": "run_1", "stream": "stdout", "offset": 3, "text": "é", "processId": "p1"},
        RUNTIME,
    ),
    Sample(
        fact("process.output", {"stream": "stdout", "offset": 3, "text": "é\nb\n"}, **TURN),
        "run.output.batch",
        {
            "runId": "run_1",
            "stream": "stdout",
            "chunks": [{"offset": 3, "text": "é\n"}, {"offset": 6, "text": "b\n"}],
        },
        CONVERSATION,
    ),
    Sample(
        fact(
            "process.output",
            {"stream": "stdout", "offset": 9, "text": "", "truncated": True, "maxBytes": 9}
            | {"bytesWritten": 40, "outputRef": REF},
            **TURN,
        ),
        "run.output",
        {"runId": "run_1", "stream": "stdout", "offset": 9, "text": "", "truncated": True}
        | {"maxBytes": 9, "bytesWritten": 40, "ref": REF},
        RUNTIME,
    ),
    Sample(
        fact(
            "process.output",
            {
                "stream": "stderr",
                "chunks": [{"offset": 0, "text": "a"}, {"offset": 1, "text": "b"}],
            },
            **TURN,
        ),
        "run.output.batch",
        {
            "runId": "run_1",
            "stream": "stderr",
            "chunks": [{"text": "a", "offset": 0}, {"text": "b", "offset": 1}],
        },
    ),
    # approvals
    Sample(
        fact("action.required", _ASKED, **_ACTION),
        "run.agent.permission_requested",
        {
            "requestId": "act_1",
            "riskLevel": "high",
            "toolName": "run",
            "callId": "call_1",
            "input": {"command": "rm x"},
            "kind": "tool_approval",
            "summary": "Run it?",
            "argsHash": "h",
            "expiresAt": TIME,
            "requestedAt": TIME,
        },
        RUNTIME,
    ),
    Sample(
        fact("action.required", _ASKED, **_ACTION),
        "approval.requested",
        {
            "approvalId": "act_1",
            "runId": "run_1",
            "kind": "tool_approval",
            "riskLevel": "high",
            "summary": "Run it?",
            "argsHash": "h",
            "expiresAt": TIME,
            "requestedBy": "demo",
            "callId": "call_1",
            "toolName": "run",
            "requestedAt": TIME,
        },
        CONVERSATION,
    ),
    Sample(
        fact("action.resolved", {"decision": "approved", "decidedBy": "ann"}, **_ACTION),
        "run.agent.permission_decided",
        {"requestId": "act_1", "decision": "allow", "applied": False, "callId": "call_1"}
        | {"decidedBy": {"name": "ann"}, "decidedAt": TIME},
        RUNTIME,
    ),
    Sample(
        fact("action.updated", {"applied": True, "decision": "denied"}, **_ACTION),
        "approval.decided",
        {"approvalId": "act_1", "decision": "deny", "applied": True, "runId": "run_1"}
        | {"appliedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("action.expired", **_ACTION),
        "approval.decided",
        {"approvalId": "act_1", "decision": "deny", "applied": False, "runId": "run_1"}
        | {"decidedAt": TIME},
        CONVERSATION,
    ),
    # artifacts
    Sample(
        fact("artifact.created", {"kind": "doc", "contentRef": REF}, **TURN, artifactId="art_1"),
        "artifact.created",
        {"artifactId": "art_1", "status": "created", "runId": "run_1", "kind": "doc"}
        | {"contentRef": REF},
    ),
    Sample(
        fact("artifact.deleted", **TURN, artifactId="art_1"),
        "artifact.updated",
        {"artifactId": "art_1", "status": "deleted", "runId": "run_1"},
    ),
    Sample(
        fact("artifact.preview.ready", {"previewRef": REF}, **TURN, artifactId="art_1"),
        "preview.ready",
        {"previewId": "art_1", "status": "ready", "runId": "run_1", "artifactId": "art_1"}
        | {"ref": REF},
    ),
    # texts
    Sample(
        fact("model.delta", {"delta": "Hel"}, **TURN, messageId="m1"),
        "run.agent.text_delta",
        {"messageId": "m1", "content": "Hel"},
        RUNTIME,
    ),
    Sample(
        fact("model.delta", {"delta": "Hel"}, **TURN, messageId="m1", partId="p2"),
        "message.delta",
        {"itemId": "m1/p2", "delta": "Hel", "threadId": "thr_1", "runId": "run_1"},
        CONVERSATION,
    ),
    Sample(
        fact("model.completed", {"text": "Hello"}, **TURN, messageId="m1", subagentId="s1"),
        "run.agent.text_block",
        {"messageId": "m1", "content": "Hello", "subagentId": "s1"},
        RUNTIME,
    ),
    Sample(
        fact("model.completed", {"text": "Hello"}, **TURN, messageId="m1"),
        "message.created",
        {"itemId": "m1", "type": "agent_message", "role": "assistant", "status": "completed"}
        | {**ITEM, "content": {"text": "Hello"}, "createdAt": TIME, "updatedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("model.delta", {"delta": "Hel", "first": True}, **TURN, messageId="m1"),
        "item.created",
        {"itemId": "m1", "type": "agent_message", "role": "assistant", "status": "in_progress"}
        | {**ITEM, "content": {"text": "Hel"}, "createdAt": TIME, "updatedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("model.delta", {"text": "Hel"}, **TURN, messageId="m1"),
        "item.updated",
        {"itemId": "m1", "type": "agent_message", "role": "assistant", "status": "in_progress"}
        | {**ITEM, "content": {"text": "Hel"}, "updatedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("reasoning.summary", {"summary": "It thinks"}, **TURN),
        "run.agent.thinking",
        {"messageId": "trn_1:answer", "content": "It thinks", "form": "summary"},
    ),
    # tools
    Sample(
        fact("tool.started", {"toolName": "read"}, **_CALL),
        "run.agent.tool_call",
        {"callId": "call_1", "status": "pending", "toolName": "read"},
        RUNTIME,
    ),
    Sample(
        fact("tool.args", {"args": {"path": "x"}}, **_CALL),
        "run.agent.tool_call",
        {"callId": "call_1", "status": "started", "input": {"path": "x"}},
        RUNTIME,
    ),
    Sample(
        fact("tool.progress", {"progress": 1, "total": 2, "elapsed": 3.5}, **_CALL),
        "run.agent.tool_call",
        {"callId": "call_1", "status": "in_progress", "elapsed": 3.5}
        | {"progress": 1.0, "total": 2.0},
        RUNTIME,
    ),
    Sample(
        fact("tool.started", {"toolName": "read"}, **_CALL),
        "item.created",
        {"itemId": "call_1", "type": "tool", "role": "tool", "status": "pending", **ITEM}
        | {"content": {"toolName": "read"}, "createdAt": TIME, "updatedAt": TIME},
        CONVERSATION,
    ),
    Sample(
        fact("tool.result", {"output": {"n": 1}, "exitCode": 0, "outputRef": REF}, **_CALL),
        "run.agent.tool_result",
        {"callId": "call_1", "isError": False, "content": {"n": 1}, "ref": REF, "exitCode": 0},
        RUNTIME,
    ),
    Sample(
        fact("tool.failed", {"failureCategory": "denied", "message": "No."}, **_CALL),
        "item.updated",
        {"itemId": "call_1", "type": "tool", "role": "tool", "status": "failed", **ITEM}
        | {
            "content": {"output": "No.", "isError": True, "failureCategory": "denied"},
            "updatedAt": TIME,
        },
        CONVERSATION,
    ),
    Sample(
        fact("file.changed", {"path": "a.py", "change": "added", "diffRef": REF}, **_CALL),
        "run.agent.file_change",
        {"path": "a.py", "kind": "created", "diffRef": REF, "callId": "call_1"},
    ),
    # tasks
    Sample(
        fact("task.started", {"title": "Look"}, **_TASK, toolCallId="call_1"),
        "run.agent.task_started",
        {"taskId": "task_1", "callId": "call_1", "description": "Look", "parentId": "task_0"},
    ),
    Sample(
        fact(
            "subagent.spawned",
            {"name": "reader", "role": "reader", "title": "Look"},
            **_TASK,
            subagentId="sub_1",
        ),
        "run.agent.task_dispatched",
        {"agentId": "sub_1", "taskId": "task_1", "task": "Look", "role": "reader"}
        | {"parentId": "task_0"},
    ),
    Sample(
        fact(
            "task.progress",
            {"progress": {"completedSteps": 1, "totalSteps": 3}, "lastToolName": "read"}
            | {"usage": {"tokens": 5}, "message": "Going on"},
            **_TASK,
        ),
        "run.agent.task_progress",
        {"taskId": "task_1", "description": "Going on", "lastToolName": "read"}
        | {"usage": {"tokens": 5}, "completedSteps": 1, "totalSteps": 3},
    ),
    Sample(
        fact("task.failed", {"message": "No."}, **_TASK),
        "run.agent.task_notification",
        {"taskId": "task_1", "status": "failed", "summary": "No."},
    ),
    Sample(
        fact("team.changed", {"childCount": 2, "allComplete": True}, **_TASK),
        "run.agent.sub_agents_complete",
        {"parentId": "task_0", "childCount": 2, "allComplete": True},
    ),
    # the session
    Sample(
        fact(
            "session.created",
            {"model": "m", "tools": ["read", {"name": "run"}], "mcpServers": [], "cwd": "x"}
            | {"permissionMode": "plan", "version": "2"},
            sessionId="ses_1",
        ),
        "run.agent.session_init",
        {"model": "m", "tools": ["read", "run"], "mcpServers": [], "permissionMode": "plan"}
        | {"version": "2", "sessionId": "ses_1", "cwd": "x"},
    ),
    Sample(
        fact("run.status", {"status": "running"}, **TURN),
        "run.agent.session_state_changed",
        {"state": "running"},
    ),
    Sample(
        fact("run.status", {"status": "running", "message": "Reading"}, **TURN),
        "run.agent.status_change",
        {"status": "running", "message": "Reading"},
    ),
    Sample(
        fact("policy.changed", {"mode": "acceptEdits"}),
        "run.agent.status_change",
        {"permissionMode": "acceptEdits"},
    ),
    Sample(
        fact("run.status", {"attempt": 2, "maxRetries": 10, "retryDelayMs": 500, "error": "529"}),
        "run.agent.api_retry",
        {"attempt": 2, "maxRetries": 10, "retryDelayMs": 500.0, "error": "529"},
    ),
    Sample(
        fact("run.status", {"isAuthenticating": True, "output": "open the page"}),
        "run.agent.auth_status",
        {"isAuthenticating": True, "output": "open the page"},
    ),
    Sample(
        fact("run.status", {"summary": "Read two files", "toolUseIds": ["a", "b"]}),
        "run.agent.tool_use_summary",
        {"summary": "Read two files", "toolUseIds": ["a", "b"]},
    ),
    Sample(
        fact(
            "snapshot.updated",
            {"status": "completed", "durationMs": 5, "turns": 2, "usage": {"inputTokens": 1}},
            **TURN,
        ),
        "run.agent.result",
        {"success": True, "durationMs": 5.0, "turns": 2, "usage": {"inputTokens": 1}},
    ),
    Sample(
        fact(
            "routing.decided",
            {"action": "delegate", "next_worker": "w", "instructions": "Go", "context": {"a": 1}},
        ),
        "run.agent.route_decision",
        {"action": "delegate", "next_worker": "w", "instructions": "Go", "context": {"a": 1}},
    ),
    Sample(
        fact("hook.started", {"hookId": "h1", "hookName": "lint", "hookEvent": "Stop"}),
        "run.agent.hook_started",
        {"hookId": "h1", "hookName": "lint", "hookEvent": "Stop"},
    ),
    Sample(
        fact("hook.progress", {"hookId": "h1", "stdout": "ok", "stderr": "hm"}),
        "run.agent.hook_progress",
        {"hookId": "h1", "stdout": "ok", "stderr": "hm"},
    ),
    Sample(
        fact("hook.failed", {"hookId": "h1", "exitCode": 2}),
        "run.agent.hook_response",
        {"hookId": "h1", "outcome": "failed", "exitCode": 2},
    ),
    # usage
    Sample(
        fact("history.compacted", {"trigger": "auto", "tokensBefore": 9, "tokensAfter": 2}),
        "run.agent.compact_boundary",
        {"trigger": "auto", "preTokens": 9, "postTokens": 2},
    ),
    Sample(
        fact("context.compaction.started", {"tokensBefore": 9, "usagePercent": 90}),
        "run.agent.context_compaction",
        {"status": "started", "usagePercent": 90.0, "tokensUsed": 9},
    ),
    Sample(
        fact("context.resolved", {"inputTokens": 4, "usagePercent": 12.5}),
        "run.agent.context_usage",
        {"inputTokens": 4, "usagePercent": 12.5},
    ),
    Sample(
        fact("context.resolved", {"usagePercent": 91, "threshold": 90}),
        "run.agent.context_warning",
        {"usagePercent": 91.0, "threshold": 90.0},
    ),
    Sample(
        fact("quota.low", {"name": "context", "utilization": 0.5}),
        "run.agent.context_warning",
        {"usagePercent": 50.0},
    ),
    Sample(
        fact("rate_limit.hit", {"utilization": 1, "resetsAt": TIME}),
        "run.agent.rate_limit",
        {"status": "hit", "utilization": 1.0, "resetsAt": TIME},
    ),
    Sample(
        fact(
            "cost.recorded",
            {"inputTokens": 3, "outputTokens": 4, "totalCostUsd": 0.5, "model": "m"},
        ),
        "run.agent.session_metrics",
        {"of": "call", "inputTokens": 3, "outputTokens": 4, "totalCostUsd": 0.5, "model": "m"},
    ),
    # no type
    Sample(fact(None, {"a": 1}), "unknown", {"payload": {"a": 1}}),
]
"""Every type that a fact can give, at least once."""

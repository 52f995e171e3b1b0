"""The twelve acceptance scenarios of the projection contract, in its order."""

from typing import Any, Final

from .scene import absent, count, equals, keys, lacks, scenario, text
from .script import Script

CALL: Final = {"tool_call_id": "call_1"}
TASK: Final = {"task_id": "tsk_1"}
MEMBER: Final = {"subagent_id": "sub_1", **TASK}


def acceptance(number: int, title: str, name: str) -> Any:
    source = f"seed 002, acceptance scenarios, {number}"
    return scenario(title, source, f"projection.scenario.{name}")


@acceptance(
    1, "Runtime status before the first text is outside the conversation.", "status-before-text"
)
def status_before_text(script: Script) -> Any:
    script.turn_id = "trn_1"
    script.tell("turn.submitted", "Asked", {"prompt": "Why is it slow?"}, message_id="ask_1")
    script.tell("turn.started", "Turn started")
    status = {"status": "routing", "message": "Choosing a model"}
    script.tell("run.status", "Choosing a model", status, run_id="run_1")
    script.tell("model.requested", "Model asked", {"model": "large-2"})
    script.say("The cache ", "is cold.")
    return [
        count("/messages", 1, after=4),
        equals("/messages/0/role", "user", after=4),
        equals("/runtime/status", "running", after=4),
        equals("/runtime/runtimeStatus", "routing", after=4),
        equals("/runtime/message", "Choosing a model", after=4),
        equals("/runtime/activeRunId", "run_1", after=4),
        equals("/runtime/model", "large-2", after=4),
        count("/messages", 2),
        text(1, 0, "The cache is cold."),
        lacks("/messages", "Choosing a model"),
    ]


@acceptance(
    2, "A tool fact with an artifact id makes a card that is tied to the call.", "tool-artifact"
)
def tool_artifact(script: Script) -> Any:
    script.begin("Write the report.")
    script.tell("tool.started", "Write", {"toolName": "write"}, **CALL)
    script.tell("tool.result", "Write", {"summary": "written"}, artifact_id="art_1", **CALL)
    return [
        count("/messages/1/parts", 2),
        equals("/messages/1/parts/0/type", "tool-preview"),
        equals("/messages/1/parts/0/status", "output-available"),
        equals("/messages/1/parts/1/type", "artifact-card"),
        equals("/messages/1/parts/1/artifactId", "art_1"),
        equals("/artifacts/art_1/toolCallId", "call_1"),
        equals("/tools/call_1/artifactIds", ["art_1"]),
        equals("/graph/nodes/tool:call_1/parentId", "turn:trn_1"),
        keys("/artifacts", "art_1"),
    ]


@acceptance(3, "A final fact settles streamed text without doubling it.", "final-reconciles")
def final_reconciles(script: Script) -> Any:
    script.begin("Greet me.")
    script.stream("msg_1", "Hel", "lo")
    script.tell("model.completed", "Answer", {"text": "Hello!"}, message_id="msg_1")
    script.end()
    return [
        text(1, 0, "Hel", after=5),
        text(1, 0, "Hello", after=6),
        equals("/messages/1/parts/0/state", "streaming", after=6),
        count("/messages/1/parts", 1),
        text(1, 0, "Hello!"),
        equals("/messages/1/parts/0/state", "final"),
        equals("/messages/1/status", "final"),
        count("/messages", 2),
        equals("/runtime/status", "completed"),
    ]


@acceptance(4, "A request with a severity is with its task and among approvals.", "action-severity")
def action_severity(script: Script) -> Any:
    script.begin("Clean up.")
    script.tell("task.started", "Clean-up", {"title": "Clean-up"}, **TASK)
    request = {"actionType": "tool_approval", "severity": "critical", "prompt": "Drop the table?"}
    script.tell("action.required", "Approval required", request, action_id="act_1", **TASK)
    return [
        equals("/actions/act_1/status", "pending"),
        equals("/actions/act_1/severity", "critical"),
        equals("/actions/act_1/prompt", "Drop the table?"),
        equals("/actions/act_1/taskId", "tsk_1"),
        equals("/graph/nodes/action:act_1/parentId", "task:tsk_1"),
        equals("/runtime/status", "waiting"),
        lacks("/messages", "Drop the table?"),
    ]


@acceptance(5, "Missing facts of an artifact read unknown; prose is no source.", "unknown-artifact")
def unknown_artifact(script: Script) -> Any:
    script.begin("Make the budget.")
    script.say("I made a spreadsheet called budget.xlsx.")
    script.tell("artifact.changed", "Something was made", artifact_id="art_1")
    return [
        equals("/artifacts/art_1/kind", "unknown"),
        absent("/artifacts/art_1/title"),
        absent("/artifacts/art_1/path"),
        absent("/artifacts/art_1/mediaType"),
        absent("/artifacts/art_1/contentRef"),
        count("/artifacts/art_1/versions", 0),
        lacks("/artifacts", "budget"),
        lacks("/artifacts", "spreadsheet"),
    ]


@acceptance(6, "An export changes the export's state and copies no content.", "export")
def export_without_content(script: Script) -> Any:
    script.begin("Export it.")
    made = {"artifact_id": "art_1"}
    script.tell("artifact.created", "Report", {"kind": "document"}, **made)
    script.tell("artifact.export.started", "Export", **made)
    content = {
        "exportRef": "artifact:report-pdf",
        "content": "BINARY-BYTES",
        "data": "BINARY-BYTES",
    }
    script.tell("artifact.export.completed", "Exported", content, **made)
    return [
        absent("/artifacts/art_1/exportStatus", after=5),
        equals("/artifacts/art_1/exportStatus", "running", after=6),
        equals("/artifacts/art_1/exportStatus", "completed"),
        equals("/artifacts/art_1/exportRef", "artifact:report-pdf"),
        equals("/artifacts/art_1/status", "created"),
        lacks("", "BINARY-BYTES"),
        count("/messages/1/parts", 1),
    ]


@acceptance(7, "A queued turn is shown as waiting and makes no prose.", "queued-turn")
def queued_turn(script: Script) -> Any:
    script.begin("Explain the parser.")
    waits = {"prompt": "And the printer?", "reason": "turn_active"}
    script.tell("queue.changed", "Queued", waits, queued_turn_id="trn_2")
    script.say("It reads.")
    script.end()
    script.begin("And the printer?", "trn_2")
    return [
        count("/messages", 1, after=5),
        lacks("/messages", "And the printer?", after=5),
        count("/queue/turns", 1, after=5),
        equals("/queue/turns/0/queuedTurnId", "trn_2", after=5),
        equals("/queue/turns/0/prompt", "And the printer?", after=5),
        equals("/runtime/queuedTurnCount", 1, after=5),
        equals("/runtime/queueReason", "turn_active", after=5),
        equals("/runtime/activeTurnId", "trn_1", after=5),
        count("/queue/turns", 0),
        equals("/runtime/queuedTurnCount", 0),
        equals("/messages/2/role", "user"),
        text(2, 0, "And the printer?"),
    ]


@acceptance(8, "A subagent changes task, agent and team, and not the answer.", "subagent")
def subagent_apart(script: Script) -> Any:
    script.begin("Look into it.")
    script.stream("msg_1", "I am on it.")
    script.tell("tool.started", "Delegate", {"toolName": "delegate"}, **CALL)
    script.tell("subagent.spawned", "Scout", {"name": "scout"}, **MEMBER, **CALL)
    script.tell("subagent.started", "Scout at work", **MEMBER)
    script.tell("model.completed", "Scout", {"text": "Found it."}, message_id="msg_scout", **MEMBER)
    script.tell("subagent.completed", "Scout is done", {"summary": "Found it."}, **MEMBER)
    script.tell("tool.result", "Delegate", {"summary": "done"}, **CALL)
    script.tell("model.completed", "Answer", {"text": "I am on it."}, message_id="msg_1")
    return [
        equals("/subagents/activeThreadIds", ["sub_1"], after=8),
        equals("/subagents/activeThreadIds", []),
        equals("/subagents/threads/sub_1/status", "completed"),
        equals("/subagents/threads/sub_1/taskId", "tsk_1"),
        equals("/subagents/threads/sub_1/lineage", "known"),
        equals("/subagents/delegationCalls/call_1/subagentId", "sub_1"),
        equals("/tasks/tsk_1/subagentIds", ["sub_1"]),
        equals("/teamWorkbench/rosterNodes/sub_1/status", "completed"),
        equals("/graph/nodes/subagent:sub_1/parentId", "task:tsk_1"),
        equals("/messages/1/messageId", "msg_1"),
        absent("/messages/1/subagentId"),
        text(1, 0, "I am on it."),
        lacks("/messages/1", "Found it."),
        equals("/messages/2/subagentId", "sub_1"),
    ]


@acceptance(
    9, "A worker's notification is no message of the user's, and links to results.", "notification"
)
def notification_apart(script: Script) -> Any:
    script.begin("Go on.")
    report = {
        "role": "user",
        "message": "All tests pass.",
        "resultRef": "output:tests",
        "transcriptRef": "trace:worker",
    }
    script.tell("worker.notification", "Worker reports", report, worker_id="wrk_1", **TASK)
    return [
        count("/messages", 1),
        text(0, 0, "Go on."),
        lacks("/messages", "All tests pass."),
        count("/teamWorkbench/notifications", 1),
        equals("/teamWorkbench/notifications/0/workerId", "wrk_1"),
        equals("/teamWorkbench/notifications/0/taskId", "tsk_1"),
        equals("/teamWorkbench/notifications/0/message", "All tests pass."),
        equals("/teamWorkbench/notifications/0/resultRef", "output:tests"),
        equals("/teamWorkbench/notifications/0/transcriptRef", "trace:worker"),
        equals("/teamWorkbench/laneEvents/0/lane", "notification"),
    ]


@acceptance(10, "A delegated approval names the teammate that asks.", "delegated-approval")
def delegated_approval(script: Script) -> Any:
    script.begin("Let somebody do it.")
    script.tell("subagent.started", "Scout at work", {"name": "scout"}, **MEMBER)
    request = {"actionType": "delegated_permission", "prompt": "May I read the logs?"}
    script.tell("action.required", "Permission needed", request, action_id="act_1", **MEMBER)
    return [
        equals("/actions/act_1/status", "pending"),
        equals("/actions/act_1/actionType", "delegated_permission"),
        equals("/actions/act_1/requestedBy", "sub_1"),
        equals("/actions/act_1/subagentId", "sub_1"),
        equals("/actions/act_1/taskId", "tsk_1"),
        equals("/graph/nodes/action:act_1/parentId", "subagent:sub_1"),
        equals("/teamWorkbench/rosterNodes/sub_1/name", "scout"),
        equals("/runtime/status", "waiting"),
    ]


@acceptance(
    11, "A compaction is a boundary with a summary and repeats no old reasoning.", "compaction"
)
def compaction_boundary(script: Script) -> Any:
    script.begin("Go on.")
    script.tell("reasoning.delta", "Thinking", {"delta": "OLD-THOUGHT"})
    script.tell("context.compaction.started", "Compacting", {"trigger": "usage"})
    folded = {"summary": "We agreed on a plan.", "text": "OLD-THOUGHT", "tokensAfter": 900}
    script.tell("context.compaction.completed", "Compacted", folded)
    script.say("Next step.")
    return [
        count("/context/compactions", 1),
        equals("/context/compactions/0/status", "running", after=6),
        equals("/context/compactions/0/status", "completed"),
        equals("/context/compactions/0/summary", "We agreed on a plan."),
        equals("/context/tokens", 900),
        lacks("", "OLD-THOUGHT"),
        lacks("/messages", "We agreed on a plan."),
        equals("/messages/1/parts/0/type", "reasoning"),
        equals("/messages/1/parts/1/type", "text"),
        text(1, 1, "Next step."),
    ]


@acceptance(12, "Diagnostics stay inspectable outside the conversation.", "diagnostics")
def diagnostics_apart(script: Script) -> Any:
    script.begin("How is it?")
    script.say("Fine.")
    diagnostic = {"code": "slow_provider", "message": "It took 40 seconds.", "rawRef": "raw:reply"}
    warned = script.tell("runtime.warning", "Slow", diagnostic)
    place = f"/diagnostics/items/{warned.id}"
    return [
        equals(f"{place}/code", "slow_provider"),
        equals(f"{place}/message", "It took 40 seconds."),
        equals(f"{place}/severity", "warning"),
        equals(f"{place}/rawRef", "raw:reply"),
        equals("/diagnostics/warnings", 1),
        text(1, 0, "Fine."),
        lacks("/messages", "It took 40 seconds."),
        equals("/messages/1/parts/1/type", "diagnostic-ref"),
        equals("/messages/1/parts/1/diagnosticId", warned.id),
    ]


SCENARIOS: Final = (
    status_before_text,
    tool_artifact,
    final_reconciles,
    action_severity,
    unknown_artifact,
    export_without_content,
    queued_turn,
    subagent_apart,
    notification_apart,
    delegated_approval,
    compaction_boundary,
    diagnostics_apart,
)

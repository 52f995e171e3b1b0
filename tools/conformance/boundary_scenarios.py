"""What is missing, unknown, hidden or provisional: where a projection would have to guess."""

from typing import Any, Final

from .scene import absent, count, equals, keys, lacks, scenario, text
from .script import Script, call

CALL: Final = {"tool_call_id": "call_1"}
LOG: Final = "output:sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@scenario(
    "A fact without the id that it needs is shown as degraded, and never as done.",
    "seed 002, unknown and missing facts; facts.md §4, rule 7",
    "projection.needs.degraded",
    ("missing_scope_id",),
)
def ids_missing(script: Script) -> Any:
    script.begin("Go on.")
    result = script.tell("tool.result", "Done, I think", {"summary": "It worked."})
    closed = script.tell("action.resolved", "Approved", {"decision": "approved"})
    return [
        keys("/tools"),
        keys("/actions"),
        equals("/timeline/3/degraded", value=True),
        equals("/timeline/3/status", "unknown"),
        equals("/timeline/3/sourceEventIds", [result.id]),
        equals("/timeline/4/degraded", value=True),
        equals("/timeline/4/status", "unknown"),
        keys(
            "/diagnostics/items", f"missing_scope_id:{result.id}", f"missing_scope_id:{closed.id}"
        ),
        equals("/runtime/status", "running"),
        lacks("/messages", "It worked."),
    ]


@scenario(
    "A class that nobody knows is kept, remarked on, and promoted to nothing.",
    "seed 002, unknown and missing facts; facts.md §4, rule 12",
    "projection.unknown-class",
    ("unknown_event_type",),
)
def class_unknown(script: Script) -> Any:
    script.begin("Go on.")
    odd = script.tell("oven.heated", "All done", {"status": "completed", "text": "Turn completed."})
    return [
        equals("/timeline/3/eventClass", "oven.heated"),
        equals("/timeline/3/entryId", f"fact:{odd.id}"),
        keys("/diagnostics/items", f"unknown_event_type:{odd.id}"),
        equals("/diagnostics/errors", 0),
        equals("/runtime/status", "running"),
        count("/messages", 1),
        lacks("/messages", "Turn completed."),
    ]


@scenario(
    "A client's own id for a message is replaced by the runtime's, without a second message.",
    "seed 002, identity requirements",
    "projection.message.optimistic",
)
def optimistic_id(script: Script) -> Any:
    script.turn_id = "trn_1"
    script.tell("turn.submitted", "Asked", {"prompt": "Is it Friday?"}, message_id="local-1")
    known = {"optimisticId": "local-1", "messageId": "ask_1"}
    script.tell("turn.started", "Turn started", known)
    script.say("No.")
    return [
        equals("/messages/0/messageId", "local-1", after=1),
        equals("/messages/0/messageId", "ask_1"),
        equals("/messages/0/optimisticId", "local-1"),
        text(0, 0, "Is it Friday?"),
        count("/messages", 2),
    ]


@scenario(
    "Reasoning is shown by its summary; its raw words are nowhere, and never the answer.",
    "seed 003, part types and prohibitions",
    "projection.surface.reasoning",
)
def reasoning_hidden(script: Script) -> Any:
    script.begin("Is it safe?")
    script.tell("reasoning.delta", "Thinking", {"delta": "RAW-CHAIN"})
    script.tell("reasoning.summary", "Thought", {"summary": "Compared both paths."})
    script.tell("reasoning.completed", "Thought")
    script.say("No.")
    return [
        lacks("", "RAW-CHAIN"),
        equals("/messages/1/parts/0/type", "reasoning"),
        equals("/messages/1/parts/0/summary", "Compared both paths."),
        equals("/messages/1/parts/0/characters", 9),
        equals("/messages/1/parts/1/type", "text"),
        text(1, 1, "No."),
        count("/messages/1/parts", 2),
    ]


@scenario(
    "What a user attaches is refs beside their text, never bytes.",
    "seed 003, multimodal input",
    "projection.message.user",
)
def input_attached(script: Script) -> Any:
    script.turn_id = "trn_1"
    content = [
        {"type": "text", "text": "What is on it?"},
        {"type": "asset", "ref": "asset:photo-1", "mediaType": "image/png"},
        {"type": "workspace", "ref": "workspace:campaign-7"},
    ]
    script.tell("turn.submitted", "Asked", {"input": content}, message_id="ask_1")
    script.tell("turn.started", "Turn started")
    return [
        count("/messages", 1),
        equals("/messages/0/role", "user"),
        count("/messages/0/parts", 1),
        text(0, 0, "What is on it?"),
        equals("/messages/0/inputRefs", ["asset:photo-1", "workspace:campaign-7"]),
    ]


@scenario(
    "A worker whose task no fact names is shown without one; no parent is made up.",
    "seed 000, team workbench events",
    "projection.subagent.lineage",
)
def lineage_missing(script: Script) -> Any:
    script.begin("Go on.")
    started = script.tell("worker.started", "Worker of the tester", turn_id=None, worker_id="wrk_1")
    return [
        equals("/subagents/threads/wrk_1/status", "running"),
        equals("/subagents/threads/wrk_1/lineage", "unavailable"),
        absent("/subagents/threads/wrk_1/taskId"),
        absent("/subagents/threads/wrk_1/parentSubagentId"),
        absent("/graph/nodes/subagent:wrk_1/parentId"),
        keys("/diagnostics/items", f"lineage_missing:{started.id}:wrk_1"),
        keys("/tasks"),
    ]


@scenario(
    "A snapshot completes no tool and answers no request.",
    "seed 000, snapshot and repair events; facts.md §4, rule 5",
    "projection.snapshot.keeps",
)
def snapshot_completes_nothing(script: Script) -> Any:
    script.begin("Publish it.")
    script.tell("tool.started", "Publish", {"toolName": "publish"}, **CALL)
    script.tell("action.required", "Approval required", {"prompt": "Publish?"}, action_id="act_1")
    rows = [{"messageId": "msg_1", "role": "assistant", "turnId": "trn_1", "text": "Published!"}]
    script.tell("snapshot.updated", "Snapshot", {"messages": rows, "status": "completed"})
    return [
        equals("/tools/call_1/state", "running"),
        absent("/tools/call_1/completedAt"),
        equals("/actions/act_1/status", "pending"),
        equals("/runtime/status", "waiting"),
        equals("/graph/nodes/tool:call_1/status", "running"),
    ]


@scenario(
    "A cut in the middle of everything: what the read model states is taken, the rest is stale.",
    "seed 001, minimal acceptance; facts.md §4, rules 5, 6 and 13",
    "projection.repair.read-model",
)
def cut_repaired(script: Script) -> Any:
    script.begin("Deploy it.")
    script.stream("msg_1", "I am about ")
    known = script.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    script.tell("tool.started", "Watch", {"toolName": "watch"}, tool_call_id="call_2")
    script.tell("task.started", "Deployment", {"title": "Deployment"}, task_id="tsk_1")
    script.tell("action.required", "Approval required", {"prompt": "Deploy?"}, action_id="act_1")
    script.lose(8)
    script.repair = script.model(
        "completed",
        lastOutcome={"status": "completed", "turnId": "trn_1"},
        toolCalls=[call(known, "output-available", completedAt=known.created_at, outputRef=LOG)],
    )
    return [
        equals("/runtime/status", "completed"),
        equals("/runtime/phase", "completed"),
        absent("/runtime/activeTurnId"),
        equals("/hydration/status", "stale"),
        equals("/hydration/reasons", ["messages_missing"]),
        equals("/hydration/gaps", []),
        equals("/messages/1/status", "stale"),
        equals("/messages/1/parts/0/state", "stale"),
        text(1, 0, "I am about "),
        equals("/tools/call_1/state", "output-available"),
        equals("/tools/call_1/outputRef", LOG),
        equals("/messages/1/parts/1/status", "output-available"),
        equals("/graph/nodes/tool:call_1/status", "output-available"),
        equals("/tools/call_2/state", "stale"),
        equals("/messages/1/parts/2/status", "stale"),
        equals("/graph/nodes/tool:call_2/status", "stale"),
        equals("/actions/act_1/status", "closed"),
        equals("/actions/act_1/decision", "unknown"),
        equals("/graph/nodes/action:act_1/status", "closed"),
        equals("/tasks/tsk_1/status", "stale"),
        equals("/graph/nodes/task:tsk_1/status", "stale"),
        equals("/graph/nodes/turn:trn_1/status", "completed"),
        equals("/graph/nodes/run:run_1/status", "completed"),
        *(equals(f"/timeline/{place}/status", "completed") for place in (0, 1, 4)),
        *(equals(f"/timeline/{place}/status", "stale") for place in (3, 5, 6)),
        equals("/timeline/7/status", "closed"),
    ]


SCENARIOS: Final = (
    ids_missing,
    class_unknown,
    optimistic_id,
    reasoning_hidden,
    input_attached,
    lineage_missing,
    snapshot_completes_nothing,
    cut_repaired,
)

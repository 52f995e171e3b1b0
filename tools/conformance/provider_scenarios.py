"""The six minimums of every provider, as streams that were recorded of one that meets them."""

from typing import Any, Final

from .scene import absent, count, equals, keys, lacks, scenario, text
from .script import Script, call, request

CALL: Final = {"tool_call_id": "call_1"}
LOG: Final = "output:sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def minimum(number: int, title: str, name: str, *issues: str) -> Any:
    source = f"facts.md §5, provider minimums, {number}; seed 001, minimal acceptance"
    return scenario(title, source, f"seed.provider.{name}", issues)


@minimum(1, "A text turn has a life cycle, a message and a snapshot.", "text")
def provider_text(script: Script) -> Any:
    script.begin("Which versions?")
    script.say("3.11 ", "and later.")
    script.end()
    return [
        equals("/runtime/status", "running", after=2),
        equals("/runtime/activeTurnId", "trn_1", after=6),
        equals("/runtime/status", "completed"),
        equals("/runtime/latestTurnStatus", "completed"),
        absent("/runtime/activeTurnId"),
        count("/messages", 2),
        equals("/messages/1/status", "final"),
        text(1, 0, "3.11 and later."),
        equals("/timeline/4/eventClass", "snapshot.updated"),
        count("/timeline", 5),
        keys("/graph/nodes", "turn:trn_1", "run:run_1"),
        equals("/hydration/status", "live"),
        equals("/hydration/cursor", 9),
    ]


@minimum(2, "A tool turn has the call's life cycle, and its big output is behind a ref.", "tool")
def provider_tool(script: Script) -> Any:
    script.begin("Search.")
    script.tell("tool.started", "Search", {"toolName": "search"}, **CALL)
    script.tell("tool.progress", "Search", {"progress": 0.5}, **CALL)
    script.tell(
        "tool.result", "Search", {"summary": "42", "outputRef": LOG}, ref_ids=(LOG,), **CALL
    )
    script.tell("output.spilled", "Spilled", {"bytes": 5_000_000}, ref_ids=(LOG,))
    script.say("42.")
    script.end()
    return [
        equals("/tools/call_1/state", "running", after=5),
        equals("/tools/call_1/state", "progress", after=6),
        equals("/tools/call_1/state", "output-available", after=7),
        equals("/tools/call_1/toolName", "search"),
        equals("/tools/call_1/outputRef", LOG),
        equals("/tools/call_1/refIds", [LOG]),
        equals("/tools/call_1/outputText", ""),
        equals("/messages/1/parts/0/type", "tool-preview"),
        equals("/messages/1/parts/0/outputRef", LOG),
        text(1, 1, "42."),
        equals("/runtime/status", "completed"),
    ]


@minimum(3, "An approval turn suspends and goes on once it is answered.", "approval")
def provider_approval(script: Script) -> Any:
    script.begin("Deploy it.")
    script.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    request = {"actionType": "tool_approval", "severity": "high", "prompt": "Deploy?"}
    script.tell("action.required", "Approval required", request, action_id="act_1", **CALL)
    script.wait(60)
    decision = {"decision": "approved", "decidedBy": "user"}
    script.tell("action.resolved", "Approved", decision, action_id="act_1")
    script.tell("action.updated", "Applied", {"applied": True}, action_id="act_1")
    script.tell("tool.result", "Deploy", {"summary": "live"}, **CALL)
    script.say("It is live.")
    script.end()
    return [
        equals("/runtime/status", "waiting", after=6),
        equals("/actions/act_1/status", "pending", after=6),
        equals("/tools/call_1/state", "running", after=6),
        equals("/tools/call_1/actionId", "act_1", after=6),
        equals("/runtime/status", "running", after=7),
        equals("/actions/act_1/status", "resolved", after=7),
        equals("/actions/act_1/decision", "approved", after=7),
        equals("/actions/act_1/decidedBy", "user", after=7),
        absent("/actions/act_1/applied", after=7),
        equals("/actions/act_1/applied", value=True),
        equals("/tools/call_1/state", "output-available"),
        equals("/runtime/status", "completed"),
    ]


@minimum(4, "A failed turn has a stable category and a hint what to do.", "failure")
def provider_failure(script: Script) -> Any:
    script.begin("Summarise it.")
    script.stream("msg_1", "The meeting ")
    why = {"failureCategory": "provider_unavailable", "recoveryHint": "Try again in a minute."}
    script.end("failed", why)
    return [
        equals("/runtime/status", "failed"),
        equals("/runtime/latestTurnStatus", "failed"),
        equals("/runtime/failureCategory", "provider_unavailable"),
        equals("/runtime/recoveryHint", "Try again in a minute."),
        absent("/runtime/activeTurnId"),
        text(1, 0, "The meeting "),
        equals("/messages/1/status", "interrupted"),
        equals("/graph/nodes/turn:trn_1/status", "failed"),
    ]


@minimum(
    5,
    "A cut stream is repaired from the read model, and what is sent again is not repeated.",
    "repair",
)
def provider_repair(script: Script) -> Any:
    script.begin("Deploy it.")
    started = script.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    what = {"actionType": "tool_approval", "prompt": "Deploy?"}
    action = script.tell("action.required", "Approval required", what, action_id="act_1", **CALL)
    script.initial = script.model(
        "waiting",
        activeTurnId="trn_1",
        toolCalls=[call(started, "running")],
        pendingActions=[request(action)],
    )
    script.facts[:] = [action]
    script.tell("action.resolved", "Approved", {"decision": "approved"}, action_id="act_1", **CALL)
    script.tell("tool.result", "Deploy", {"summary": "live"}, **CALL)
    script.say("It is live.")
    script.end()
    return [
        equals("/hydration/status", "hydrating", after=0),
        equals("/hydration/cursor", 6, after=0),
        equals("/runtime/status", "waiting", after=0),
        equals("/runtime/activeTurnId", "trn_1", after=0),
        equals("/actions/act_1/status", "pending", after=0),
        equals("/tools/call_1/state", "running", after=0),
        equals("/hydration/cursor", 6, after=1),
        count("/timeline", 0, after=1),
        keys("/actions", "act_1"),
        equals("/actions/act_1/status", "resolved"),
        equals("/tools/call_1/state", "output-available"),
        equals("/runtime/status", "completed"),
        equals("/hydration/status", "live"),
        equals("/hydration/gaps", []),
        equals("/hydration/cursor", 12),
        lacks("/diagnostics/items", "conflict"),
    ]


@minimum(6, "A retry starts no second turn.", "retry", "sequence_gap", "sequence_violation")
def provider_retry(script: Script) -> Any:
    script.begin("Explain it.")
    script.stream("msg_1", "It reads ")
    script.facts += script.facts[:2]  # the client asks again, and is told of the same turn
    script.tell("model.completed", "Answer", {"text": "It reads lines."})
    script.end()
    return [
        count("/messages", 2, after=7),
        equals("/runtime/activeTurnId", "trn_1", after=7),
        text(1, 0, "It reads ", after=7),
        keys("/graph/nodes", "turn:trn_1", "run:run_1"),
        count("/messages", 2),
        count("/messages/0/parts", 1),
        text(1, 0, "It reads lines."),
        count("/timeline", 5),
        equals("/queue/turns", []),
        equals("/hydration/eventCount", 8),
        equals("/runtime/status", "completed"),
        equals("/diagnostics/total", 0),
    ]


SCENARIOS: Final = (
    provider_text,
    provider_tool,
    provider_approval,
    provider_failure,
    provider_repair,
    provider_retry,
)

"""The rules of projection, one scene each: order, repeats, exact text, closers, patches, status."""

from typing import Any, Final

import msgspec

from .scene import SceneScript, absent, count, equals, keys, lacks, scenario, text
from .script import Script

CALL: Final = {"tool_call_id": "call_1"}
ACT: Final = {"action_id": "act_1"}


def rule(number: int, title: str, requirement: str, *issues: str) -> Any:
    return scenario(title, f"facts.md §4, rule {number}", requirement, issues)


@rule(
    1,
    "One id with two bodies: the first one counts, and a remark says so.",
    "projection.conflict",
    "sequence_gap",
    "sequence_violation",
)
def id_twice(script: Script) -> Any:
    script.begin("Name the port.")
    first = script.tell("model.delta", "Answer", {"delta": "8080"})
    script.facts += [first, msgspec.structs.replace(first, payload={"delta": "9090"})]
    return [
        equals("/hydration/eventCount", 5, after=5),
        equals("/hydration/eventCount", 5, after=6),
        keys("/diagnostics/items", after=6),
        text(1, 0, "8080", after=6),
        text(1, 0, "8080"),
        lacks("/messages", "9090"),
        keys("/diagnostics/items", f"conflicting_fact:{first.id}"),
        equals("/hydration/eventCount", 5),
    ]


@rule(
    2,
    "What comes after a hole waits; once it is filled the state is that of the right order.",
    "projection.order.hole",
    "sequence_gap",
)
def hole_filled(script: Script) -> Any:
    script.begin("Count.")
    pieces = ("one ", "two ", "three ")
    one, two, three = (script.draft("model.delta", "Answer", {"delta": piece}) for piece in pieces)
    end = script.draft("model.completed", "Answer", {"text": "one two three"})
    script.facts += [one, three, end, two]
    return [
        equals("/hydration/status", "live", after=5),
        equals("/hydration/status", "stale", after=6),
        equals("/hydration/gaps", [{"fromSequence": 6, "toSequence": 6}], after=6),
        equals("/hydration/cursor", 5, after=7),
        equals("/hydration/held", 2, after=7),
        text(1, 0, "one ", after=7),
        equals("/messages/1/status", "streaming", after=7),
        equals("/hydration/status", "live"),
        equals("/hydration/gaps", []),
        equals("/hydration/held", 0),
        equals("/hydration/cursor", 8),
        text(1, 0, "one two three"),
        equals("/messages/1/status", "final"),
    ]


@rule(3, "Increments are joined exactly as they are.", "projection.text.exact")
def text_exact(script: Script) -> Any:
    script.begin("Write code.")
    pieces = ("no ", "no ", " ", "", "\n\n", "\tif x:", "é", "e\u0301", "🙂", "no ")
    script.stream("msg_1", *pieces)
    return [
        text(1, 0, "no no ", after=6),
        text(1, 0, "no no  \n\n\tif x:ée\u0301🙂no "),
        count("/messages/1/parts", 1),
        count("/timeline", 4),
    ]


@rule(
    3,
    "Parts are known by turn, message and part; pieces that arrive in turns stay apart.",
    "projection.message.key",
)
def parts_apart(script: Script) -> Any:
    script.begin("Compare.")
    first, second = ({"message_id": "msg_1", "part_id": f"part_{name}"} for name in "ab")
    script.tell("model.delta", "A", {"delta": "A1 "}, **first)
    script.tell("model.delta", "B", {"delta": "B1 "}, **second)
    script.tell("model.delta", "A", {"delta": "A2"}, **first)
    script.tell("model.completed", "B", {"text": "B1 B2"}, **second)
    script.tell("model.completed", "A", {"text": "A1 A2"}, **first)
    script.end()
    script.begin("Again.", "trn_2")
    script.tell("model.delta", "Other", {"delta": "Another turn"}, message_id="msg_1")
    return [
        text(1, 0, "A1 A2", after=7),
        text(1, 1, "B1 ", after=7),
        equals("/messages/1/parts/1/state", "final", after=8),
        equals("/messages/1/parts/0/state", "streaming", after=8),
        count("/messages/1/parts", 2),
        text(1, 0, "A1 A2"),
        text(1, 1, "B1 B2"),
        equals("/messages/3/turnId", "trn_2"),
        text(3, 0, "Another turn"),
        count("/messages", 4),
    ]


@rule(6, "A request is closed by its own closing fact alone.", "projection.action.closers")
def action_closers(script: Script) -> Any:
    script.begin("Deploy it.")
    script.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    script.tell("action.required", "Approval required", {"prompt": "Deploy?"}, **ACT)
    script.tell("action.updated", "Looked at", {"decision": "approved"}, **ACT)
    script.tell("tool.result", "Deploy", {"summary": "approved and deployed"}, **CALL)
    script.say("You approved, thank you.")
    script.tell("permission.resolved", "Allowed", {"decision": "allow"}, **ACT)
    script.tell("action.expired", "Nobody answered", **ACT)
    return [
        equals("/actions/act_1/status", "pending", after=6),
        equals("/actions/act_1/status", "pending", after=7),
        equals("/runtime/status", "waiting", after=8),
        equals("/actions/act_1/status", "pending", after=11),
        absent("/actions/act_1/decision", after=11),
        equals("/actions/act_1/status", "expired"),
        absent("/actions/act_1/decision"),
        equals("/runtime/status", "running"),
    ]


@rule(
    10,
    "A handoff changes the owner once it is taken, and never the assistant.",
    "projection.team.handoff",
)
def handoff_taken(script: Script) -> Any:
    script.begin("Let the writer do it.")
    task = {"task_id": "tsk_1"}
    ends = {"fromAgent": "sub_a", "toAgent": "sub_b"}
    for name in "ab":
        script.tell("subagent.started", f"{name} at work", subagent_id=f"sub_{name}", **task)
    script.tell("handoff.requested", "To b", ends, handoff_id="hnd_1", **task)
    script.tell("handoff.rejected", "To b", {**ends, "reason": "busy"}, handoff_id="hnd_1", **task)
    script.tell("handoff.requested", "To b", ends, handoff_id="hnd_2", **task)
    script.tell("handoff.accepted", "To b", ends, handoff_id="hnd_2", **task)
    edge = "/graph/edges/subagent:sub_a>subagent:sub_b:handed_off"
    return [
        absent("/teamWorkbench/activeAgent", after=8),
        absent(edge, after=9),
        equals("/teamWorkbench/handoffEvents/hnd_1/status", "rejected"),
        equals("/teamWorkbench/handoffEvents/hnd_2/status", "accepted"),
        equals("/teamWorkbench/activeAgent", "sub_b"),
        equals(f"{edge}/kind", "handed_off"),
        count("/teamWorkbench/laneEvents", 4),
        count("/messages", 1),
    ]


@rule(
    11, "Patches of the shared state are carried out whole or not at all.", "projection.state-delta"
)
def state_patched(script: Script) -> Any:
    def patch(*operations: dict[str, Any]) -> None:
        script.tell("state.delta", "Patch", {"patch": list(operations)})

    patch({"op": "add", "path": "/shared/list", "value": [1, 2]})
    patch(
        {"op": "test", "path": "/shared/list/0", "value": 1},
        {"op": "add", "path": "/shared/list/-", "value": 3},
        {"op": "copy", "from": "/shared/list/0", "path": "/shared/first"},
        {"op": "move", "from": "/shared/list/1", "path": "/shared/second"},
        {"op": "replace", "path": "/shared/list/0", "value": {"a/b": None}},
    )
    patch(
        {"op": "remove", "path": "/shared/first"}, {"op": "test", "path": "/shared/x", "value": 1}
    )
    patch({"op": "replace", "path": "/runtime/status", "value": "completed"})
    script.tell("state.snapshot", "State", {"shared": {"list": []}, "toSequence": script.sequence})
    whole = {"list": [{"a/b": None}, 3], "first": 1, "second": 2}
    return [
        equals("/shared", {"list": [1, 2]}, after=1),
        equals("/shared", whole, after=2),
        equals("/hydration/status", "live", after=2),
        equals("/shared", whole, after=3),
        equals("/hydration/status", "stale", after=3),
        equals("/diagnostics/total", 1, after=3),
        equals("/shared", whole, after=4),
        equals("/runtime/status", "idle", after=4),
        equals("/diagnostics/total", 2, after=4),
        equals("/shared", {"list": []}),
        equals("/hydration/status", "live"),
    ]


@rule(13, "What no fact says reads unknown.", "projection.missing")
def unsaid_unknown(script: Script) -> Any:
    script.begin("Go on.")
    script.tell("subagent.started", "Scout", subagent_id="sub_1", task_id="tsk_1")
    script.tell("evidence.changed", "Evidence", evidence_id="evd_1")
    script.tell("turn.failed", "Turn failed")
    return [
        equals("/tasks/tsk_1/status", "unknown"),
        absent("/tasks/tsk_1/title"),
        equals("/evidence/items/evd_1/kind", "unknown"),
        absent("/evidence/items/evd_1/verdict"),
        equals("/runtime/failureCategory", "unknown"),
        absent("/runtime/recoveryHint"),
        equals("/context/status", "unknown"),
        equals("/permissions/sandbox/status", "unknown"),
    ]


@scenario(
    "Of all that holds at once, the strongest status shows.",
    "facts.md §4, runtime",
    "projection.runtime.status",
)
def status_strongest(script: Script) -> Any:
    script.tell("session.created", "Session created")
    script.begin("Deploy it.")
    script.tell("sandbox.blocked", "Blocked", {"reasonCode": "network_denied"})
    script.tell("action.required", "Approval required", {"prompt": "Allow it?"}, **ACT)
    script.tell("action.resolved", "Approved", {"decision": "approved"}, **ACT)
    script.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    script.tell("tool.failed", "Deploy", {"failureCategory": "exit_code"}, **CALL)
    why = {"failureCategory": "exit_code", "recoveryHint": "Read the log."}
    script.end("failed", why)
    script.begin("Again.", "trn_2")
    script.end()
    return [
        equals("/runtime/status", "idle", after=1),
        equals("/runtime/status", "running", after=5),
        equals("/runtime/status", "blocked", after=6),
        equals("/runtime/blockedReason", "network_denied", after=6),
        equals("/runtime/status", "waiting", after=7),
        equals("/runtime/status", "blocked", after=8),
        equals("/runtime/status", "running", after=9),
        equals("/runtime/status", "running", after=10),
        equals("/runtime/status", "failed", after=11),
        equals("/runtime/status", "running", after=14),
        equals("/runtime/status", "completed"),
        absent("/runtime/failureCategory"),
    ]


SCENARIOS: Final[tuple[SceneScript, ...]] = (
    id_twice,
    hole_filled,
    text_exact,
    parts_apart,
    action_closers,
    handoff_taken,
    state_patched,
    unsaid_unknown,
    status_strongest,
)

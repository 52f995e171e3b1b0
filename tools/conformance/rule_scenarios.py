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
def id_twice(told: Script) -> Any:
    told.begin("Name the port.")
    first = told.tell("model.delta", "Answer", {"delta": "8080"})
    told.facts += [first, msgspec.structs.replace(first, payload={"delta": "9090"})]
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
def hole_filled(told: Script) -> Any:
    told.begin("Count.")
    pieces = ("one ", "two ", "three ")
    one, two, three = (told.draft("model.delta", "Answer", {"delta": piece}) for piece in pieces)
    end = told.draft("model.completed", "Answer", {"text": "one two three"})
    told.facts += [one, three, end, two]
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
def text_exact(told: Script) -> Any:
    told.begin("Write code.")
    pieces = ("no ", "no ", " ", "", "\n\n", "\tif x:", "é", "e\u0301", "🙂", "no ")
    told.stream("msg_1", *pieces)
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
def parts_apart(told: Script) -> Any:
    told.begin("Compare.")
    first, second = ({"message_id": "msg_1", "part_id": f"part_{name}"} for name in "ab")
    told.tell("model.delta", "A", {"delta": "A1 "}, **first)
    told.tell("model.delta", "B", {"delta": "B1 "}, **second)
    told.tell("model.delta", "A", {"delta": "A2"}, **first)
    told.tell("model.completed", "B", {"text": "B1 B2"}, **second)
    told.tell("model.completed", "A", {"text": "A1 A2"}, **first)
    told.end()
    told.begin("Again.", "trn_2")
    told.tell("model.delta", "Other", {"delta": "Another turn"}, message_id="msg_1")
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
def action_closers(told: Script) -> Any:
    told.begin("Deploy it.")
    told.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    told.tell("action.required", "Approval required", {"prompt": "Deploy?"}, **ACT)
    told.tell("action.updated", "Looked at", {"decision": "approved"}, **ACT)
    told.tell("tool.result", "Deploy", {"summary": "approved and deployed"}, **CALL)
    told.say("You approved, thank you.")
    told.tell("permission.resolved", "Allowed", {"decision": "allow"}, **ACT)
    told.tell("action.expired", "Nobody answered", **ACT)
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
def handoff_taken(told: Script) -> Any:
    told.begin("Let the writer do it.")
    task = {"task_id": "tsk_1"}
    ends = {"fromAgent": "sub_a", "toAgent": "sub_b"}
    for name in "ab":
        told.tell("subagent.started", f"{name} at work", subagent_id=f"sub_{name}", **task)
    told.tell("handoff.requested", "To b", ends, handoff_id="hnd_1", **task)
    told.tell("handoff.rejected", "To b", {**ends, "reason": "busy"}, handoff_id="hnd_1", **task)
    told.tell("handoff.requested", "To b", ends, handoff_id="hnd_2", **task)
    told.tell("handoff.accepted", "To b", ends, handoff_id="hnd_2", **task)
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
def state_patched(told: Script) -> Any:
    def patch(*operations: dict[str, Any]) -> None:
        told.tell("state.delta", "Patch", {"patch": list(operations)})

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
    told.tell("state.snapshot", "State", {"shared": {"list": []}, "toSequence": told.sequence})
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
def unsaid_unknown(told: Script) -> Any:
    told.begin("Go on.")
    told.tell("subagent.started", "Scout", subagent_id="sub_1", task_id="tsk_1")
    told.tell("evidence.changed", "Evidence", evidence_id="evd_1")
    told.tell("turn.failed", "Turn failed")
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
def status_strongest(told: Script) -> Any:
    told.tell("session.created", "Session created")
    told.begin("Deploy it.")
    told.tell("sandbox.blocked", "Blocked", {"reasonCode": "network_denied"})
    told.tell("action.required", "Approval required", {"prompt": "Allow it?"}, **ACT)
    told.tell("action.resolved", "Approved", {"decision": "approved"}, **ACT)
    told.tell("tool.started", "Deploy", {"toolName": "shell"}, **CALL)
    told.tell("tool.failed", "Deploy", {"failureCategory": "exit_code"}, **CALL)
    why = {"failureCategory": "exit_code", "recoveryHint": "Read the log."}
    told.end("failed", why)
    told.begin("Again.", "trn_2")
    told.end()
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

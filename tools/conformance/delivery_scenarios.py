"""What happened is what is shown, however it arrives: one scene for each way to get it wrong."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from .scene import SceneScript, absent, count, equals, lacks, scenario, text
from .script import Script

CALL: Final = {"tool_call_id": "call_1"}
ASKED: Final = {**CALL, "action_id": "act_1"}
TEAM: Final = {"subagent_id": "sub_a", "task_id": "tsk_a"}
SOURCE: Final = "facts.md §4"


def delivery(title: str, requirement: str, *issues: str, complete: bool = False) -> Any:
    return scenario(title, SOURCE, requirement, issues, complete=complete)


def _early(kind: str) -> Callable[[Script], Any]:
    """A snapshot arrives before the three facts that it claims to cover."""

    def scene(script: Script) -> Any:
        script.begin("Deploy it.")
        script.tell("tool.started", "Deploy", {"toolName": "deploy"}, **CALL)
        failure = {"failureCategory": "timeout", "message": "no answer"}
        failed = script.draft("tool.failed", "Deploy", failure, **CALL)
        artifact = script.draft("artifact.created", "Log", {"kind": "log"}, artifact_id="art_1")
        reason = {"failureCategory": "tool_failed", "recoveryHint": "Try again."}
        end = script.draft("turn.failed", "Turn failed", reason)
        payload: dict[str, Any] = {"toSequence": end.sequence}
        payload |= {"messages": []} if kind == "messages.snapshot" else {}
        snapshot = script.draft(kind, "Snapshot", payload, turn_id=None)
        script.facts += [snapshot, failed, artifact, end]
        return [
            equals("/tools/call_1/state", "output-error"),
            equals("/artifacts/art_1/artifactId", "art_1"),
            equals("/runtime/latestTurnStatus", "failed"),
            equals("/runtime/failureCategory", "tool_failed"),
        ]

    scene.__name__ = f"early_{kind.replace('.', '_')}"
    return scene


EARLY: Final = tuple(
    delivery(
        f"A {kind} that comes before facts it claims to cover hides none of them.",
        "screen.early-snapshots",
        "sequence_gap",
    )(_early(kind))
    for kind in (
        "snapshot.updated",
        "snapshot.repaired",
        "messages.snapshot",
        "stream.repair.completed",
    )
)


@delivery(
    "A file whose first line comes last shows the same.",
    "screen.order",
    "sequence_gap",
    complete=True,
)
def first_fact_last(script: Script) -> Any:
    script.begin("Name the port.")
    script.say("80", "80")
    script.end()
    script.facts[:] = [*script.facts[1:], script.facts[0]]
    return [
        text(0, 0, "Name the port."),
        text(1, 0, "8080"),
        equals("/runtime/status", "completed"),
        equals("/hydration/gaps", []),
        equals("/timeline/0/sequence", 1),
    ]


@delivery(
    "Two runs of a thread that each count from one are both shown.",
    "screen.order",
    "sequence_gap",
    complete=True,
)
def runs_counted_apart(script: Script) -> Any:
    for turn, words in (("trn_1", "One."), ("trn_2", "Two.")):
        first = len(script.facts)
        script.resume_at(1)
        script.begin(f"Say {words}", turn)
        script.say(words)
        script.tell("turn.completed", "Turn completed")
        run = f"run_{turn.removeprefix('trn_')}"
        script.facts[first:] = [
            msgspec.structs.replace(fact, run_id=run) for fact in script.facts[first:]
        ]
    return [
        count("/messages", 4),
        text(1, 0, "One."),
        text(3, 0, "Two."),
        equals("/runtime/latestTurnId", "trn_2"),
        equals("/runtime/latestTurnStatus", "completed"),
    ]


@delivery(
    "A child's thread that comes before the fact that began it hangs where it belongs.",
    "screen.edges",
    "sequence_gap",
    "sequence_violation",
    complete=True,
)
def child_thread_first(script: Script) -> Any:
    script.begin("Find out.")
    script.tell("task.started", "Look", {"title": "Look"}, task_id="tsk_a")
    script.tell("tool.started", "Delegate", {"toolName": "delegate"}, **CALL)
    spawned = {**CALL, **TEAM, "parent_thread_id": script.thread_id}
    script.tell("subagent.spawned", "A", {"name": "a"}, **spawned)
    script.tell("subagent.completed", "A", {"summary": "Cold."}, **TEAM)
    script.tell("task.completed", "Look", task_id="tsk_a")
    script.tell("tool.result", "Delegate", {"summary": "ok"}, **CALL)
    script.end()
    script.facts[1:] = reversed(script.facts[1:])
    return [
        equals("/graph/edges/task:tsk_a>subagent:sub_a:spawned/source", "task:tsk_a"),
        equals("/graph/edges/tool:call_1>subagent:sub_a:delegated/target", "subagent:sub_a"),
        equals("/graph/nodes/task:tsk_a/parentId", "turn:trn_1"),
        equals("/graph/nodes/subagent:sub_a/status", "completed"),
        equals("/subagents/threads/sub_a/parentThreadId", script.thread_id),
    ]


@delivery("A stream that starts in the middle does not read whole.", "screen.late-facts")
def started_in_the_middle(script: Script) -> Any:
    script.begin("Count.")
    script.stream("msg_1", "one ", "two ", "three")
    del script.facts[:5]
    return [
        lacks("/hydration/status", "live"),
        text(0, 0, "two three"),
    ]


@delivery("A final text without ids is the part that streamed with them.", "screen.one-part")
def ids_on_the_pieces(script: Script) -> Any:
    script.begin("Name the port.")
    ids = {"message_id": "msg_1", "part_id": "part_1"}
    script.tell("model.delta", "Answer", {"delta": "808"}, **ids)
    script.tell("model.completed", "Answer", {"text": "8080"}, message_id=None)
    return [
        count("/messages", 2),
        count("/messages/1/parts", 1),
        text(1, 0, "8080"),
        equals("/messages/1/parts/0/state", "final"),
    ]


@delivery("A final text with ids is the part that streamed without them.", "screen.one-part")
def ids_on_the_final(script: Script) -> Any:
    script.begin("Name the port.")
    script.tell("model.delta", "Answer", {"delta": "808"}, message_id=None)
    ids = {"message_id": "msg_1", "part_id": "part_1"}
    script.tell("model.completed", "Answer", {"text": "8080"}, **ids)
    return [
        count("/messages", 2),
        count("/messages/1/parts", 1),
        text(1, 0, "8080"),
        equals("/messages/1/parts/0/state", "final"),
    ]


@delivery(
    "A result whose status is failed is a failure on every surface.",
    "screen.outcomes",
    "outcome_mismatch",
)
def failed_result(script: Script) -> Any:
    script.begin("Run the tests.")
    script.tell("tool.started", "Tests", {"toolName": "pytest"}, **CALL)
    result = script.tell("tool.result", "Tests", {"summary": "2 failed"}, **CALL)
    script.facts[-1] = msgspec.structs.replace(result, status="failed")
    script.end()
    return [
        equals("/tools/call_1/state", "output-error"),
        equals("/graph/nodes/tool:call_1/status", "output-error"),
        equals("/messages/1/parts/0/status", "output-error"),
    ]


@delivery(
    "A request that is answered again keeps its first answer.",
    "screen.first-answer",
    "sequence_violation",
)
def answered_twice(script: Script) -> Any:
    script.begin("Deploy it.")
    script.tell("tool.started", "Deploy", {"toolName": "deploy"}, **CALL)
    script.tell("action.required", "Deploy?", {"actionType": "tool_approval"}, **ASKED)
    script.tell("action.resolved", "Denied", {"decision": "denied"}, **ASKED)
    script.tell("action.resolved", "Approved", {"decision": "approved"}, **ASKED)
    return [
        equals("/actions/act_1/status", "resolved"),
        equals("/actions/act_1/decision", "denied"),
        count("/diagnostics/items", 1),
    ]


@delivery(
    "A turn that is cancelled in the middle of a call cancels it and withdraws its request.",
    "screen.cancelled-work",
    "sequence_violation",
)
def cancelled_in_a_call(script: Script) -> Any:
    script.begin("Deploy it.")
    script.tell("tool.started", "Deploy", {"toolName": "deploy"}, **CALL)
    script.tell("action.required", "Deploy?", {"actionType": "tool_approval"}, **ASKED)
    script.tell("turn.canceled", "Turn canceled", {"reason": "stopped by the user"})
    return [
        equals("/tools/call_1/state", "cancelled"),
        equals("/graph/nodes/tool:call_1/status", "cancelled"),
        equals("/messages/1/parts/0/status", "cancelled"),
        equals("/actions/act_1/status", "cancelled"),
        equals("/graph/nodes/action:act_1/status", "cancelled"),
    ]


@delivery(
    "A result whose start nobody saw has no time at which it began.",
    "screen.times",
    "sequence_violation",
)
def start_unseen(script: Script) -> Any:
    script.begin("Run the tests.")
    script.tell("tool.result", "Tests", {"summary": "ok"}, **CALL)
    script.tell("action.resolved", "Approved", {"decision": "approved"}, action_id="act_1")
    return [
        equals("/tools/call_1/state", "output-available"),
        absent("/tools/call_1/startedAt"),
        absent("/actions/act_1/requestedAt"),
    ]


@delivery("A subagent's turn that fails leaves the thread running.", "screen.child-turns")
def child_turn_fails(script: Script) -> Any:
    script.begin("Find out.")
    script.tell("subagent.spawned", "A", {"name": "a"}, **TEAM)
    child = {**TEAM, "turn_id": "trn_child"}
    script.tell("turn.started", "Child's turn", **child)
    reason = {"failureCategory": "timeout", "recoveryHint": "Try again."}
    script.tell("turn.failed", "Child's turn", reason, **child)
    return [
        equals("/runtime/status", "running"),
        equals("/runtime/activeTurnId", "trn_1"),
        absent("/runtime/failureCategory"),
    ]


@delivery("Every text of an input is part of the user's message.", "screen.prompts")
def input_of_two_texts(script: Script) -> Any:
    parts = [{"type": "text", "text": "Why?"}, {"type": "text", "text": "In short."}]
    script.turn_id = "trn_1"
    script.tell("turn.submitted", "Turn submitted", {"input": parts}, message_id="ask_1")
    script.tell("turn.started", "Turn started")
    return [
        count("/messages", 1),
        text(0, 0, "Why?"),
        text(0, 1, "In short."),
    ]


@delivery(
    "A repair that carries nothing leaves the gap where it is.",
    "screen.empty-repairs",
    "sequence_gap",
    complete=True,
)
def empty_repair(script: Script) -> Any:
    script.begin("Count.")
    script.stream("msg_1", "one ")
    script.lose(2)
    script.stream("msg_1", "four")
    script.tell("stream.repair.completed", "Repaired")
    script.end()
    return [
        equals("/hydration/status", "degraded"),
        count("/hydration/gaps", 1),
        equals("/messages/1/parts/0/state", "stale"),
    ]


@delivery(
    "Two turns of a thread that each count from one are both shown.",
    "screen.restarts",
    "sequence_gap",
    complete=True,
)
def turns_counted_apart(script: Script) -> Any:
    for turn, words in (("trn_1", "One."), ("trn_2", "Two.")):
        script.resume_at(1)
        script.begin(f"Say {words}", turn)
        script.say(words)
        script.tell("turn.completed", "Turn completed")
    script.facts[:] = [msgspec.structs.replace(fact, run_id=None) for fact in script.facts]
    return [
        count("/messages", 4),
        text(1, 0, "One."),
        text(3, 0, "Two."),
        equals("/hydration/status", "live"),
        equals("/runtime/latestTurnId", "trn_2"),
    ]


@delivery("A snapshot that leaves out the prompt is remarked on.", "screen.lost-text")
def prompt_left_out(script: Script) -> Any:
    script.begin("Name the port.")
    script.say("8080")
    row = {"messageId": "msg_1", "role": "assistant", "turnId": "trn_1", "text": "8080"}
    script.tell("messages.snapshot", "Messages", {"messages": [row]}, turn_id=None)
    return [count("/messages", 1), text(0, 0, "8080"), count("/diagnostics/items", 1)]


PATCH: Final = "--- a/port\n+++ b/port\n@@ -1 +1 @@\n-8000\n+8080\n"


@delivery(
    "Refs and inline diffs are shown with what they belong to, under their own names.",
    "screen.refs",
)
def refs_in_place(script: Script) -> Any:
    script.begin("Change the port.")
    script.tell("tool.started", "Patch", {"toolName": "patch"}, **CALL)
    script.tell("tool.result", "Patch", {"diff": PATCH}, **CALL)
    work = {"task_id": "tsk_a"}
    script.tell("task.created", "Task", {"objective": "Change it"}, **work)
    steps = {"progress": {"completedSteps": 1, "totalSteps": 2}}
    script.tell("task.progress", "Task", steps, **work)
    ends = {"outputs": ["output:port"], "evidenceRefs": ["evidence:port"]}
    script.tell("task.completed", "Task", ends, **work)
    refs = {"replayRef": "replay:1", "reviewRef": "review:1", "packRef": "pack:1"}
    script.tell("evidence.changed", "Evidence", refs, evidence_id="evd_1")
    made = {"kind": "file"}
    script.tell("subagent.spawned", "A", {"name": "a"}, **TEAM)
    script.tell("artifact.created", "Port", made, artifact_id="art_1", **TEAM)
    script.tell("subagent.completed", "A", **TEAM)
    script.tell("context.compaction.started", "Compaction")
    script.tell("context.compaction.completed", "Compaction", {"summaryRef": "summary:1"})
    script.end()
    return [
        equals("/tools/call_1/diff", PATCH),
        equals("/tasks/tsk_a/outputRefs", ["output:port"]),
        equals("/tasks/tsk_a/evidenceRefs", ["evidence:port"]),
        equals("/tasks/tsk_a/completedSteps", 1),
        equals("/tasks/tsk_a/totalSteps", 2),
        *(equals(f"/evidence/items/evd_1/{name}", ref) for name, ref in refs.items()),
        equals("/artifacts/art_1/taskId", "tsk_a"),
        equals("/artifacts/art_1/subagentId", "sub_a"),
        equals("/context/compactions/0/summaryRef", "summary:1"),
    ]


@delivery("Why a turn failed is shown after the next one has failed, too.", "screen.outcomes")
def failures_of_two_turns(script: Script) -> Any:
    for turn, category in (("trn_1", "timeout"), ("trn_2", "rate_limited")):
        script.begin("Try it.", turn)
        script.end("failed", {"failureCategory": category, "recoveryHint": "Try again."})
    return [
        equals("/turns/trn_1/failureCategory", "timeout"),
        equals("/turns/trn_2/failureCategory", "rate_limited"),
        equals("/runtime/failureCategory", "rate_limited"),
    ]


@delivery("Closing a subagent does not hide that it failed.", "screen.outcomes")
def failed_subagent_closed(script: Script) -> Any:
    script.begin("Find out.")
    script.tell("subagent.spawned", "A", {"name": "a"}, **TEAM)
    script.tell("subagent.failed", "A", {"failureCategory": "timeout"}, **TEAM)
    script.tell("subagent.closed", "A", **TEAM)
    return [
        equals("/subagents/threads/sub_a/status", "failed"),
        equals("/graph/nodes/subagent:sub_a/status", "failed"),
    ]


SCENARIOS: Final[tuple[SceneScript, ...]] = (
    *EARLY,
    first_fact_last,
    runs_counted_apart,
    child_thread_first,
    started_in_the_middle,
    ids_on_the_pieces,
    ids_on_the_final,
    failed_result,
    answered_twice,
    cancelled_in_a_call,
    start_unseen,
    child_turn_fails,
    input_of_two_texts,
    empty_repair,
    turns_counted_apart,
    prompt_left_out,
    refs_in_place,
    failures_of_two_turns,
    failed_subagent_closed,
)

"""Approvals and plans: pending, denied, expired, delegated, restored; and what blocks a run."""

from typing import Any, Final

from factwire.facts import Fact

from .script import Script, call, fixture, remark, request

CALL: Final = {"tool_call_id": "call_1"}
ACT: Final = {"action_id": "act_1"}


def _ask_approval(script: Script, **fields: Any) -> tuple[Fact, Fact]:
    """A tool that cannot go on before a person has answered."""
    about = {**CALL, **fields}
    started = script.tell("tool.started", "Deploy", {"toolName": "shell"}, **about)
    what = {
        "actionType": "tool_approval",
        "severity": "high",
        "prompt": "Deploy to production?",
        "command": "make deploy",
        "expiresAt": script.now(later=300),
    }
    return started, script.tell("action.required", "Approval required", what, **ACT, **about)


@fixture(
    "An approval that waits: the thread waits with it, and a new screen shows it again.",
    "waiting",
    parts=2,  # question, tool
    timeline=5,  # turn, run, model asked, tool, action; no snapshot yet
    nodes=4,  # turn, run, tool, action
    pending=1,
    diagnostics=[],
)
def action_pending(script: Script) -> None:
    script.begin("Deploy it.")
    started, action = _ask_approval(script)
    script.expect_running(
        "waiting", toolCalls=[call(started, "running")], pendingActions=[request(action)]
    )


@fixture(
    "An approval that was denied: the tool never ran, and says why.",
    "completed",
    parts=3,
    timeline=9,  # the turn's four, evaluation, tool, action, denial, text
    nodes=4,
    diagnostics=["denied_by_user", "permission_denied"],
)
def approval_denied(script: Script) -> None:
    script.begin("Deploy it.")
    script.tell("permission.evaluated", "A person decides", {"decision": "ask"}, **CALL)
    started, _ = _ask_approval(script)
    decision = {"decision": "denied", "decidedBy": "user", "reason": "not on a Friday"}
    script.tell("action.resolved", "Denied", decision, **ACT)
    denied = {"decision": "deny", "reasonCode": "denied_by_user"}
    refused = script.tell("permission.denied", "Permission denied", denied, **ACT)
    why = {"failureCategory": "permission_denied"}
    ended = script.tell("tool.failed", "Deploy", why, **CALL)
    script.say("I did not deploy.")
    script.end()
    script.expect_ended(
        toolCalls=[call(started, "output-error", ended, **why)],
        diagnostics=[
            remark(refused, "denied_by_user", "warning"),
            remark(ended, "permission_denied", "warning"),
        ],
    )


@fixture(
    "An approval that nobody gave in time; the turn fails with a category and a hint.",
    "failed",
    parts=2,  # question, tool
    timeline=6,  # the turn's four, tool, action
    nodes=4,
    diagnostics=["approval_expired"],
)
def approval_expired(script: Script) -> None:
    script.begin("Deploy it.")
    started, _ = _ask_approval(script)
    script.wait(300)
    script.tell("action.expired", "Nobody answered", **ACT)
    why = {"failureCategory": "approval_expired"}
    ended = script.tell("tool.failed", "Deploy", why, **CALL)
    hint = {**why, "recoveryHint": "Ask again when somebody can answer."}
    script.end("failed", hint)
    script.expect_ended(
        "failed",
        why=hint,
        toolCalls=[call(started, "output-error", ended, **why)],
        diagnostics=[remark(ended, "approval_expired", "warning")],
    )


@fixture(
    "A subagent that asks for permission: the request names it, and the thread waits.",
    "waiting",
    parts=2,  # question; the subagent's tool in its own message
    timeline=7,  # turn, run, model asked, task, subagent, tool, action
    nodes=6,  # turn, run, task, subagent, tool, action
    pending=1,
    subagents={
        "threads": {"sub_deploy": "waiting"},
        "active": ["sub_deploy"],
        "handoffs": {},
        "reviews": {},
    },
    diagnostics=[],
)
def approval_delegated(script: Script) -> None:
    script.begin("Let somebody deploy it.")
    script.tell("task.started", "Deployment", {"title": "Deployment"}, task_id="tsk_1")
    member = {"subagent_id": "sub_deploy", "task_id": "tsk_1"}
    script.tell("subagent.started", "Deployer at work", {"name": "deployer"}, **member)
    about = {**member, **CALL}
    started = script.tell("tool.started", "Deploy", {"toolName": "shell"}, **about)
    what = {"actionType": "delegated_permission", "severity": "medium", "prompt": "May I deploy?"}
    action = script.tell("action.required", "Permission needed", what, **ACT, **about)
    script.tell("subagent.status", "Deployer waits", {"status": "waiting"}, **member)
    script.expect_running(
        "waiting", toolCalls=[call(started, "running")], pendingActions=[request(action)]
    )


@fixture(
    "A screen that starts from a read model; the stream and the queue go on after it.",
    "completed",
    parts=3,  # first answer, second question and answer; a read model carries no messages
    timeline=8,  # text, turn, snapshot; then turn, run, model asked, text, snapshot
    nodes=3,  # both turns, second run; the tool's own facts are before the cursor
    diagnostics=[],
)
def screen_restored(script: Script) -> None:
    script.turn_id = "trn_1"
    script.resume_at(5)
    started = script.tell("tool.started", "Search", {"toolName": "search"}, **CALL)
    ended = script.tell("tool.result", "Search", {"summary": "3 matches"}, **CALL)
    calls = [call(started, "output-available", ended)]
    waiting = {"queuedTurnId": "trn_2", "prompt": "And then?", "queuedAt": script.now()}
    script.initial = script.model(
        "running", activeTurnId="trn_1", toolCalls=calls, queuedTurns=[waiting]
    )
    script.facts.clear()
    script.say("Three ", "matches.")
    script.end()
    script.begin("And then?", "trn_2")
    script.say("Nothing else.")
    script.end()
    script.expect_ended(turn="trn_2", toolCalls=calls)


@fixture(
    "A plan that is written, approved and carried out; it is no part of the answer.",
    "completed",
    parts=2,  # question, answer
    timeline=7,  # the turn's four, plan, action, text
    nodes=3,  # turn, run, action
    diagnostics=[],
)
def plan_approved(script: Script) -> None:
    script.begin("Plan the migration.")
    script.tell("plan.delta", "Plan", {"delta": "1. Copy. "})
    script.tell("plan.final", "Plan", {"text": "1. Copy. 2. Switch."})
    what = {"actionType": "plan_decision", "prompt": "Shall I?"}
    script.tell("action.required", "Plan ready", what, **ACT)
    script.tell("action.resolved", "Approved", {"decision": "approved"}, **ACT)
    script.say("Done as planned.")
    script.end()
    script.expect_ended()


@fixture(
    "A tool that the sandbox stopped: the run is blocked, with the reason's code.",
    "blocked",
    parts=2,  # question, tool
    timeline=5,  # turn, run, model asked, tool, block
    nodes=3,
    diagnostics=["network_denied"],
)
def sandbox_blocked(script: Script) -> None:
    script.begin("Fetch the data.")
    started = script.tell("tool.started", "Download", {"toolName": "fetch"}, **CALL)
    why = {"reasonCode": "network_denied", "message": "No network in the sandbox."}
    stopped = script.tell("sandbox.blocked", "Blocked", why)
    noted = remark(stopped, "network_denied", "warning", message=why["message"])
    script.expect_running("blocked", toolCalls=[call(started, "running")], diagnostics=[noted])


FIXTURES: Final = (
    action_pending,
    approval_denied,
    approval_expired,
    approval_delegated,
    screen_restored,
    plan_approved,
    sandbox_blocked,
)

"""Tools and approvals: what an agent calls, and what a person must allow first."""

from .recorder import Recorder, story

_LOG = "output:sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@story(
    "A finished tool: its input and output streamed, the whole log is behind a ref.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 4, "nodes": 2, "edges": 1},
        "conversation": [
            "user: How many TODOs are left?",
            "assistant: tool call_todo output-available | 42, most of them in `legacy/`.",
        ],
        "tools": {"call_todo": f"output-available {_LOG}"},
        "catalog": ["search", "read_file"],
    },
)
def tool_success(told: Recorder) -> None:
    told.ask("trn_todo", "How many TODOs are left?")
    told.tell("tool.catalog.resolved", "Tools resolved", {"tools": ["search", "read_file"]})
    call, title = {"tool_call_id": "call_todo"}, "Search for TODO"
    for piece in ('{"pattern": ', '"TODO"}'):
        told.tell("tool.args.delta", title, {"delta": piece}, **call)
    told.tell("tool.args", title, {"args": {"pattern": "TODO"}}, **call)
    told.tell("tool.started", title, {"toolName": "search"}, **call)
    for piece in ("legacy/io.py:12: TODO\n", "legacy/io.py:40: TODO\n"):
        told.tell("tool.output.delta", title, {"delta": piece, "stream": "stdout"}, **call)
    told.tell("tool.progress", title, {"progress": 0.5, "message": "half of the files"}, **call)
    found = {"summary": "42 matches", "outputRef": _LOG, "durationMs": 812}
    told.tell("tool.result", title, found, ref_ids=(_LOG,), **call)
    told.answer("msg_todo", "42, most of them ", "in `legacy/`.")
    told.done()


@story(
    "A tool that failed, with a category and what to do about it; the turn went on.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 3, "nodes": 2, "edges": 1},
        "conversation": [
            "user: What does the staging config say?",
            "assistant: tool call_config output-error | There is no staging config here.",
        ],
        "tools": {"call_config": "output-error file_not_found"},
        "diagnostics": ["warning file_not_found"],
    },
)
def tool_failure(told: Recorder) -> None:
    told.ask("trn_config", "What does the staging config say?")
    call, title = {"tool_call_id": "call_config"}, "Read config/staging.toml"
    told.tell("tool.started", title, {"toolName": "read_file"}, **call)
    failure = {
        "failureCategory": "file_not_found",
        "message": "config/staging.toml is not in the workspace.",
        "recoveryHint": "List the folder first.",
    }
    told.tell("tool.failed", title, failure, **call)
    told.answer("msg_config", "There is no staging config here.")
    told.done()


@story(
    "Three tools at work at once: one is done, one is running, one still gets its input.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["tool:call_tests", "tool:call_types", "turn:trn_checks"],
        "counts": {"messages": 2, "parts": 4, "timeline": 4, "nodes": 4, "edges": 3},
        "conversation": [
            "user: Check style, types and tests.",
            (
                "assistant (streaming): tool call_style output-available | "
                "tool call_types running | tool call_tests input-streaming"
            ),
        ],
        "tools": {
            "call_style": "output-available",
            "call_types": "running",
            "call_tests": "input-streaming",
        },
    },
)
def parallel_tools(told: Recorder) -> None:
    told.ask("trn_checks", "Check style, types and tests.")
    style, types, tests = ({"tool_call_id": f"call_{name}"} for name in ("style", "types", "tests"))
    told.tell("tool.started", "Check style", {"toolName": "lint"}, **style)
    told.tell("tool.started", "Check types", {"toolName": "types"}, **types)
    told.tell("tool.args.delta", "Run tests", {"delta": '{"path": '}, **tests)
    told.tell("tool.output.delta", "Check types", {"delta": "checking 80 files\n"}, **types)
    told.tell("tool.result", "Check style", {"summary": "nothing to say"}, **style)
    told.tell("tool.args.delta", "Run tests", {"delta": '"tests/'}, **tests)
    told.tell("tool.output.delta", "Check types", {"delta": "0 errors so far\n"}, **types)


def _approval(told: Recorder, name: str) -> None:
    told.ask(f"trn_{name}", "Delete the merged branches.")
    call = {"tool_call_id": f"call_{name}"}
    told.tell(
        "permission.evaluated",
        "Rule asks a person",
        {"decision": "ask", "rule": "git push --delete", "toolName": "shell"},
        **call,
    )
    told.tell("tool.started", "Delete 3 branches", {"toolName": "shell"}, **call)
    told.tell(
        "action.required",
        "May I delete 3 remote branches?",
        {
            "actionType": "tool_approval",
            "severity": "high",
            "prompt": "Delete 3 remote branches?",
            "toolName": "shell",
            "command": "git push origin --delete fix-1 fix-2 fix-3",
            "expiresAt": told.now(later=300),
            "options": ["approve", "deny"],
        },
        action_id=f"act_{name}",
        **call,
    )


_ASKED = ["permission.evaluated ask"]


@story(
    "An approval that waits: what would run, why it asks, until when.",
    {
        "status": "waiting",
        "hydration": "live",
        "unfinished": [
            "action:act_approval_pending",
            "tool:call_approval_pending",
            "turn:trn_approval_pending",
        ],
        "counts": {
            "messages": 2,
            "parts": 2,
            "timeline": 4,
            "nodes": 3,
            "edges": 2,
            "pending": 1,
        },
        "conversation": [
            "user: Delete the merged branches.",
            "assistant (streaming): tool call_approval_pending running",
        ],
        "tools": {"call_approval_pending": "running"},
        "actions": {"act_approval_pending": "pending"},
        "permissions": _ASKED,
    },
)
def approval_pending(told: Recorder) -> None:
    _approval(told, "approval_pending")


@story(
    "An approval that was given; the tool ran and the turn is over.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 7, "nodes": 3, "edges": 2},
        "conversation": [
            "user: Delete the merged branches.",
            "assistant: tool call_approval_granted output-available | All three are gone.",
        ],
        "tools": {"call_approval_granted": "output-available"},
        "actions": {"act_approval_granted": "resolved approved"},
        "permissions": [*_ASKED, "permission.requested", "permission.resolved allow"],
    },
)
def approval_granted(told: Recorder) -> None:
    _approval(told, "approval_granted")
    told.tell("permission.requested", "Permission requested", {"toolName": "shell"})
    told.wait(30)
    told.tell(
        "action.resolved",
        "Approved",
        {"decision": "approved", "decidedBy": "user"},
        action_id="act_approval_granted",
    )
    told.tell("permission.resolved", "Permission given", {"decision": "allow"})
    told.tell(
        "tool.result",
        "Delete 3 branches",
        {"summary": "3 branches deleted", "exitCode": 0},
        tool_call_id="call_approval_granted",
    )
    told.answer("msg_approval_granted", "All three are gone.")
    told.done()


@story(
    "An approval that was refused, with the reason; the tool never ran.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 6, "nodes": 3, "edges": 2},
        "conversation": [
            "user: Delete the merged branches.",
            "assistant: tool call_approval_denied output-error | I left the branches alone.",
        ],
        "tools": {"call_approval_denied": "output-error permission_denied"},
        "actions": {"act_approval_denied": "resolved denied"},
        "permissions": [*_ASKED, "permission.denied deny denied_by_user"],
        "diagnostics": ["warning denied_by_user", "warning permission_denied"],
    },
)
def approval_denied(told: Recorder) -> None:
    _approval(told, "approval_denied")
    told.wait(12)
    told.tell(
        "action.resolved",
        "Denied",
        {"decision": "denied", "decidedBy": "user", "reason": "fix-2 is not merged yet"},
        action_id="act_approval_denied",
    )
    denied = {"decision": "deny", "reasonCode": "denied_by_user"}
    told.tell("permission.denied", "Permission denied", denied)
    told.tell(
        "tool.failed",
        "Delete 3 branches",
        {"failureCategory": "permission_denied", "message": "A person said no."},
        tool_call_id="call_approval_denied",
    )
    told.answer("msg_approval_denied", "I left the branches alone.")
    told.done()


@story(
    "An approval that nobody answered in time.",
    {
        "status": "failed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 4, "nodes": 3, "edges": 2},
        "failure": "approval_expired Ask again when somebody can answer.",
        "conversation": [
            "user: Delete the merged branches.",
            "assistant (interrupted): tool call_approval_expired output-error",
        ],
        "tools": {"call_approval_expired": "output-error approval_expired"},
        "actions": {"act_approval_expired": "expired"},
        "permissions": _ASKED,
        "diagnostics": ["warning approval_expired"],
    },
)
def approval_expired(told: Recorder) -> None:
    _approval(told, "approval_expired")
    told.wait(300)
    told.tell("action.expired", "Nobody answered", action_id="act_approval_expired")
    gone = {"failureCategory": "approval_expired", "message": "Nobody answered in time."}
    told.tell("tool.failed", "Delete 3 branches", gone, tool_call_id="call_approval_expired")
    hint = "Ask again when somebody can answer."
    told.tell("turn.failed", "Turn failed", {**gone, "recoveryHint": hint})
    told.turn_id = None


@story(
    "Two approvals that were withdrawn before anybody answered, spelt both ways.",
    {
        "status": "canceled",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 5, "nodes": 4, "edges": 3},
        "conversation": [
            "user: Delete the merged branches.",
            "assistant (interrupted): tool call_approval_cancelled cancelled",
        ],
        "tools": {"call_approval_cancelled": "cancelled user_cancelled"},
        "actions": {
            "act_approval_cancelled": "cancelled",
            "act_approval_cancelled_too": "cancelled",
        },
        "permissions": _ASKED,
    },
)
def approval_cancelled(told: Recorder) -> None:
    _approval(told, "approval_cancelled")
    also = {"action_id": "act_approval_cancelled_too"}
    told.tell("action.required", "And the tags?", {"actionType": "clarification"}, **also)
    reason = {"reason": "the turn was stopped"}
    told.tell("action.cancelled", "Withdrawn", reason, action_id="act_approval_cancelled")
    told.tell("action.canceled", "Withdrawn", reason, **also)
    told.tell(
        "tool.failed",
        "Delete 3 branches",
        {"failureCategory": "user_cancelled"},
        status="canceled",
        tool_call_id="call_approval_cancelled",
    )
    told.tell("turn.canceled", "Stopped by the user")
    told.turn_id = None


@story(
    "A form to fill in: a question with choices, changed once while it waited.",
    {
        "status": "waiting",
        "hydration": "live",
        "unfinished": ["action:act_release", "turn:trn_release"],
        "counts": {
            "messages": 2,
            "parts": 2,
            "timeline": 3,
            "nodes": 2,
            "edges": 1,
            "pending": 1,
        },
        "conversation": [
            "user: Set up the release.",
            "assistant: Which version shall it be?",
        ],
        "actions": {"act_release": "pending"},
    },
)
def question_asked(told: Recorder) -> None:
    told.ask("trn_release", "Set up the release.")
    told.answer("msg_release", "Which version shall it be?")
    schema = {"type": "object", "properties": {"version": {"enum": ["1.4.0", "2.0.0"]}}}
    asked = {"actionType": "structured_input", "prompt": "Which version?"}
    told.tell("action.required", "Version", asked, action_id="act_release")
    more = {"responseSchema": schema, "options": ["1.4.0", "2.0.0"]}
    told.tell("action.updated", "Version", more, action_id="act_release")


STORIES = (
    tool_success,
    tool_failure,
    parallel_tools,
    approval_pending,
    approval_granted,
    approval_denied,
    approval_expired,
    approval_cancelled,
    question_asked,
)

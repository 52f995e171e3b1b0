"""Surroundings: queue, context, rules, limits and remarks; none of it is ever answer text."""

from .recorder import Recorder, story


@story(
    "One turn runs, one waits; a steer went to the running one, a third was removed.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["text:trn_port:msg_port:msg_port%3Atext", "turn:trn_port"],
        "counts": {"messages": 2, "parts": 2, "timeline": 9, "nodes": 1},
        "conversation": [
            "user: Port the build to the new compiler.",
            "assistant (streaming): Porting the flags ",
        ],
        "queue": ["Then update the docs."],
        "steers": ["Keep the debug flags."],
    },
)
def queue_steered(told: Recorder) -> None:
    told.ask("trn_port", "Port the build to the new compiler.")
    told.stream("msg_port", "Porting the flags ")
    lint = {"queued_turn_id": "trn_lint"}
    prompts = {"trn_lint": "Run the linter.", "trn_docs": "Then update the docs."}
    for queued, prompt in prompts.items():
        waiting = {"prompt": prompt, "reason": "turn_active"}
        told.tell("queue.changed", "Turn queued", waiting, queued_turn_id=queued)
    steer = {"text": "Keep the debug flags.", "status": "accepted"}
    told.tell("queue.changed", "Steered", steer, control="steer")
    sooner = {"change": "promoted", "prompt": "Then update the docs."}
    told.tell("queue.changed", "Docs first", sooner, queued_turn_id="trn_docs")
    told.tell("queue.changed", "Linter removed", {"change": "removed"}, **lint)
    both = [{"queuedTurnId": "trn_docs", "prompt": "Then update the docs."}]
    told.tell("queue.changed", "Queue", {"queuedTurns": both, "queuedTurnCount": 1})
    told.tell("thread.updated", "Thread touched")


@story(
    "What the model was given: a file, one that is missing, and history folded away.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 8, "nodes": 1},
        "conversation": [
            "user: Explain the scheduler.",
            "assistant: It keeps two heaps.",
        ],
        "context": [
            "resolved Context resolved",
            "attached src/scheduler.py",
            "failed docs/scheduler.md",
        ],
        "compactions": ["completed 180000 24000", "failed 190000", "completed 190000 22000"],
        "diagnostics": ["warning not_found", "warning model_unavailable"],
    },
)
def context_compacted(told: Recorder) -> None:
    told.ask("trn_scheduler", "Explain the scheduler.")
    told.tell("context.resolved", "Context resolved", {"usagePercent": 61.5})
    told.tell("context.attached", "src/scheduler.py", {"kind": "file"}, ref_ids=("ctx:sched",))
    missing = {"failureCategory": "not_found", "message": "docs/scheduler.md is not there."}
    told.tell("context.failed", "docs/scheduler.md", missing)
    full = {"trigger": "auto", "tokensBefore": 180000}
    told.tell("context.compaction.started", "Folding history", full)
    folded = {"summary": "We looked at the heaps.", "tokensBefore": 180000, "tokensAfter": 24000}
    told.tell("context.compaction.completed", "History folded", folded)
    told.tell("context.compaction.started", "Folding history", {"tokensBefore": 190000})
    broken = {"failureCategory": "model_unavailable", "message": "No summary was made."}
    told.tell("context.compaction.failed", "Folding failed", broken)
    again = {"tokensBefore": 190000, "tokensAfter": 22000, "summary": "Heaps and timers."}
    told.tell("history.compacted", "History folded", again)
    told.answer("msg_scheduler", "It keeps two heaps.")
    told.done()


@story(
    "Which model answers, why another one had to, and what it cost.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 12, "nodes": 1},
        "model": "small-1",
        "conversation": [
            "user: Translate the manual page.",
            "assistant: Done, 140 lines.",
        ],
        "limits": {"requests": "hit", "budget": "low"},
        "routing": [
            "candidates.resolved",
            "decided large-2",
            "fallback.applied small-1",
            "single_candidate small-1",
        ],
        "usage": "5200 tokens, 0.03 USD",
        "metrics": {"firstTextMs": 640},
        "diagnostics": ["warning rate_limit.hit", "warning quota.low"],
    },
)
def routing_and_cost(told: Recorder) -> None:
    told.ask("trn_manual", "Translate the manual page.")
    both = {"candidates": ["large-2", "small-1"]}
    told.tell("routing.candidates.resolved", "Candidates", both)
    told.tell("routing.decided", "Model chosen", {"model": "large-2", "reason": "long text"})
    told.tell("cost.estimated", "Estimate", {"totalCostUsd": 0.05})
    told.tell("limit.changed", "Limit", {"name": "requests", "limit": 60, "remaining": 0})
    hit = {"name": "requests", "retryAfterMs": 20000, "message": "60 requests a minute"}
    told.tell("rate_limit.hit", "Rate limit", hit)
    fallback = {"model": "small-1", "reasonCode": "rate_limited"}
    told.tell("routing.fallback.applied", "Fallback", fallback)
    told.tell("routing.single_candidate", "One model left", {"model": "small-1"})
    told.answer("msg_manual", "Done, ", "140 lines.")
    used = {"inputTokens": 4000, "outputTokens": 1200, "totalCostUsd": 0.03}
    told.tell("cost.recorded", "Cost", used)
    low = {"name": "budget", "utilization": 0.93, "message": "93 % of the month's budget"}
    told.tell("quota.low", "Budget low", low)
    told.tell("metrics.changed", "Figures", {"firstTextMs": 640})
    told.done()


@story(
    "Nothing goes on: the budget is used up and no other model may be asked.",
    {
        "status": "blocked",
        "hydration": "live",
        "unfinished": ["turn:trn_importer"],
        "counts": {"messages": 1, "parts": 1, "timeline": 3, "nodes": 1},
        "blocked": "no_candidate",
        "conversation": ["user: Refactor the importer."],
        "limits": {"budget": "blocked"},
        "routing": ["not_possible"],
        "diagnostics": ["error quota.blocked", "error no_candidate"],
    },
)
def quota_blocked(told: Recorder) -> None:
    told.ask("trn_importer", "Refactor the importer.")
    used = {"name": "budget", "utilization": 1.0, "message": "The month's budget is used up."}
    told.tell("quota.blocked", "Budget used up", used)
    none = {"reasonCode": "no_candidate", "message": "No model is left to ask."}
    told.tell("routing.not_possible", "No model left", none)


@story(
    "A sandbox that kept a download from happening, and a write outside the workspace.",
    {
        "status": "blocked",
        "hydration": "live",
        "unfinished": ["tool:call_write", "turn:trn_fetch"],
        "counts": {"messages": 2, "parts": 3, "timeline": 8, "nodes": 3, "edges": 2},
        "blocked": "path_outside_workspace",
        "conversation": [
            "user: Fetch the fixtures.",
            "assistant (streaming): tool call_fetch output-error | tool call_write running",
        ],
        "tools": {"call_fetch": "output-error sandbox_blocked", "call_write": "running"},
        "permissions": [
            "policy.changed",
            "permission.evaluated allow",
            "sandbox.blocked network_denied",
            "sandbox.violation path_outside_workspace",
        ],
        "sandbox": "applied",
        "diagnostics": [
            "warning network_denied",
            "warning sandbox_blocked",
            "error path_outside_workspace",
        ],
    },
)
def sandbox_blocked(told: Recorder) -> None:
    told.ask("trn_fetch", "Fetch the fixtures.")
    told.tell("policy.changed", "Policy", {"mode": "workspace-write"})
    told.tell("sandbox.applied", "Sandbox on", {"network": False, "writable": ["."]})
    told.tell("permission.evaluated", "Allowed by rule", {"decision": "allow", "rule": "fetch"})
    fetch = {"tool_call_id": "call_fetch"}
    told.tell("tool.started", "Download", {"toolName": "fetch"}, **fetch)
    no = {"reasonCode": "network_denied", "message": "The sandbox has no network."}
    told.tell("sandbox.blocked", "Download stopped", no)
    told.tell("tool.failed", "Download", {"failureCategory": "sandbox_blocked"}, **fetch)
    told.tell("tool.started", "Write", {"toolName": "write"}, tool_call_id="call_write")
    outside = {"reasonCode": "path_outside_workspace", "path": "../fixtures"}
    told.tell("sandbox.violation", "Write stopped", outside)


@story(
    "Remarks beside a finished answer: a warning, an error, and what was hidden, moved or cut.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 4, "timeline": 8, "nodes": 1},
        "conversation": [
            "user: Show me the server's settings.",
            "assistant: Here they are, without the secrets. | diagnostic | diagnostic",
        ],
        "diagnostics": [
            "warning slow_disk",
            "error index_unavailable",
            "info output.redacted",
            "info output.spilled",
            "info output.truncated",
            "info output.expired",
        ],
    },
)
def diagnostics_noted(told: Recorder) -> None:
    told.ask("trn_settings", "Show me the server's settings.")
    told.answer("msg_settings", "Here they are, ", "without the secrets.")
    slow = {"code": "slow_disk", "message": "Reading took 4 seconds."}
    told.tell("runtime.warning", "Slow disk", slow)
    broken = {"code": "index_unavailable", "recoveryHint": "Build the index again."}
    told.tell("runtime.error", "No index", {**broken, "rawRef": "diagnostic:index-error"})
    about = {"eventId": told.facts[2].id}
    hidden = [{"path": "$.payload.delta", "rule": "value:password"}]
    told.tell("output.redacted", "A value was hidden", {**about, "redacted": hidden})
    moved = [{"path": "$.payload.output", "ref": "output:settings", "bytes": 88000}]
    told.tell("output.spilled", "Output was moved", {**about, "spilled": moved})
    told.tell("output.truncated", "Output was cut", {**about, "bytes": 4096})
    told.tell("output.expired", "Output was let go", {**about, "ref": "output:old-log"})
    told.done()


@story(
    "A class that nobody knows: kept in the timeline, remarked on, and nothing guessed.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 3, "nodes": 1},
        "conversation": ["user: Dim the lights.", "assistant: Done."],
        "diagnostics": ["info unknown_event_type"],
    },
    issues=("unknown_event_type",),
)
def unknown_class(told: Recorder) -> None:
    told.ask("trn_lights", "Dim the lights.")
    told.tell("lamp.dimmed", "Lamp dimmed", {"level": 0.4}, surface="custom")
    told.answer("msg_lights", "Done.")
    told.done()


@story(
    "Facts without the ids they need: shown as degraded, tied to nothing, never completed.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["turn:trn_clean"],
        "counts": {
            "messages": 1,
            "parts": 1,
            "timeline": 5,
            "nodes": 1,
            "degraded": 4,
        },
        "conversation": ["user: Clean up."],
        "diagnostics": ["warning missing_scope_id"] * 4,
    },
    issues=("missing_scope_id",) * 4,
)
def ids_missing(told: Recorder) -> None:
    told.ask("trn_clean", "Clean up.")
    told.tell("tool.result", "A result of no call", {"summary": "removed 3 files"})
    told.tell("action.required", "An approval without an id", {"prompt": "Go on?"})
    told.tell("task.completed", "A task without an id")
    told.tell("artifact.created", "An artifact without an id", {"kind": "document"})


STORIES = (
    queue_steered,
    context_compacted,
    routing_and_cost,
    quota_blocked,
    sandbox_blocked,
    diagnostics_noted,
    unknown_class,
    ids_missing,
)

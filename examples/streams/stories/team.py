"""Teams: subagents, workers, remote teammates, handoffs; never folded into the assistant."""

from typing import Any

from .recorder import Recorder, story


def _member(name: str, task: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"subagent_id": f"sub_{name}", "task_id": task or f"tsk_{name}", **fields}


def _thread(told: Recorder, name: str) -> dict[str, Any]:
    """A thread of a teammate's own, beneath the one that the story is told on."""
    return {"thread_id": f"{told.thread_id}_{name}", "parent_thread_id": told.thread_id}


@story(
    "Two subagents in parallel, each on a thread of its own; one is done, one failed.",
    {
        "status": "completed",
        "hydration": "live",
        "unfinished": ["task:tsk_cache", "task:tsk_tests_time"],
        "counts": {"messages": 4, "parts": 6, "timeline": 8, "nodes": 8, "edges": 7},
        "conversation": [
            "user: Find out why CI is slow.",
            (
                "assistant: tool call_ask_cache output-available | tool call_ask_tests "
                "output-available | The cache is cold; I could not time the tests."
            ),
            "assistant sub_cache: The cache is cold on every run.",
            "assistant sub_tests: tool call_time output-error",
        ],
        "tools": {
            "call_ask_cache": "output-available",
            "call_ask_tests": "output-available",
            "call_time": "output-error timeout",
        },
        "tasks": {"tsk_cache": "unknown", "tsk_tests_time": "unknown"},
        "roster": {
            "sub_cache": "subagent closed lineage known",
            "sub_tests": "subagent failed lineage known",
        },
        "diagnostics": ["warning timeout"],
    },
)
def subagents_parallel(told: Recorder) -> None:
    told.ask("trn_ci", "Find out why CI is slow.")
    _delegate(told)
    cache = _member("cache", **_thread(told, "cache"))
    tests = _member("tests", "tsk_tests_time", **_thread(told, "tests"))
    told.tell("subagent.started", "Cache expert at work", **cache)
    told.tell("subagent.started", "Test expert at work", **tests)
    told.tell("subagent.input", "Question", {"message": "Look at the last 20 runs."}, **cache)
    said = {"message_id": "msg_sub_cache", **cache}
    told.tell("model.delta", "Cache expert", {"delta": "The cache is cold "}, **said)
    told.tell("tool.started", "Time the tests", tool_call_id="call_time", **tests)
    told.tell("model.delta", "Cache expert", {"delta": "on every run."}, **said)
    told.tell("subagent.progress", "Half of the tests timed", {"message": "200 of 400"}, **tests)
    whole = {"text": "The cache is cold on every run."}
    told.tell("model.completed", "Cache expert", whole, **said)
    late = {"failureCategory": "timeout"}
    told.tell("tool.failed", "Time the tests", late, tool_call_id="call_time", **tests)
    done = {"summary": "The cache is cold on every run.", "transcriptRef": "trace:sub-cache"}
    told.tell("subagent.completed", "Cache expert is done", done, **cache)
    told.tell("subagent.failed", "Test expert failed", late, **tests)
    told.tell("subagent.closed", "Cache expert left", **cache)
    for name in ("cache", "tests"):
        reported = {"summary": "reported"}
        told.tell("tool.result", f"Ask {name}", reported, tool_call_id=f"call_ask_{name}")
    told.answer("msg_ci", "The cache is cold; ", "I could not time the tests.")
    told.done()


def _delegate(told: Recorder) -> None:
    tasks = {"cache": "tsk_cache", "tests": "tsk_tests_time"}
    for name, task in tasks.items():
        call = f"call_ask_{name}"
        told.tell("tool.started", f"Ask {name}", {"toolName": "delegate"}, tool_call_id=call)
        member = _member(name, task, tool_call_id=call)
        told.tell("subagent.spawned", f"{name} expert", {"name": f"{name} expert"}, **member)


@story(
    "A subagent asks for permission; the card names it, and the main answer goes on.",
    {
        "status": "waiting",
        "hydration": "live",
        "unfinished": [
            "action:act_install",
            "run:trn_update",
            "subagent:sub_updater",
            "task:tsk_updater",
            "text:trn_update:msg_update:msg_update%3Atext",
            "tool:call_install",
            "turn:trn_update",
        ],
        "counts": {
            "messages": 3,
            "parts": 3,
            "timeline": 7,
            "nodes": 5,
            "edges": 4,
            "pending": 1,
        },
        "conversation": [
            "user: Update the dependencies.",
            "assistant sub_updater (streaming): tool call_install running",
            "assistant (streaming): While the updater waits, here is the list: ",
        ],
        "tools": {"call_install": "running"},
        "actions": {"act_install": "pending sub_updater"},
        "tasks": {"tsk_updater": "running"},
        "roster": {"sub_updater": "subagent waiting lineage known"},
        "active": ["sub_updater"],
        "board": {"tsk_updater": "running sub_updater"},
    },
)
def approval_delegated(told: Recorder) -> None:
    told.ask("trn_update", "Update the dependencies.")
    updater = _member("updater")
    told.tell("task.started", "Update", task_id="tsk_updater")
    told.tell("task.delegated", "Update", {"delegatedTo": "sub_updater"}, task_id="tsk_updater")
    told.tell("subagent.spawned", "Updater", {"name": "updater", "role": "worker"}, **updater)
    told.tell("subagent.started", "Updater at work", **updater)
    call = {"tool_call_id": "call_install", **updater}
    told.tell("tool.started", "Install", {"toolName": "shell"}, **call)
    asked = {"actionType": "delegated_permission", "severity": "medium", "prompt": "Install 12?"}
    told.tell("action.required", "Install 12 packages?", asked, action_id="act_install", **call)
    told.tell("subagent.status", "Updater waits", {"status": "waiting"}, **updater)
    told.stream("msg_update", "While the updater waits, ", "here is the list: ")
    told.tell("run.status", "Waiting for a decision", {"status": "waiting"})


@story(
    "Workers of whom nothing says where they belong: shown as such, tied to nothing.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["subagent:wrk_stray", "turn:trn_continue"],
        "counts": {"messages": 1, "parts": 1, "timeline": 3, "nodes": 2, "degraded": 1},
        "conversation": ["user: Continue."],
        "roster": {"wrk_stray": "worker running lineage unavailable"},
        "active": ["wrk_stray"],
        "diagnostics": ["warning lineage_missing", "warning missing_scope_id"],
    },
    issues=("missing_scope_id",),
)
def lineage_missing(told: Recorder) -> None:
    told.ask("trn_continue", "Continue.")
    stray = {"turn_id": None, "worker_id": "wrk_stray"}
    told.tell("worker.started", "A worker appeared", **stray)
    told.tell("subagent.started", "A subagent without a task", subagent_id="sub_stray")


@story(
    "A team with a roster and a policy: work handed over, refused, reviewed and reported.",
    {
        "status": "completed",
        "hydration": "live",
        "unfinished": [
            "subagent:sub_coder",
            "task:tsk_checks",
            "task:tsk_parser",
        ],
        "counts": {
            "messages": 2,
            "parts": 3,
            "timeline": 17,
            "nodes": 7,
            "edges": 6,
            "evidence": 1,
        },
        "conversation": [
            "user: Ship the parser as a team.",
            "assistant: The parser is in review. | evidence evd_parser changes_requested",
        ],
        "evidence": {"evd_parser": "unknown unknown changes_requested"},
        "reviews": {"rev_parser": "completed changes_requested sub_reviewer"},
        "tasks": {"tsk_parser": "unknown", "tsk_checks": "unknown"},
        "team": "parser-team reviewing coordinator_team sub_coder",
        "policy": {"maxParallel": 2, "requireReview": True},
        "roster": {
            "agt_lead": "subagent completed lineage known",
            "sub_planner": "subagent completed lineage known",
            "sub_coder": "subagent unknown lineage known",
            "wrk_tests": "worker completed lineage known",
        },
        "handoffs": {
            "hnd_code": "completed sub_planner sub_coder",
            "hnd_docs": "rejected sub_coder sub_writer",
            "hnd_tests": "requested sub_coder wrk_tests",
        },
        "notifications": ["wrk_tests All 48 tests pass. output:parser-tests"],
    },
)
def team_at_work(told: Recorder) -> None:
    told.ask("trn_team", "Ship the parser as a team.")
    formed = {"teamName": "parser-team", "topology": "coordinator_team", "teamPhase": "acting"}
    told.tell("team.changed", "Team formed", formed)
    policy = {"policy": {"maxParallel": 2, "requireReview": True}}
    told.tell("team.changed", "Team policy", policy, surface="team_policy")
    task, lead = {"task_id": "tsk_parser"}, {"agent_id": "agt_lead"}
    told.tell("task.started", "Parser", {"title": "Parser"}, **task)
    told.tell("agent.spawned", "Lead", {"name": "lead"}, **lead, **task)
    told.tell("agent.changed", "Lead plans", {"status": "running"}, **lead, **task)
    _hand_over(told)
    worker = {"worker_id": "wrk_tests", "task_id": "tsk_checks"}
    told.tell("worker.started", "Test worker", **worker)
    told.tell("worker.completed", "Test worker", **worker)
    told.tell(
        "worker.notification",
        "Test worker reports",
        {
            "role": "user",
            "message": "All 48 tests pass.",
            "resultRef": "output:parser-tests",
            "status": "completed",
        },
        **worker,
    )
    told.tell("agent.completed", "Lead is done", **lead, **task)
    told.answer("msg_team", "The parser is in review.")
    about = {"review_id": "rev_parser", "evidence_refs": ("evd_parser",)}
    told.tell("review.requested", "Review of the parser", {"reviewer": "sub_reviewer"}, **about)
    verdict = {"verdict": "changes_requested", "summary": "Name the error codes."}
    told.tell("review.completed", "Reviewed", verdict, **about)
    told.tell("team.changed", "Team reviews", {"teamPhase": "reviewing"})
    told.done()


def _hand_over(told: Recorder) -> None:
    planner, coder = _member("planner", "tsk_parser"), _member("coder", "tsk_parser")
    told.tell("subagent.started", "Planner at work", {"name": "planner"}, **planner)
    told.tell("subagent.completed", "Planner is done", **planner)
    told.tell("subagent.started", "Coder at work", {"name": "coder"}, **coder)
    code = {"fromAgent": "sub_planner", "toAgent": "sub_coder", "reason": "needs the code base"}
    for step in ("requested", "accepted", "completed"):
        told.tell(f"handoff.{step}", "Parser to the coder", code, handoff_id="hnd_code")
    docs = {"fromAgent": "sub_coder", "toAgent": "sub_writer"}
    told.tell("handoff.requested", "Docs to the writer", docs, handoff_id="hnd_docs")
    refused = {**docs, "reason": "no capacity"}
    told.tell("handoff.rejected", "Docs to the writer", refused, handoff_id="hnd_docs")
    tests = {"fromAgent": "sub_coder", "toAgent": "wrk_tests"}
    told.tell("agent.handoff", "Tests to the worker", tests, handoff_id="hnd_tests")


@story(
    "A teammate in the background and a remote one whose channel broke and came back.",
    {
        "status": "completed",
        "hydration": "live",
        "unfinished": ["subagent:sub_watch", "task:tsk_watch"],
        "counts": {"messages": 2, "parts": 2, "timeline": 9, "nodes": 3, "edges": 1},
        "conversation": [
            "user: Watch the deploy while I am away.",
            "assistant: Both teammates are on it.",
        ],
        "tasks": {"tsk_watch": "unknown", "tsk_deploy": "unknown"},
        "roster": {
            "sub_watch": "background_teammate running lineage known",
            "agt_remote": "remote_teammate connected lineage known",
        },
        "active": ["sub_watch", "agt_remote"],
        "permissions": [
            "channel.permission_forwarded",
            "channel.permission_returned allow",
        ],
    },
)
def teammates_away(told: Recorder) -> None:
    told.ask("trn_watch", "Watch the deploy while I am away.")
    background = _member("watch", topology="background_teammate", surface="background_teammate")
    told.tell("subagent.started", "Watcher at work", {"name": "watcher"}, **background)
    remote = {
        "channel_id": "chn_deploy",
        "subagent_id": "agt_remote",
        "task_id": "tsk_deploy",
        "remote_task_id": "remote-81",
        "runtime_entity": "external_task",
    }
    told.tell("channel.connected", "Deploy agent connected", {"name": "deployer"}, **remote)
    said = {"message": "Staging is up.", "status": "delivered"}
    told.tell("channel.message", "Deploy agent says", said, **remote)
    told.tell("channel.permission_forwarded", "Go to production?", **remote)
    told.tell("channel.disconnected", "Channel lost", {"message": "Connection reset"}, **remote)
    told.wait(25)
    told.tell("channel.resumed", "Channel is back", **remote)
    allowed = {"decision": "allow"}
    told.tell("channel.permission_returned", "Go ahead", allowed, **remote)
    told.tell("subagent.progress", "Watcher: all green", {"message": "0 errors"}, **background)
    told.answer("msg_watch", "Both teammates are on it.")
    told.done()


@story(
    "A subagent with a turn of its own, which is over; the main turn still runs.",
    {
        "status": "running",
        "hydration": "live",
        "counts": {"messages": 4, "parts": 4, "timeline": 6, "nodes": 4, "edges": 3},
        "unfinished": [
            "text:trn_style:msg_style:msg_style%3Atext",
            "turn:trn_style",
        ],
        "conversation": [
            "user: Review the style guide.",
            "assistant (streaming): I asked a specialist. ",
            "user sub_style: Look for contradictions.",
            "assistant sub_style: Rules 4 and 9 contradict each other.",
        ],
        "tasks": {"tsk_style": "completed"},
        "roster": {"sub_style": "subagent completed lineage known"},
    },
)
def subagent_own_turn(told: Recorder) -> None:
    told.ask("trn_style", "Review the style guide.")
    told.stream("msg_style", "I asked a specialist. ")
    own = _member("style", **_thread(told, "style"))
    own |= {"turn_id": "trn_sub_style", "runtime_entity": "subagent_turn"}
    told.tell("subagent.started", "Specialist at work", {"name": "style"}, **own)
    told.tell("turn.submitted", "Asked", {"prompt": "Look for contradictions."}, **own)
    told.tell("turn.started", "Turn started", **own)
    said = {"message_id": "msg_sub_style", **own}
    found = "Rules 4 and 9 contradict each other."
    told.tell("model.delta", "Specialist", {"delta": found}, **said)
    told.tell("model.completed", "Specialist", {"text": found}, **said)
    told.tell("turn.completed", "Turn completed", **own)
    told.tell("task.completed", "Style", task_id="tsk_style")


STORIES = (
    subagents_parallel,
    subagent_own_turn,
    approval_delegated,
    lineage_missing,
    team_at_work,
    teammates_away,
)

"""Teams: parallel subagents, handoff and review, remote teammates, workers that report."""

from typing import Any, Final

from .script import Script, call, fixture

TASK: Final = {"task_id": "tsk_1"}


def _child(script: Script, name: str) -> dict[str, Any]:
    """A subagent on a thread of its own."""
    return {
        "subagent_id": f"sub_{name}",
        "task_id": f"tsk_{name}",
        "thread_id": f"{script.thread_id}_{name}",
        "parent_thread_id": script.thread_id,
    }


@fixture(
    "Two subagents in parallel, each on its own thread: one completes, one fails.",
    "completed",
    parts=5,  # question, two delegating tools, answer; what one subagent said, in its own message
    timeline=12,  # the turn's four, two tasks, two tools, two subagents, two texts
    nodes=8,  # turn, run, two tasks, two tools, two subagents
    subagents={
        "threads": {"sub_a": "completed", "sub_b": "failed"},
        "active": [],
        "handoffs": {},
        "reviews": {},
    },
    diagnostics=[],
)
def parallel_subagents(script: Script) -> None:
    script.begin("Find out why the build is slow.")
    started = {name: _delegate(script, name) for name in "ab"}
    a, b = _child(script, "a"), _child(script, "b")
    script.tell("subagent.started", "A at work", **a)
    script.tell("subagent.started", "B at work", **b)
    message = {"message_id": "msg_a", **a}
    script.tell("model.delta", "A", {"delta": "The cache "}, **message)
    script.tell("subagent.progress", "B: half", {"message": "half of it"}, **b)
    script.tell("model.delta", "A", {"delta": "is cold."}, **message)
    script.tell("model.completed", "A", {"text": "The cache is cold."}, **message)
    left = {"summary": "The cache is cold.", "transcriptRef": "trace:sub-a"}
    script.tell("subagent.completed", "A is done", left, **a)
    script.tell("subagent.failed", "B failed", {"failureCategory": "timeout"}, **b)
    script.tell("task.completed", "Task a", task_id="tsk_a")
    script.tell("task.failed", "Task b", {"failureCategory": "timeout"}, task_id="tsk_b")
    calls = [
        call(
            started[name],
            "output-available",
            script.tell(
                "tool.result", f"Ask {name}", {"summary": "ok"}, tool_call_id=f"call_{name}"
            ),
        )
        for name in "ab"
    ]
    script.say("The cache is cold; ", "b gave up.")
    script.end()
    script.expect_ended(toolCalls=calls)


def _delegate(script: Script, name: str) -> Any:
    task, about = {"task_id": f"tsk_{name}"}, {"tool_call_id": f"call_{name}"}
    script.tell("task.started", f"Task {name}", {"title": f"Task {name}"}, **task)
    started = script.tell("tool.started", f"Ask {name}", {"toolName": "delegate"}, **about)
    member = {"subagent_id": f"sub_{name}", **task, **about}
    script.tell("subagent.spawned", f"Subagent {name}", {"name": name}, **member)
    return started


@fixture(
    "A team: planner hands over to coder, a reviewer asks for evidence and gives a verdict.",
    "completed",
    parts=3,  # question, citation, answer
    timeline=13,  # the turn's four, team twice, task, two members, handoff, evidence, review, text
    nodes=5,  # turn, run, task, two members
    evidence=1,
    subagents={
        "threads": {"sub_planner": "completed", "sub_coder": "completed"},
        "active": [],
        "handoffs": {"hnd_1": "completed"},
        "reviews": {"rev_1": "approved"},
    },
    diagnostics=[],
)
def team_review(script: Script) -> None:
    script.begin("Ship the parser as a team.")
    formed = {"teamName": "parsers", "topology": "coordinator_team", "teamPhase": "acting"}
    script.tell("team.changed", "Team formed", formed)
    script.tell("task.started", "Parser", {"title": "Parser"}, **TASK)
    planner, coder = ({"subagent_id": f"sub_{name}", **TASK} for name in ("planner", "coder"))
    script.tell("subagent.started", "Planner at work", {"name": "planner"}, **planner)
    ends = {"fromAgent": "sub_planner", "toAgent": "sub_coder"}
    for step in ("requested", "accepted"):
        script.tell(f"handoff.{step}", "To the coder", ends, handoff_id="hnd_1", **TASK)
    script.tell("subagent.completed", "Planner is done", **planner)
    script.tell("subagent.started", "Coder at work", {"name": "coder"}, **coder)
    script.tell("handoff.completed", "To the coder", ends, handoff_id="hnd_1", **TASK)
    script.tell("subagent.completed", "Coder is done", **coder)
    trace = {"kind": "review", "summaryRef": "evidence:parser-diff"}
    script.tell("evidence.changed", "Diff", trace, evidence_id="evd_1", **TASK)
    about = {"review_id": "rev_1", "evidence_refs": ("evd_1",), **TASK}
    review = {"reviewer": "sub_reviewer"}
    message = {"message_id": "msg_1"}
    script.tell("review.requested", "Review asked for", review, **about, **message)
    verdict = {"verdict": "approved", "summary": "Fine."}
    script.tell("review.verdict", "Verdict", verdict, **about, **message)
    script.tell("task.completed", "Parser", **TASK)
    script.tell("team.changed", "Team is done", {"teamPhase": "completed"})
    script.say("Reviewed and shipped.")
    script.end()
    script.expect_ended()


@fixture(
    "A teammate in another place: its channel breaks and comes back, its task id is its own.",
    "completed",
    parts=2,
    timeline=11,  # the turn's four, task, four of the channel, member, text
    nodes=4,  # turn, run, task, member
    subagents={
        "threads": {"agt_remote": "completed"},
        "active": [],
        "handoffs": {},
        "reviews": {},
    },
    diagnostics=[],
)
def remote_teammate(script: Script) -> None:
    script.begin("Let the other site deploy.")
    script.tell("task.started", "Deployment", {"title": "Deployment"}, **TASK)
    remote = {
        "subagent_id": "agt_remote",
        "channel_id": "chn_1",
        "remote_task_id": "remote-81",
        "runtime_entity": "external_task",
        "topology": "remote_teammate",
        **TASK,
    }
    script.tell("channel.connected", "Connected", {"name": "deployer"}, **remote)
    script.tell("subagent.started", "Deployer at work", {"name": "deployer"}, **remote)
    script.tell("channel.message", "Says", {"message": "Staging is up."}, **remote)
    script.tell("channel.disconnected", "Channel lost", {"message": "reset"}, **remote)
    script.wait(20)
    script.tell("channel.resumed", "Channel is back", **remote)
    left = {"summary": "Deployed.", "resultRef": "output:deploy-log"}
    script.tell("subagent.completed", "Deployer is done", left, **remote)
    script.tell("task.completed", "Deployment", **TASK)
    script.say("The other site has deployed.")
    script.end()
    script.expect_ended()


@fixture(
    "A worker that reports on the user's channel: a notification, and no message of the user's.",
    "completed",
    parts=2,  # the user's question and the answer, nothing of the worker's
    timeline=8,  # the turn's four, task, worker, notification, text
    nodes=4,  # turn, run, task, worker
    subagents={
        "threads": {"wrk_1": "completed"},
        "active": [],
        "handoffs": {},
        "reviews": {},
    },
    diagnostics=[],
)
def worker_notification(script: Script) -> None:
    script.begin("Test it in the background.")
    script.tell("task.started", "Tests", {"title": "Tests"}, **TASK)
    worker = {"worker_id": "wrk_1", **TASK}
    script.tell("worker.started", "Worker at work", **worker)
    script.tell("worker.completed", "Worker is done", **worker)
    report = {
        "role": "user",
        "message": "All 48 tests pass.",
        "status": "completed",
        "resultRef": "output:tests",
        "transcriptRef": "trace:worker",
    }
    script.tell("worker.notification", "Worker reports", report, **worker)
    script.tell("task.completed", "Tests", **TASK)
    script.say("The tests pass.")
    script.end()
    script.expect_ended()


FIXTURES: Final = (parallel_subagents, team_review, remote_teammate, worker_notification)

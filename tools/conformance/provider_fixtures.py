"""The seven fixtures that every provider's conformance is tried with, by their names.

Counting, here and in the other fixture modules: a turn that begins and ends as `Script` tells it is
four timeline entries (turn, run, model asked, snapshot) and two graph nodes (turn, run); a tool
call, an action, a task, an artifact and so on is one entry each however many facts tell of it.
"""

from typing import Final

from .script import Script, call, fixture, remark

LOG: Final = "output:sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@fixture(
    "A question, its streamed answer and the snapshot after it.",
    "completed",
    parts=2,  # question, answer
    timeline=5,  # turn, run, model asked, text, snapshot
    nodes=2,  # turn, run
    diagnostics=[],
)
def text_basic(script: Script) -> None:
    script.begin("Which versions are supported?")
    script.say("Version 3.11 ", "and ", "later.")
    script.end()
    script.expect_ended()


@fixture(
    "A tool with input, progress and a result whose whole output is behind a ref.",
    "completed",
    parts=3,  # question, tool, answer
    timeline=6,  # the turn's four, tool, text
    nodes=3,  # turn, run, tool
    diagnostics=[],
)
def tool_success(script: Script) -> None:
    script.begin("How many TODOs are left?")
    about = {"tool_call_id": "call_1"}
    started = script.tell("tool.started", "Search", {"toolName": "search"}, **about)
    script.tell("tool.args", "Search", {"args": {"pattern": "TODO"}}, **about)
    script.tell("tool.progress", "Search", {"progress": 0.5, "message": "half of it"}, **about)
    found = {"summary": "42 matches", "outputRef": LOG}
    ended = script.tell("tool.result", "Search", found, ref_ids=(LOG,), **about)
    script.say("42, ", "most of them old.")
    script.end()
    script.expect_ended(toolCalls=[call(started, "output-available", ended, outputRef=LOG)])


@fixture(
    "A tool that fails with a category and a hint; the turn goes on and completes.",
    "completed",
    parts=3,
    timeline=6,
    nodes=3,
    diagnostics=["file_not_found"],
)
def tool_failure(script: Script) -> None:
    script.begin("What does the staging config say?")
    about = {"tool_call_id": "call_1"}
    started = script.tell("tool.started", "Read", {"toolName": "read_file"}, **about)
    why = {"failureCategory": "file_not_found", "recoveryHint": "List the folder first."}
    ended = script.tell("tool.failed", "Read", why, **about)
    script.say("There is no such file.")
    script.end()
    failed = call(started, "output-error", ended, failureCategory="file_not_found")
    script.expect_ended(
        toolCalls=[failed], diagnostics=[remark(ended, "file_not_found", "warning")]
    )


@fixture(
    "A tool that waits for a person, is approved, and only then runs.",
    "completed",
    parts=3,  # question, tool, answer
    timeline=7,  # the turn's four, tool, action, text
    nodes=4,  # turn, run, tool, action
    diagnostics=[],
)
def hitl_action(script: Script) -> None:
    script.begin("Delete the merged branches.")
    about = {"tool_call_id": "call_1"}
    started = script.tell("tool.started", "Delete", {"toolName": "shell"}, **about)
    request = {
        "actionType": "tool_approval",
        "severity": "high",
        "prompt": "Delete 3 remote branches?",
        "options": ["approve", "deny"],
    }
    script.tell("action.required", "Approval required", request, action_id="act_1", **about)
    script.wait(30)
    decision = {"decision": "approved", "decidedBy": "user"}
    script.tell("action.resolved", "Approved", decision, action_id="act_1")
    ended = script.tell("tool.result", "Delete", {"summary": "3 deleted"}, **about)
    script.say("All three are gone.")
    script.end()
    script.expect_ended(toolCalls=[call(started, "output-available", ended)])


@fixture(
    "A tool that makes a report, the report's card, and the evidence that it was checked.",
    "completed",
    parts=5,  # question, tool, card, citation, answer
    timeline=8,  # the turn's four, tool, artifact, evidence, text
    nodes=3,
    artifacts=1,
    evidence=1,
    diagnostics=[],
)
def artifact_evidence(script: Script) -> None:
    script.begin("Write up the load test.")
    about = {"tool_call_id": "call_1"}
    started = script.tell("tool.started", "Write", {"toolName": "write_report"}, **about)
    ended = script.tell(
        "tool.result", "Write", {"summary": "4 pages"}, artifact_id="art_1", **about
    )
    made = {
        "kind": "document",
        "title": "Load test",
        "versionId": "v1",
        "contentRef": "artifact:load-test-v1",
        "previewRef": "artifact:load-test-v1-preview",
    }
    named = {"artifact_id": "art_1", "artifact_refs": ("art_1",)}
    script.tell("artifact.changed", "Report", made, **named, **about)
    checked = {"kind": "verification", "verdict": "passed", "summaryRef": "evidence:load-test"}
    script.tell("evidence.changed", "Checked", checked, evidence_id="evd_1")
    script.say("The report is ready.")
    script.end()
    script.expect_ended(toolCalls=[call(started, "output-available", ended)])


@fixture(
    "A stream that loses two facts, says so, and is mended by a snapshot.",
    "completed",
    parts=2,
    timeline=8,  # the turn's four, text, gap, repair (begun and ended), the snapshot that mends
    nodes=2,
    diagnostics=["stream_gap_reported"],
)
def stream_repair(script: Script) -> None:
    script.begin("Describe the release process.")
    script.stream("msg_1", "Tag the commit, ")
    script.lose(2)
    gap = {"expected": 6, "got": 8, "reason": "two facts are missing"}
    noticed = script.tell("stream.gap.detected", "Gap", gap)
    script.tell("stream.repair.started", "Repairing")
    whole = "Tag the commit, push the tag, then wait."
    rows = [
        {"messageId": "ask_1", "role": "user", "text": "Describe the release process."},
        {"messageId": "msg_1", "role": "assistant", "text": whole},
    ]
    rows = [{**row, "turnId": "trn_1"} for row in rows]
    snapshot = {"fromSequence": 1, "toSequence": 9, "messages": rows}
    script.tell("snapshot.repaired", "Snapshot", snapshot)
    script.tell("stream.repair.completed", "Repaired")
    script.tell("model.completed", "Answer", {"text": whole})
    script.end()
    code = "stream_gap_reported"
    remarked = remark(noticed, code, "warning", diagnosticId=f"{code}:{noticed.id}")
    script.expect_ended(diagnostics=[remarked])


@fixture(
    "Work that one subagent hands to another; neither becomes part of the assistant.",
    "completed",
    parts=5,  # question, delegating tool, answer; the writer's card and citation in its own message
    timeline=12,  # the turn's four, task, tool, two subagents, handoff, artifact, evidence, text
    nodes=6,  # turn, run, task, tool, two subagents
    artifacts=1,
    evidence=1,
    subagents={
        "threads": {"sub_research": "completed", "sub_writer": "completed"},
        "active": [],
        "handoffs": {"hnd_1": "completed"},
        "reviews": {},
    },
    diagnostics=[],
)
def subagent_handoff(script: Script) -> None:
    script.begin("Research the market and write it up.")
    task, delegated = {"task_id": "tsk_1"}, {"tool_call_id": "call_1"}
    research = {"subagent_id": "sub_research", **task}
    writer = {"subagent_id": "sub_writer", **task}
    script.tell("task.started", "Market study", {"title": "Market study"}, **task)
    started = script.tell("tool.started", "Delegate", {"toolName": "delegate"}, **delegated)
    role = {"name": "researcher", "role": "research"}
    script.tell("subagent.spawned", "Researcher", role, **research, **delegated)
    script.tell("subagent.started", "Researcher at work", **research)
    ends = {"fromAgent": "sub_research", "toAgent": "sub_writer", "reason": "sources are found"}
    script.tell("handoff.requested", "To the writer", ends, handoff_id="hnd_1", **task)
    script.tell("subagent.started", "Writer at work", {"name": "writer", "role": "write"}, **writer)
    script.tell("handoff.accepted", "To the writer", ends, handoff_id="hnd_1", **task)
    left = {"summary": "12 sources", "resultRef": "output:sources"}
    script.tell("subagent.completed", "Researcher is done", left, **research)
    script.tell("handoff.completed", "To the writer", ends, handoff_id="hnd_1", **task)
    made = {"kind": "document", "title": "Market study", "contentRef": "artifact:study"}
    script.tell("artifact.changed", "Study", made, artifact_id="art_1", **writer)
    cited = {"kind": "trace", "summaryRef": "evidence:sources"}
    script.tell("evidence.changed", "Sources", cited, evidence_id="evd_1", **writer)
    left = {"summary": "6 pages", "transcriptRef": "trace:writer"}
    refs = {"artifact_refs": ("art_1",), "evidence_refs": ("evd_1",)}
    script.tell("subagent.completed", "Writer is done", left, **writer, **refs)
    script.tell("task.completed", "Market study", **task)
    ended = script.tell("tool.result", "Delegate", {"summary": "done"}, **delegated)
    script.say("The study is ready.")
    script.end()
    script.expect_ended(toolCalls=[call(started, "output-available", ended)])


FIXTURES: Final = (
    text_basic,
    tool_success,
    tool_failure,
    hitl_action,
    artifact_evidence,
    stream_repair,
    subagent_handoff,
)

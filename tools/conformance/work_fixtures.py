"""Work: code that is changed, artifacts, tasks, compaction, shared state, benchmarks."""

from typing import Final

from .script import Script, call, fixture, remark

TESTS: Final = {"testRunId": "tst_1", "command": "make test"}
COMMAND: Final = {"commandId": "cmd_1", "command": "make test"}
PATCH: Final = {"patchId": "pat_1", "paths": ["src/paging.py"]}


@fixture(
    "A bug that is fixed: two files read, one changed by a patch, and all tests pass.",
    "completed",
    parts=3,  # question, the file's card, answer
    timeline=11,  # the turn's four, two reads, patch, change, command, test run, text
    nodes=2,
    artifacts=1,
    coding={
        "files": {
            "src/paging.py": {"reads": 1, "changes": 1},
            "tests/test_paging.py": {"reads": 1, "changes": 0},
        },
        "patches": {"pat_1": "applied"},
        "tests": {"tst_1": "passed"},
        "commands": {"cmd_1": "completed"},
    },
    diagnostics=[],
)
def coding_fixed(script: Script) -> None:
    script.begin("Fix the off-by-one in paging.")
    for path in ("src/paging.py", "tests/test_paging.py"):
        script.tell("file.read", "Read", {"path": path})
    script.tell("patch.started", "Patch", PATCH)
    changed = {"path": "src/paging.py", "change": "modified", "addedLines": 2, "removedLines": 1}
    changed |= {"diffRef": "artifact:paging-diff"}
    script.tell("file.changed", "Changed", changed, artifact_id="art_1")
    script.tell("patch.applied", "Patched", PATCH)
    script.tell("command.started", "make test", COMMAND)
    script.tell("test.started", "Tests", TESTS)
    script.tell(
        "command.output", "make test", {**COMMAND, "text": "48 passed\n"}, ref_ids=("log_1",)
    )
    counted = {**TESTS, "result": "passed", "passed": 48, "failed": 0}
    script.tell("test.completed", "Tests passed", counted)
    script.tell("command.exited", "make test", {**COMMAND, "exitCode": 0})
    script.say("Fixed; ", "all 48 tests pass.")
    script.end()
    script.expect_ended()


@fixture(
    "A fix that does not work: the patch conflicts, tests fail, and the turn says so.",
    "failed",
    parts=2,
    timeline=9,  # the turn's four, read, patch, command, test run, text
    nodes=2,
    coding={
        "files": {"src/paging.py": {"reads": 1, "changes": 0}},
        "patches": {"pat_1": "failed"},
        "tests": {"tst_1": "failed"},
        "commands": {"cmd_1": "failed"},
    },
    diagnostics=[],
)
def coding_failed(script: Script) -> None:
    script.begin("Apply the patch from the ticket.")
    script.tell("file.read", "Read", {"path": "src/paging.py"})
    script.tell("patch.started", "Patch", PATCH)
    script.tell("patch.failed", "Patch failed", {**PATCH, "failureCategory": "conflict"})
    script.tell("command.started", "make test", COMMAND)
    script.tell("test.started", "Tests", TESTS)
    counted = {**TESTS, "result": "failed", "passed": 46, "failed": 2}
    script.tell("test.completed", "Tests failed", counted, status="failed")
    script.tell("command.exited", "make test", {**COMMAND, "exitCode": 1}, status="failed")
    script.say("It does not apply.")
    why = {"failureCategory": "tests_failed", "recoveryHint": "Rebase the patch."}
    script.end("failed", why)
    script.expect_ended("failed", why=why)


@fixture(
    "A report with two versions that is exported; the export is a ref and no content.",
    "completed",
    parts=3,  # question, card, answer
    timeline=6,  # the turn's four, artifact, text
    nodes=2,
    artifacts=1,
    diagnostics=[],
)
def artifact_export(script: Script) -> None:
    script.begin("Export the report.")
    made = {"artifact_id": "art_1"}
    first = {"kind": "document", "title": "Report", "versionId": "v1", "contentRef": "artifact:v1"}
    script.tell("artifact.created", "Report", first, **made)
    second = {"versionId": "v2", "contentRef": "artifact:v2", "diffRef": "artifact:v1-v2"}
    script.tell("artifact.versioned", "Report, version 2", second, **made)
    script.tell("artifact.export.started", "Export", **made)
    script.tell("artifact.export.completed", "Exported", {"exportRef": "artifact:pdf"}, **made)
    script.say("Exported.")
    script.end()
    script.expect_ended()


@fixture(
    "A task that fails once and is tried again; the first attempt is kept.",
    "completed",
    parts=2,
    timeline=8,  # the turn's four, task, two attempts, text
    nodes=5,  # turn, run, task, two attempts
    diagnostics=[],
)
def task_retried(script: Script) -> None:
    script.begin("Migrate the table.")
    task = {"task_id": "tsk_1"}
    script.tell("task.created", "Migration", {"title": "Migration"}, **task)
    script.tell("task.attempt.started", "First attempt", attempt_id="att_1", **task)
    why = {"failureCategory": "timeout"}
    script.tell("task.attempt.failed", "First attempt", why, attempt_id="att_1", **task)
    script.tell("task.retrying", "Migration", {"reason": "timeout"}, **task)
    script.tell("task.attempt.started", "Second attempt", attempt_id="att_2", **task)
    script.tell("task.attempt.completed", "Second attempt", attempt_id="att_2", **task)
    script.tell("task.completed", "Migration", **task)
    script.say("Migrated at the second attempt.")
    script.end()
    script.expect_ended()


@fixture(
    "History that is folded away: a boundary with a summary, and no old thought said again.",
    "completed",
    parts=3,  # question, reasoning, answer
    timeline=8,  # the turn's four, reasoning, compaction, attached context, text
    nodes=2,
    diagnostics=[],
)
def context_compacted(script: Script) -> None:
    script.begin("Go on with the refactoring.")
    script.tell("reasoning.delta", "Thinking", {"delta": "raw thought that nobody sees"})
    script.tell("reasoning.summary", "Thought", {"summary": "Looked at what is left."})
    script.tell("reasoning.completed", "Thought")
    script.tell("context.compaction.started", "Compacting", {"trigger": "usage"})
    folded = {"summary": "Two modules are done.", "tokensBefore": 90_000, "tokensAfter": 4_000}
    script.tell("context.compaction.completed", "Compacted", folded, ref_ids=("raw_1",))
    script.tell("context.attached", "Summary attached", ref_ids=("ctx_1",))
    script.say("One module is left.")
    script.end()
    script.expect_ended()


@fixture(
    "The application's own state: a patch that fits, and one that does not and changes nothing.",
    "completed",
    parts=2,
    timeline=7,  # the turn's four, two patches, text
    nodes=2,
    diagnostics=["state_delta_failed"],
)
def state_delta(script: Script) -> None:
    script.begin("Count the open tickets.")
    fits = [{"op": "add", "path": "/shared/open", "value": 12}]
    script.tell("state.delta", "Tickets", {"patch": fits})
    wrong = [
        {"op": "replace", "path": "/shared/open", "value": 13},
        {"op": "remove", "path": "/shared/closed"},
    ]
    refused = script.tell("state.delta", "Does not fit", {"patch": wrong})
    script.say("Twelve.")
    script.end()
    code = "state_delta_failed"
    script.expect_ended(
        diagnostics=[remark(refused, code, "warning", diagnosticId=f"{code}:{refused.id}")]
    )


@fixture(
    "A benchmark: a trial with its reward, one that failed, and the comparison as evidence.",
    "idle",
    parts=0,
    timeline=6,  # dataset, configuration, two trials, reward, comparison
    nodes=0,
    evidence=1,
    diagnostics=[],
)
def benchmark_trial(script: Script) -> None:
    script.tell("benchmark.dataset.resolved", "Dataset", {"dataset": "bug-fixes"})
    setup = {"model": "large-2"}
    script.tell("benchmark.configuration.resolved", "Configuration", {"configuration": setup})
    first, second = {"trialId": "try_1"}, {"trialId": "try_2"}
    script.tell("benchmark.trial.started", "Trial 1", {**first, "dataset": "bug-fixes"})
    done = {**first, "trajectoryRef": "trace:try-1"}
    script.tell("benchmark.trial.completed", "Trial 1", done)
    script.tell("benchmark.reward.recorded", "Reward", {**first, "reward": 0.75})
    script.tell("benchmark.trial.started", "Trial 2", second)
    script.tell("benchmark.trial.failed", "Trial 2", {**second, "failureCategory": "timeout"})
    compared = {"kind": "benchmark", "title": "This week against last"}
    script.tell("benchmark.comparison.completed", "Compared", compared, evidence_id="evd_1")
    script.final = script.model("idle")


@fixture(
    "A turn that fails: half an answer, an error apart from it, a category and a hint.",
    "failed",
    parts=3,  # question, the cut answer, a way to the error
    timeline=6,  # the turn's four, text, error
    nodes=2,
    diagnostics=["provider_unavailable"],
)
def turn_failed(script: Script) -> None:
    script.begin("Summarise the meeting.")
    script.stream("msg_1", "The meeting ")
    code = "provider_unavailable"
    diagnostic = {"code": code, "message": "No answer for 30 seconds.", "rawRef": "raw:reply"}
    error = script.tell("runtime.error", "Provider unavailable", diagnostic)
    why = {"failureCategory": code, "recoveryHint": "Try again in a minute."}
    script.end("failed", why)
    noted = remark(error, code, "error", message=diagnostic["message"])
    script.expect_ended("failed", why=why, diagnostics=[noted], incidents=[noted])


@fixture(
    "A turn that its user stops while a tool runs: tool and answer are shown as stopped.",
    "canceled",
    parts=3,
    timeline=6,  # the turn's four, text, tool
    nodes=3,
    diagnostics=[],
)
def turn_canceled(script: Script) -> None:
    script.begin("Scan everything.")
    script.stream("msg_1", "I start with ")
    about = {"tool_call_id": "call_1"}
    started = script.tell("tool.started", "Scan", {"toolName": "scan"}, **about)
    why = {"failureCategory": "user_cancelled"}
    ended = script.tell("tool.failed", "Scan", why, **about)
    script.end("canceled")
    script.expect_ended("canceled", toolCalls=[call(started, "cancelled", ended, **why)])


FIXTURES: Final = (
    coding_fixed,
    coding_failed,
    artifact_export,
    task_retried,
    context_compacted,
    state_delta,
    benchmark_trial,
    turn_failed,
    turn_canceled,
)

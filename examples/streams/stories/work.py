"""Work: artifacts, evidence, benchmarks, and what is done to a code base."""

from .recorder import Recorder, story


@story(
    "A report with three versions, a preview, a diff and a finished export.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {
            "messages": 2,
            "parts": 4,
            "timeline": 4,
            "nodes": 2,
            "edges": 1,
            "artifacts": 1,
        },
        "conversation": [
            "user: Write up last night's load test.",
            (
                "assistant: tool call_load output-available | artifact art_load v3 | "
                "The report is ready."
            ),
        ],
        "tools": {"call_load": "output-available"},
        "artifacts": {"art_load": "document updated v3 completed"},
    },
)
def artifact_versions(told: Recorder) -> None:
    told.ask("trn_load", "Write up last night's load test.")
    made = {"artifact_id": "art_load"}
    call = {"tool_call_id": "call_load", **made}
    told.use("call_load", "write_report", "Write the report", "4 pages", **made)
    first = {"kind": "document", "title": "Load test", "versionId": "v1"}
    told.tell("artifact.created", "Report created", first, **call)
    told.tell("artifact.updated", "Report updated", {"versionId": "v2"}, **made)
    third = {"versionId": "v3", "contentRef": "artifact:load-test-v3"}
    told.tell("artifact.versioned", "Report, version 3", third, **made)
    preview = {"versionId": "v3", "previewRef": "artifact:load-test-v3-preview"}
    told.tell("artifact.preview.ready", "Preview ready", preview, **made)
    diff = {"versionId": "v3", "diffRef": "artifact:load-test-v2-v3"}
    told.tell("artifact.diff.ready", "Diff ready", diff, **made)
    told.tell("artifact.export.started", "Export to PDF", **made)
    exported = {"exportRef": "artifact:load-test-pdf"}
    told.tell("artifact.export.completed", "Exported to PDF", exported, **made)
    told.answer("msg_load", "The report is ready.")
    told.done()


@story(
    "Four artifacts in trouble or on the way: exporting, failed, deleted, of unknown kind.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {
            "messages": 2,
            "parts": 6,
            "timeline": 6,
            "nodes": 1,
            "artifacts": 4,
        },
        "conversation": [
            "user: Export all the figures.",
            (
                "assistant: artifact art_chart v1 | artifact art_table | artifact art_draft | "
                "artifact art_blob | One export is still running."
            ),
        ],
        "artifacts": {
            "art_chart": "image created v1 running",
            "art_table": "table failed failed",
            "art_draft": "document deleted completed",
            "art_blob": "unknown changed",
        },
    },
)
def artifact_troubles(told: Recorder) -> None:
    told.ask("trn_figures", "Export all the figures.")
    chart, table, draft = ({"artifact_id": f"art_{name}"} for name in ("chart", "table", "draft"))
    told.tell("artifact.created", "Chart", {"kind": "image", "versionId": "v1"}, **chart)
    told.tell("artifact.export.started", "Export the chart", **chart)
    told.tell("artifact.changed", "Table", {"kind": "table"}, **table)
    told.tell("artifact.export.started", "Export the table", **table)
    broken = {"failureCategory": "renderer_failed", "message": "A column has no type."}
    told.tell("artifact.failed", "Export failed", broken, **table)
    told.tell("artifact.created", "Draft", {"kind": "document"}, **draft)
    told.tell("artifact.exported", "Draft exported", {"exportRef": "artifact:draft-pdf"}, **draft)
    told.tell("artifact.deleted", "Draft deleted", **draft)
    told.tell("artifact.changed", "Something was made", artifact_refs=("art_blob",))
    told.answer("msg_figures", "One export is still running.")
    told.done()


@story(
    "An answer with its sources: a citation, a check with its verdict, a review, an export.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {
            "messages": 2,
            "parts": 4,
            "timeline": 5,
            "nodes": 1,
            "evidence": 2,
        },
        "conversation": [
            "user: Is the retry limit documented?",
            (
                "assistant: Yes, in the operations guide. | evidence evd_guide | "
                "evidence evd_limit accepted"
            ),
        ],
        "evidence": {
            "evd_guide": "citation available",
            "evd_limit": "verification exported accepted",
        },
        "reviews": {"rev_limit": "completed accepted reviewer-1"},
    },
)
def evidence_reviewed(told: Recorder) -> None:
    told.ask("trn_retry", "Is the retry limit documented?")
    told.answer("msg_retry", "Yes, in the operations guide.")
    source = {"kind": "citation", "title": "Operations guide, limits", "url": "docs/limits.md"}
    told.tell("evidence.changed", "Cited", source, evidence_id="evd_guide")
    check = {"kind": "verification", "verdict": "passed", "summary": "The test sends 6 requests."}
    told.tell("evidence.changed", "Checked", check, evidence_id="evd_limit")
    about = {"evidence_id": "evd_limit", "review_id": "rev_limit"}
    told.tell("review.requested", "Review asked for", {"reviewer": "reviewer-1"}, **about)
    told.wait(90)
    told.tell("review.verdict", "Verdict", {"verdict": "accepted"}, **about)
    told.tell("review.completed", "Review completed", **about)
    pack = {"exportRef": "evidence:retry-limit-pack"}
    told.tell("evidence.exported", "Evidence exported", pack, evidence_id="evd_limit")
    told.done()


@story(
    "A benchmark: one trial with a reward, one that failed, and the comparison.",
    {
        "status": "idle",
        "hydration": "live",
        "counts": {"timeline": 6, "evidence": 1},
        "evidence": {"evd_bench": "benchmark available"},
        "trials": {"trial_1": "completed 0.75", "trial_2": "failed timeout"},
    },
)
def benchmark_trials(told: Recorder) -> None:
    told.tell("benchmark.dataset.resolved", "Dataset", {"dataset": "bug-fixes-small"})
    setup = {"model": "large-2", "effort": "high"}
    told.tell("benchmark.configuration.resolved", "Configuration", {"configuration": setup})
    first = {"trialId": "trial_1", "dataset": "bug-fixes-small", "task": "off-by-one"}
    told.tell("benchmark.trial.started", "Trial 1", first)
    done = {"trialId": "trial_1", "trajectoryRef": "trace:trial-1"}
    told.tell("benchmark.trial.completed", "Trial 1 completed", done)
    told.tell("benchmark.reward.recorded", "Reward", {"trialId": "trial_1", "reward": 0.75})
    told.tell("benchmark.trial.started", "Trial 2", {"trialId": "trial_2", "task": "race"})
    failed = {"trialId": "trial_2", "failureCategory": "timeout"}
    told.tell("benchmark.trial.failed", "Trial 2 failed", failed)
    told.tell(
        "benchmark.comparison.completed",
        "Compared with last week",
        {"kind": "benchmark", "title": "Week 24 against week 23"},
        evidence_id="evd_bench",
    )


@story(
    "A bug fixed in code: files read and changed, a patch applied, a command, passing tests.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {
            "messages": 2,
            "parts": 3,
            "timeline": 8,
            "nodes": 1,
            "artifacts": 1,
        },
        "conversation": [
            "user: Fix the off-by-one in paging.",
            "assistant: artifact art_paging | Fixed; all 48 tests pass.",
        ],
        "artifacts": {"art_paging": "file changed"},
        "files": {
            "src/paging.py": "read 1, changed 1, +2 -1",
            "tests/test_paging.py": "read 1, changed 0, +0 -0",
        },
        "patches": {"pat_paging": "applied"},
        "tests": {"test_paging": "passed 48 0"},
        "processes": {"cmd_paging": "completed 0 10 bytes"},
    },
)
def coding_fixed(told: Recorder) -> None:
    told.ask("trn_paging", "Fix the off-by-one in paging.")
    told.tell("file.read", "Read src/paging.py", {"path": "src/paging.py"})
    told.tell("file.read", "Read the tests", {"path": "tests/test_paging.py"})
    patch = {"patchId": "pat_paging", "paths": ["src/paging.py"]}
    told.tell("patch.started", "Patch paging", patch)
    changed = {"path": "src/paging.py", "change": "modified", "addedLines": 2, "removedLines": 1}
    told.tell("file.changed", "Changed src/paging.py", changed, artifact_id="art_paging")
    told.tell("patch.applied", "Patched", patch)
    command = {"commandId": "cmd_paging", "command": "make test"}
    told.tell("command.started", "make test", command)
    run = {"testRunId": "test_paging", "command": "make test"}
    told.tell("test.started", "Tests", run)
    log = ("output:paging-tests",)
    told.tell("command.output", "make test", {**command, "text": "48 passed\n"}, ref_ids=log)
    counted = {**run, "result": "passed", "passed": 48, "failed": 0}
    told.tell("test.completed", "Tests passed", counted)
    told.tell("command.exited", "make test", {**command, "exitCode": 0})
    told.answer("msg_paging", "Fixed; all 48 tests pass.")
    told.done()


@story(
    "A fix that did not work: the patch conflicts, the tests fail, the command says so.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 5, "nodes": 1},
        "conversation": [
            "user: Apply the patch from the ticket.",
            "assistant: It does not apply; 2 tests fail without it.",
        ],
        "patches": {"pat_ticket": "failed conflict"},
        "tests": {"test_ticket": "failed 46 2"},
        "processes": {"cmd_ticket": "failed 1 0 bytes"},
    },
)
def coding_failed(told: Recorder) -> None:
    told.ask("trn_ticket", "Apply the patch from the ticket.")
    told.tell("patch.started", "Patch", {"patchId": "pat_ticket", "paths": ["src/io.py"]})
    conflict = {"failureCategory": "conflict", "message": "src/io.py changed in line 40."}
    told.tell("patch.failed", "Patch failed", {"patchId": "pat_ticket", **conflict})
    command = {"commandId": "cmd_ticket", "command": ["pytest", "-q"]}
    told.tell("command.started", "pytest -q", command)
    told.tell("test.started", "Tests", {"testRunId": "test_ticket"})
    counted = {"testRunId": "test_ticket", "status": "failed", "passed": 46, "failed": 2}
    told.tell("test.completed", "Tests failed", counted, status="failed")
    ended = {"commandId": "cmd_ticket", "exitCode": 1}
    told.tell("command.exited", "pytest -q", ended, status="failed")
    told.answer("msg_ticket", "It does not apply; ", "2 tests fail without it.")
    told.done()


@story(
    "Programs and hooks: a server that was stopped, a build that ended, a hook that said no.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 7, "nodes": 1},
        "conversation": [
            "user: Try the build.",
            "assistant: It builds; the size check complains.",
        ],
        "processes": {
            "prc_server": "terminated 8 bytes",
            "prc_build": "completed 0 6 bytes",
            "prc_pack": "failed 2 0 bytes",
        },
        "hooks": {"hook_format": "completed allow 0", "hook_size": "failed block 1"},
        "diagnostics": ["warning hook.failed"],
    },
)
def hooks_and_processes(told: Recorder) -> None:
    told.ask("trn_build", "Try the build.")
    server, build, pack = ({"process_id": f"prc_{name}"} for name in ("server", "build", "pack"))
    told.tell("hook.started", "Format", {"hookId": "hook_format", "hookName": "format"})
    told.tell("hook.progress", "Format", {"hookId": "hook_format", "message": "12 files"})
    told.tell(
        "hook.completed",
        "Format",
        {"hookId": "hook_format", "outcome": "allow", "exitCode": 0},
    )
    told.tell("process.started", "Preview server", {"command": "make serve"}, **server)
    told.tell("process.output", "Preview server", {"text": "ready\r\n\n"}, **server)
    told.tell("process.input", "Preview server", {"text": "q"}, **server)
    told.tell("process.terminated", "Preview server", {"signal": "SIGTERM"}, **server)
    told.tell("process.started", "Build", {"command": "make build"}, **build)
    told.tell("process.output", "Build", {"text": "done\n\n", "offset": 0}, **build)
    told.tell("process.completed", "Build", {"exitCode": 0}, **build)
    told.tell("process.started", "Pack", {"command": "make pack"}, **pack)
    told.tell("process.failed", "Pack", {"exitCode": 2, "failureCategory": "exit_code"}, **pack)
    blocked = {"hookId": "hook_size", "hookName": "size", "outcome": "block", "exitCode": 1}
    told.tell("hook.failed", "Size", {**blocked, "message": "The bundle grew by 40 %."})
    told.answer("msg_build", "It builds; ", "the size check complains.")
    told.done()


STORIES = (
    artifact_versions,
    artifact_troubles,
    evidence_reviewed,
    benchmark_trials,
    coding_fixed,
    coding_failed,
    hooks_and_processes,
)

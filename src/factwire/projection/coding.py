"""Coding: programs, hooks, files, patches and test runs in a workspace.

Output is shown as far as there is room, with the byte offset from which a log is read for the
rest. Each thing is known by its own id; a path is a path in the workspace.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.payloads import (
    FileChangePayload,
    HookPayload,
    PatchPayload,
    ProcessPayload,
    TestRunPayload,
)
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import number_at, text_at
from factwire.facts.limits import SEQUENCE_MAX
from factwire.facts.outcomes import bad_end
from factwire.facts.refs import ref_at, refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.artifacts import artifact_ids, set_diff
from factwire.projection.limits import OUTPUT_CHARACTERS
from factwire.projection.payload_fields import (
    other_id,
    read_payload,
    shorten_detail,
    subagent_of,
    tool_of,
    turn_of,
)
from factwire.projection.views import Text, View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


PROCESSES_PATH: Final = "/processes"
HOOKS_PATH: Final = "/hooks"

_PROCESS_STATES: Final = {
    "process.started": "running",
    "process.completed": "completed",
    "process.failed": "failed",
    "process.terminated": "terminated",
    "command.started": "running",
    "command.exited": "exited",
}
_HOOK_STATES: Final = {
    "hook.started": "running",
    "hook.progress": "running",
    "hook.completed": "completed",
    "hook.failed": "failed",
}


class Process(View):
    """One program: a process of the runtime, or a command that a tool ran. Of its `output_bytes`,
    `stderr_bytes` came on stderr.
    """

    process_id: str
    kind: str
    status: str
    output: Text
    output_bytes: int
    command: Any = None
    cwd: str | None = None
    exit_code: int | None = None
    signal: str | int | None = None
    truncated: bool | None = None
    stderr_bytes: int | None = None
    output_ref: str | None = None
    refs: list[str] | None = None
    failure_category: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    subagent_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class Hook(View):
    """One run of a hook."""

    hook_id: str
    status: str
    hook_name: str | None = None
    hook_event: str | None = None
    outcome: str | None = None
    exit_code: int | None = None
    message: str | None = None
    refs: list[str] | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


def update_process(draft: "StateDraft", fact: Fact) -> None:
    """process.* and command.*."""
    key = process_of(fact)
    if key is None:
        return
    process, path = _ensure_process(draft, fact, key)
    payload, name = read_payload(fact, ProcessPayload), fact.event_class or ""
    state, snake = _PROCESS_STATES.get(name), fact.payload.get("exit_code")
    if state == "completed":
        state = bad_end(fact) or state
    code = snake if payload.exit_code is None and type(snake) is int else payload.exit_code
    if state == "running":
        for field in ("exit_code", "signal", "failure_category", "completed_at"):
            draft.put(process, path, field, None)
        draft.put(process, path, "started_at", fact.created_at)
        draft.fill(process, path, turn_id=turn_of(fact))
    draft.fill(
        process,
        path,
        status=_exit_status(fact, payload, code) if name == "command.exited" else state,
        command=payload.command,
        cwd=payload.cwd,
        exit_code=code,
        signal=payload.signal,
        truncated=payload.truncated,
        output_ref=ref_at(fact.payload, "outputRef"),
        failure_category=payload.failure_category,
        completed_at=fact.created_at if state not in (None, "running") else None,
    )
    draft.extend(process, path, "refs", refs_of(fact))
    if state not in (None, "running") and isinstance(fact.payload.get("delta"), str):
        add_output(draft, fact)
    draft.memory.track_work(process.kind, key, is_open=process.status == "running")


def add_output(draft: "StateDraft", fact: Fact) -> None:
    """A piece of output; `offset` tells where in its stream it is."""
    key = process_of(fact)
    if key is None:
        return
    process, path = _ensure_process(draft, fact, key)
    piece = text_at(fact.payload, "text", "delta") or ""
    offset = number_at(fact.payload, "offset")
    is_stderr = fact.payload.get("stream") == "stderr"
    errors = process.stderr_bytes or 0
    before = errors if is_stderr else process.output_bytes - errors
    start = before
    if offset is not None and 0 <= offset <= SEQUENCE_MAX:
        start = int(offset)
    added = max(0, start + len(piece.encode("utf-8", "surrogatepass")) - before)
    draft.put(process, path, "output_bytes", process.output_bytes + added)
    if is_stderr:
        draft.put(process, path, "stderr_bytes", errors + added)
    remaining = OUTPUT_CHARACTERS - process.output.length
    if piece and remaining > 0:
        draft.grow(process.output, f"{path}/output", piece[:remaining])
    if len(piece) > remaining or fact.payload.get("truncated") is True:
        draft.put(process, path, "truncated", value=True)
    refs = refs_of(fact)
    if refs:
        draft.fill(process, path, output_ref=ref_at(fact.payload, "outputRef") or refs[0])
        draft.extend(process, path, "refs", refs)


def process_of(fact: Fact) -> str | None:
    """Which program a fact is about."""
    name = fact.event_class or ""
    if name.startswith("command."):
        return text_at(fact.payload, "commandId", "command_id") or tool_of(fact)
    return fact.process_id or other_id(fact, "processId", "process_id") or tool_of(fact)


def record_hook(draft: "StateDraft", fact: Fact) -> None:
    payload, name = read_payload(fact, HookPayload), fact.event_class or ""
    key = payload.hook_id or fact.id
    hooks, path = draft.state.hooks, f"{HOOKS_PATH}/{escape_key(key)}"
    if key not in hooks:
        hook = Hook(hook_id=key, status=UNKNOWN, tool_call_id=tool_of(fact), turn_id=turn_of(fact))
        draft.create(hooks, HOOKS_PATH, key, hook)
    state = _HOOK_STATES[name]
    if state == "completed":
        state = bad_end(fact) or state
    draft.put(hooks[key], path, "status", state)
    if name == "hook.started":
        for field in ("outcome", "exit_code", "message", "completed_at"):
            draft.put(hooks[key], path, field, None)
        draft.put(hooks[key], path, "started_at", fact.created_at)
        draft.fill(hooks[key], path, turn_id=turn_of(fact))
    draft.fill(
        hooks[key],
        path,
        hook_name=payload.hook_name,
        hook_event=payload.hook_event,
        outcome=payload.outcome,
        exit_code=payload.exit_code,
        message=payload.message,
        completed_at=None if state == "running" else fact.created_at,
    )
    draft.extend(hooks[key], path, "refs", refs_of(fact))
    draft.memory.track_work("hook", key, is_open=state == "running")


def _ensure_process(draft: "StateDraft", fact: Fact, key: str) -> tuple[Process, str]:
    path = f"{PROCESSES_PATH}/{escape_key(key)}"
    existing = draft.state.processes.get(key)
    if existing is not None:
        return existing, path
    process = Process(
        process_id=key,
        kind=(fact.event_class or "").partition(".")[0],
        status=UNKNOWN,
        output=Text(),
        output_bytes=0,
        tool_call_id=tool_of(fact),
        turn_id=turn_of(fact),
        subagent_id=subagent_of(fact),
    )
    return draft.create(draft.state.processes, PROCESSES_PATH, key, process), path


def _exit_status(fact: Fact, payload: ProcessPayload, code: int | None) -> str:
    if code is None:
        return payload.status or bad_end(fact) or "exited"
    return (bad_end(fact) or "completed") if code == 0 else "failed"


CODING_PATH: Final = "/coding"

_PATCH_STATUS: Final = {
    "patch.started": "running",
    "patch.applied": "applied",
    "patch.failed": "failed",
}


class File(View):
    """One file of the workspace, as far as facts touched it, with the last diff of it."""

    path: str
    reads: int
    changes: int
    added_lines: int
    removed_lines: int
    change: str | None = None
    diff: str | None = None
    diff_ref: str | None = None
    diff_truncated: bool | None = None
    refs: list[str] | None = None
    artifact_id: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    updated_at: str | None = None


class Patch(View):
    """One set of changes, applied as a whole or not at all."""

    patch_id: str
    status: str
    paths: list[str] | None = None
    diff: str | None = None
    diff_ref: str | None = None
    diff_truncated: bool | None = None
    refs: list[str] | None = None
    failure_category: str | None = None
    message: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class TestRun(View):
    """One run of tests."""

    __test__ = False

    test_run_id: str
    status: str
    command: str | None = None
    result: Any = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    refs: list[str] | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class Coding(View):
    """What was done to a workspace."""

    files: dict[str, File]
    patches: dict[str, Patch]
    tests: dict[str, TestRun]


def empty_coding() -> Coding:
    return Coding(files={}, patches={}, tests={})


def record_file(draft: "StateDraft", fact: Fact) -> None:
    payload = read_payload(fact, FileChangePayload)
    if payload.path is None:
        return
    files, path = draft.state.coding.files, f"{CODING_PATH}/files/{escape_key(payload.path)}"
    if payload.path not in files:
        file = File(path=payload.path, reads=0, changes=0, added_lines=0, removed_lines=0)
        draft.create(files, f"{CODING_PATH}/files", payload.path, file)
    file, changed = files[payload.path], fact.event_class == "file.changed"
    draft.count(file, path, "changes" if changed else "reads")
    draft.count(file, path, "added_lines", payload.added_lines or 0)
    draft.count(file, path, "removed_lines", payload.removed_lines or 0)
    made = artifact_ids(fact)
    draft.fill(
        file,
        path,
        change=payload.change if changed else None,
        artifact_id=made[0] if made else None,
        tool_call_id=tool_of(fact),
        turn_id=turn_of(fact),
        updated_at=fact.created_at,
    )
    set_diff(draft, file, path, fact)
    draft.extend(file, path, "refs", refs_of(fact))


def record_patch(draft: "StateDraft", fact: Fact) -> None:
    payload, name = read_payload(fact, PatchPayload), fact.event_class or ""
    key = text_at(fact.payload, "patchId", "patch_id") or tool_of(fact) or ""
    patches, path = draft.state.coding.patches, f"{CODING_PATH}/patches/{escape_key(key)}"
    if key not in patches:
        patch = Patch(
            patch_id=key, status=UNKNOWN, tool_call_id=tool_of(fact), turn_id=turn_of(fact)
        )
        draft.create(patches, f"{CODING_PATH}/patches", key, patch)
    state = _PATCH_STATUS[name]
    if state == "applied":
        state = bad_end(fact) or state
    draft.put(patches[key], path, "status", state)
    if state == "running":
        for field in ("failure_category", "message", "completed_at"):
            draft.put(patches[key], path, field, None)
        draft.put(patches[key], path, "started_at", fact.created_at)
        draft.fill(patches[key], path, turn_id=turn_of(fact))
    draft.fill(
        patches[key],
        path,
        paths=payload.paths,
        failure_category=text_at(fact.payload, "failureCategory", "failure_category"),
        message=shorten_detail(payload.message),
        completed_at=None if state == "running" else fact.created_at,
    )
    set_diff(draft, patches[key], path, fact)
    draft.extend(patches[key], path, "refs", refs_of(fact))
    draft.memory.track_work("patch", key, is_open=state == "running")


def record_test_run(draft: "StateDraft", fact: Fact) -> None:
    payload, started = read_payload(fact, TestRunPayload), fact.event_class == "test.started"
    key = text_at(fact.payload, "testRunId", "test_run_id") or tool_of(fact) or ""
    tests, path = draft.state.coding.tests, f"{CODING_PATH}/tests/{escape_key(key)}"
    if key not in tests:
        run = TestRun(
            test_run_id=key, status=UNKNOWN, tool_call_id=tool_of(fact), turn_id=turn_of(fact)
        )
        draft.create(tests, f"{CODING_PATH}/tests", key, run)
    status = "running" if started else _test_outcome(fact, payload)
    draft.put(tests[key], path, "status", status)
    if started:
        draft.put(tests[key], path, "started_at", fact.created_at)
        draft.fill(tests[key], path, turn_id=turn_of(fact))
        for field in ("result", "passed", "failed", "skipped", "completed_at"):
            draft.put(tests[key], path, field, None)
    draft.fill(
        tests[key],
        path,
        command=payload.command,
        result=payload.result,
        passed=payload.passed,
        failed=payload.failed,
        skipped=payload.skipped,
        completed_at=None if started else fact.created_at,
    )
    draft.extend(tests[key], path, "refs", refs_of(fact))
    draft.memory.track_work("test", key, is_open=status == "running")


def _test_outcome(fact: Fact, payload: TestRunPayload) -> str:
    """How a run ended, as it says itself; counts decide only where there is no word."""
    if isinstance(payload.result, str):
        return payload.result if payload.result != "passed" else bad_end(fact) or "passed"
    if payload.status is not None:
        return payload.status
    if payload.failed is None:
        return bad_end(fact) or UNKNOWN
    return "failed" if payload.failed else "passed"


Work = Process | Hook | Patch | TestRun


def open_work(draft: "StateDraft") -> list[tuple[str, str]]:
    """Kind and id of every program, patch, test run and hook that goes on."""
    return [
        (kind, key)
        for kind, keys in draft.memory.open_work.items()
        for key in sorted(keys)
        if find_work(draft, kind, key).status == "running"
    ]


def find_work(draft: "StateDraft", kind: str, key: str) -> Work:
    """A program, patch, test run or hook by its id."""
    return _work_tables(draft)[kind][0][key]


def end_work(
    draft: "StateDraft", kind: str, key: str, status: str, completed_at: str | None
) -> None:
    """End what a turn or a call that is over cut off."""
    table, path = _work_tables(draft)[kind]
    work, place = table[key], f"{path}/{escape_key(key)}"
    draft.put(work, place, "status", status)
    draft.put(work, place, "completed_at", completed_at)
    draft.memory.track_work(kind, key, is_open=False)


def _work_tables(draft: "StateDraft") -> dict[str, tuple[Mapping[str, Work], str]]:
    state = draft.state
    return {
        "process": (state.processes, PROCESSES_PATH),
        "command": (state.processes, PROCESSES_PATH),
        "patch": (state.coding.patches, f"{CODING_PATH}/patches"),
        "test": (state.coding.tests, f"{CODING_PATH}/tests"),
        "hook": (state.hooks, HOOKS_PATH),
    }

"""Coding: files that were read and changed, patches, and test runs.

Commands are processes. Each thing is known by its own id; a path is a path in the workspace.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import FileChange
from factwire.facts.payloads import Patch as PatchPayload
from factwire.facts.payloads import TestRun as TestPayload
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.artifacts import artifact_ids
from factwire.projection.pointers import escaped
from factwire.projection.reading import detail_of, read, ref_text, tool_of, turn_of, word
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/coding"

_PATCHES: Final = {"patch.started": "running", "patch.applied": "applied", "patch.failed": "failed"}


class File(View):
    """One file of the workspace, as far as facts touched it."""

    path: str
    reads: int
    changes: int
    added_lines: int
    removed_lines: int
    change: str | None = None
    diff_ref: str | None = None
    artifact_id: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    updated_at: str | None = None


class Patch(View):
    """One set of changes, applied as a whole or not at all."""

    patch_id: str
    status: str
    paths: list[str] | None = None
    diff_ref: str | None = None
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
    tool_call_id: str | None = None
    turn_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class Coding(View):
    """What was done to a workspace."""

    files: dict[str, File]
    patches: dict[str, Patch]
    tests: dict[str, TestRun]


def nothing() -> Coding:
    return Coding(files={}, patches={}, tests={})


def file_touched(canvas: "Canvas", fact: Fact) -> None:
    said = read(fact, FileChange)
    if said.path is None:
        return
    files, path = canvas.state.coding.files, f"{PATH}/files/{escaped(said.path)}"
    if said.path not in files:
        file = File(path=said.path, reads=0, changes=0, added_lines=0, removed_lines=0)
        canvas.create(files, f"{PATH}/files", said.path, file)
    file, changed = files[said.path], fact.event_class == "file.changed"
    canvas.count(file, path, "changes" if changed else "reads")
    canvas.count(file, path, "added_lines", said.added_lines or 0)
    canvas.count(file, path, "removed_lines", said.removed_lines or 0)
    made = artifact_ids(fact)
    canvas.fill(
        file,
        path,
        change=said.change if changed else None,
        diff_ref=ref_text(said.diff_ref),
        artifact_id=made[0] if made else None,
        tool_call_id=tool_of(fact),
        turn_id=turn_of(fact),
        updated_at=fact.created_at,
    )


def patched(canvas: "Canvas", fact: Fact) -> None:
    said, name = read(fact, PatchPayload), fact.event_class or ""
    key = word(fact.payload, "patchId", "patch_id") or tool_of(fact) or ""
    patches, path = canvas.state.coding.patches, f"{PATH}/patches/{escaped(key)}"
    if key not in patches:
        patch = Patch(
            patch_id=key,
            status=UNKNOWN,
            tool_call_id=tool_of(fact),
            turn_id=turn_of(fact),
            started_at=fact.created_at,
        )
        canvas.create(patches, f"{PATH}/patches", key, patch)
    state = _PATCHES[name]
    canvas.put(patches[key], path, "status", state)
    if state == "running":
        for field in ("failure_category", "message", "completed_at"):
            canvas.put(patches[key], path, field, None)
    canvas.fill(
        patches[key],
        path,
        paths=said.paths,
        diff_ref=ref_text(said.diff_ref),
        failure_category=word(fact.payload, "failureCategory", "failure_category"),
        message=detail_of(said.message),
        completed_at=None if state == "running" else fact.created_at,
    )


def tested(canvas: "Canvas", fact: Fact) -> None:
    said, started = read(fact, TestPayload), fact.event_class == "test.started"
    key = word(fact.payload, "testRunId", "test_run_id") or tool_of(fact) or ""
    tests, path = canvas.state.coding.tests, f"{PATH}/tests/{escaped(key)}"
    if key not in tests:
        run = TestRun(
            test_run_id=key,
            status=UNKNOWN,
            tool_call_id=tool_of(fact),
            turn_id=turn_of(fact),
            started_at=fact.created_at,
        )
        canvas.create(tests, f"{PATH}/tests", key, run)
    canvas.put(tests[key], path, "status", "running" if started else _outcome(said))
    if started:
        for field in ("result", "passed", "failed", "skipped", "completed_at"):
            canvas.put(tests[key], path, field, None)
    canvas.fill(
        tests[key],
        path,
        command=said.command,
        result=said.result,
        passed=said.passed,
        failed=said.failed,
        skipped=said.skipped,
        completed_at=None if started else fact.created_at,
    )


def _outcome(said: TestPayload) -> str:
    """How a run ended, as it says itself; counts decide only where there is no word."""
    if isinstance(said.result, str):
        return said.result
    if said.status is not None:
        return said.status
    return UNKNOWN if said.failed is None else ("failed" if said.failed else "passed")

"""What a run changed in its worktree, recorded once it has ended, and merged once somebody asks.

The diff is a blob that a fact of the run's thread names, so that it is mirrored, kept, exported and
removed with the thread. Secrets are redacted in it as in every fact. Whoever asks again is told
what was recorded, however the folder looks by then, also where nothing was changed. That git could
not tell is no record: whoever asks again has it tried again.

Of a merge, a note says what is about to happen before anything does, and is taken away once a fact
says what came of it. A note that is found at the start of an Edge, or by the next request, is of a
merge that was cut short: it is brought to its end if the branch was moved, and else it never was.
While that cannot be done, the note stays. Nothing is removed but the
worktree of what was merged, after the fact is on disk.
"""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import LINK_DIFF_BYTES, LINK_FILES_BYTES
from factwire.edge.operations import preview_operations, run_operations, worktree_operations
from factwire.facts import Person, redact_text
from factwire.facts.resources import ChangedFile, Run, RunMerge, RunWorktree, TaskChanges, TaskFile
from factwire.journal import Filter
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.errors import WorkspaceNotAllowed
from factwire.runtime.sandbox import (
    MergeAuthor,
    MergeConflicts,
    MergePlan,
    MergeRefused,
    MergeUnfinished,
    NoRepository,
    Worktree,
    complete_merge,
    merge_worktree,
)
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger

DIFF_READY: Final = "artifact.diff.ready"
_TRACE_DIGITS: Final = 32


def name_artifact(run_id: str) -> str:
    """The artifact that the changes of a run are."""
    return f"changes_{run_id}"


def name_trace(run_id: str) -> str:
    return sha256(run_id.encode()).hexdigest()[:_TRACE_DIGITS]


async def report_changes(edge: EdgeContext, run: Run) -> tuple[TaskChanges, str]:
    """What a run that has ended changed, and the beginning of the diff."""
    if run.worktree is None:
        reason = await worktree_operations.describe_missing_worktree(edge, run)
        return TaskChanges(available=False, reason=reason), ""
    recorded = await find_record(edge, run, DIFF_READY, "changes")
    if recorded is None:
        changes = await _record_changes(edge, run)
    else:
        changes = msgspec.convert(recorded, TaskChanges)
    if changes.diff_ref is None:
        return changes, ""
    pieces = [piece async for piece in edge.blobs.get(changes.diff_ref, end=LINK_DIFF_BYTES)]
    return changes, b"".join(pieces).decode("utf-8", "ignore")


async def find_record(edge: EdgeContext, run: Run, class_: str, name: str) -> Any:
    """A value that a fact of a class says about the changes of a run, if there is one."""
    wanted = Filter(thread=run.thread_id, classes=(class_,))
    async for batch in edge.journal.read(filter=wanted):
        for _, fact in batch.facts():
            if fact.artifact_id == name_artifact(run.run_id) and name in fact.payload:
                return fact.payload[name]
    return None


async def _record_changes(edge: EdgeContext, run: Run) -> TaskChanges:
    found = await run_operations.diff_run(edge, run.run_id)
    worktree = None if run.worktree is None else run.worktree.path
    changes = TaskChanges(
        available=found.available,
        reason=found.reason,
        worktree=worktree,
        base=found.base,
        tree=found.tree,
        file_count=len(found.files),
        added_lines=sum(file.added_lines or 0 for file in found.files),
        removed_lines=sum(file.removed_lines or 0 for file in found.files),
        files=_list_files(found.files),
        truncated=found.truncated or any(not file.diff for file in found.files),
    )
    if not found.available:
        return changes
    refs: dict[str, str] = {}
    if found.files:
        text, _ = redact_text("".join(file.diff or _name_file(file) for file in found.files))
        content = text.encode("utf-8", "replace")
        ref = (await edge.blobs.put(content, kind="artifact")).ref
        changes = msgspec.structs.replace(changes, diff_ref=ref, diff_bytes=len(content))
        refs = {"contentRef": ref, "diffRef": ref}
    payload = {
        "kind": "diff",
        "title": f"Changes of {run.run_id}",
        "mediaType": "text/x-diff",
        **refs,
        "runId": run.run_id,
        "changes": msgspec.to_builtins(changes),
    }
    await edge.write(
        run.thread_id or "",
        (DIFF_READY, payload),
        trace_id=name_trace(run.run_id),
        artifact_id=name_artifact(run.run_id),
    )
    return changes


def _name_file(file: ChangedFile) -> str:
    """What a diff says of a file whose text is not in it."""
    return f"diff --git a/{file.path} b/{file.path}\n({file.change}; no text)\n"


def _list_files(files: tuple[ChangedFile, ...]) -> tuple[TaskFile, ...]:
    """The first files, as far as there is room for them."""
    listed: list[TaskFile] = []
    room = LINK_FILES_BYTES
    for file in files:
        entry = TaskFile(
            path=redact_text(file.path)[0],
            change=file.change,
            added_lines=file.added_lines,
            removed_lines=file.removed_lines,
        )
        room -= len(msgspec.json.encode(entry)) + 1
        if room < 0:
            break
        listed.append(entry)
    return tuple(listed)


MERGED: Final = "artifact.updated"
_NOTE: Final = ".merging"
_SUBJECT_CHARACTERS: Final = 120
_log: Final = logger("factwire.edge")


class MergeNote(msgspec.Struct, frozen=True, kw_only=True):
    """A merge that is under way, and who asked for it."""

    run_id: str
    plan: MergePlan
    by: dict[str, Any]


class WantedMerge(msgspec.Struct, frozen=True, kw_only=True):
    """A branch to merge into, the subject of the commit, and the tree that is to be merged, each if
    it was named.
    """

    into: str | None = None
    message: str | None = None
    tree: str | None = None


async def merge_run(edge: EdgeContext, run_id: str, wanted: WantedMerge, by: Person) -> RunMerge:
    """Merge what a run changed into a branch of its repository; one that was merged is told again.
    Raises `Problem`.
    """
    run = run_operations.find_run(edge, run_id)
    edge.find_own_thread(run.thread_id or "")
    async with edge.merging:
        with _telling_failures():
            await _settle(edge, _name_note(edge, run))
        merged = await _find_merge(edge, run)
        if merged is None:
            merged = await _merge(edge, run, wanted, by)
        if merged.status == "merged":
            await _remove_worktree(edge, run, by)
        return merged


async def _find_merge(edge: EdgeContext, run: Run) -> RunMerge | None:
    recorded = await find_record(edge, run, MERGED, "merge")
    return None if recorded is None else msgspec.convert(recorded, RunMerge)


async def _merge(edge: EdgeContext, run: Run, wanted: WantedMerge, by: Person) -> RunMerge:
    worktree = run.worktree
    if worktree is None:
        raise Problem(404, "no_worktree", "this run has no worktree of its own")
    sharing = worktree_operations.find_ended_runs(edge, worktree)
    await preview_operations.stop_run_previews(edge, sharing, name_trace(run.run_id), by)
    source = await run_disk_work(_resolve, edge, worktree)
    note = _name_note(edge, run)

    async def keep(plan: MergePlan) -> None:
        kept = MergeNote(run_id=run.run_id, plan=plan, by=msgspec.to_builtins(by))
        await run_disk_work(replace_file, note, msgspec.json.encode(kept))

    author = MergeAuthor(
        name=by.name or "unknown", email=f"{run.run_id}@factwire", at=_read_seconds(run)
    )
    # A secret that is cut before it is looked for is not found.
    subject = redact_text(run.prompt or "")[0].strip().partition("\n")[0][:_SUBJECT_CHARACTERS]
    text = redact_text(wanted.message)[0] if wanted.message else subject or run.run_id
    message = f"{text}\n\nRun: {run.run_id}"
    with _telling_failures():
        try:
            found = await merge_worktree(
                source, wanted.into, author, message, keep, tree=wanted.tree
            )
        except MergeRefused:
            await run_disk_work(note.unlink, missing_ok=True)
            raise
        except (NoRepository, OSError):
            await _settle(edge, note)
            merged = await _find_merge(edge, run)
            if merged is None:
                raise
            return merged
    if isinstance(found, MergeConflicts):
        return RunMerge(
            run_id=run.run_id, status="conflicts", branch=found.branch, files=found.files
        )
    return await _record(edge, run, found, by, note)


@contextmanager
def _telling_failures() -> Generator[None]:
    """Say why a merge did not come to its end. What was begun keeps its note."""
    try:
        yield
    except (MergeRefused, MergeUnfinished) as error:
        raise Problem(409, error.code, str(error)) from error
    except (NoRepository, OSError) as error:
        reason = error.reason if isinstance(error, NoRepository) else "files_unavailable"
        detail = f"git could not merge this ({reason})"
        raise Problem(409, "merge_unavailable", detail, reason=reason) from error


def _resolve(edge: EdgeContext, worktree: RunWorktree) -> Worktree:
    """The folders of a worktree, both of which must be allowed still."""
    allowed = edge.runtime.workspaces
    try:
        place = allowed.resolve(worktree.path)
    except WorkspaceNotAllowed as error:
        raise Problem(409, "worktree_removed", "the worktree was removed") from error
    try:
        source = allowed.resolve(worktree.repository)
    except WorkspaceNotAllowed as error:
        raise Problem(409, "workspace_not_allowed", str(error)) from error
    return Worktree(path=str(place), repository=str(source), base=worktree.base)


def _read_seconds(run: Run) -> int:
    """When a run ended, so that the same merge is the same commit."""
    return int(datetime.fromisoformat(run.finished_at or run.created_at).timestamp())


async def _record(
    edge: EdgeContext, run: Run, plan: MergePlan, by: Person | None, note: Path
) -> RunMerge:
    merged = RunMerge(run_id=run.run_id, status="merged", branch=plan.branch, commit=plan.after)
    payload = {
        "kind": "diff",
        "status": "merged",
        "runId": run.run_id,
        "merge": msgspec.to_builtins(merged),
    }
    await edge.write(
        run.thread_id or "",
        (MERGED, payload),
        trace_id=name_trace(run.run_id),
        by=by,
        artifact_id=name_artifact(run.run_id),
    )
    await run_disk_work(note.unlink, missing_ok=True)
    return merged


async def _remove_worktree(edge: EdgeContext, run: Run, by: Person) -> None:
    if run.worktree is not None:
        await worktree_operations.remove_run_worktree(edge, run, by, name_trace(run.run_id))


async def settle_merges(edge: EdgeContext) -> None:
    """Bring to an end what a former process began to merge."""
    for note in await run_disk_work(_list_notes, edge.worktrees):
        try:
            await _settle(edge, note)
        except (
            MergeRefused,
            MergeUnfinished,
            NoRepository,
            OSError,
            msgspec.MsgspecError,
            Problem,
        ) as error:
            _log.warning("merge_not_settled", note=note.name, exc_info=error)


async def _settle(edge: EdgeContext, note: Path) -> None:
    if not await run_disk_work(note.exists):
        return
    kept = msgspec.json.decode(await run_disk_work(note.read_bytes), type=MergeNote)
    run = edge.records.runs.get(kept.run_id)
    is_merged = await complete_merge(kept.plan)
    if run is not None and is_merged and await _find_merge(edge, run) is None:
        await _record(edge, run, kept.plan, msgspec.convert(kept.by, Person), note)
    await run_disk_work(note.unlink, missing_ok=True)


def _name_note(edge: EdgeContext, run: Run) -> Path:
    return edge.worktrees / f"{run.run_id}{_NOTE}"


def _list_notes(root: Path) -> list[Path]:
    return sorted(root.glob(f"*{_NOTE}"))

"""`read`, `search`, `write` and `patch`: the tools for files. Files that get another text get
it all, or none of them does.
"""

import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from factwire.facts import Ref
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.policy import Policy, PolicyRequest, evaluate
from factwire.runtime.toolbox.limits import (
    FILE_BYTES,
    MATCH_CHARACTERS,
    PATCH_EDITS,
    SEARCH_BYTES,
    SEARCH_FILES,
    SEARCH_MATCHES,
)
from factwire.runtime.toolbox.tool_calls import ActiveCall, CallResult, ToolRefused
from factwire.runtime.toolbox.tool_context import (
    PreparedCall,
    ToolContext,
    check_names,
    count_argument,
    text_argument,
)
from factwire.runtime.toolbox.workspace_files import (
    FileRevision,
    WorkspaceFiles,
    build_diff,
    join_diffs,
)


async def read(context: ToolContext, args: dict[str, Any]) -> PreparedCall:
    """`path`, and maybe the first line `start` (from 1) and how many `lines`."""
    check_names(args, "path", "start", "lines")
    path = await run_disk_work(context.files.locate, text_argument(args, "path"))
    start, count = count_argument(args, "start", 1), count_argument(args, "lines", FILE_BYTES)

    async def perform(call: ActiveCall) -> CallResult:
        whole = await run_disk_work(context.files.text, path)
        await call.mark_applied()
        rows = whole.split("\n")
        wanted = "\n".join(rows[start - 1 : start - 1 + count])
        call.put("file.read", {"path": path, "bytes": len(whole.encode())})
        summary = f"{path}, {len(rows)} lines"
        return CallResult(text=wanted, summary=summary, data={"path": path, "lines": len(rows)})

    request = PolicyRequest(tool="read", workspace=context.workspace, paths=(path,))
    return PreparedCall(request=request, prompt=f"Read {path}?", perform=perform)


PASSED_OVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders full of what tools made, which nobody wrote."""


class SearchMatches(msgspec.Struct, kw_only=True):
    """Lines as `path:line: text`; `complete` is whether no bound was reached."""

    lines: list[str] = msgspec.field(default_factory=list[str])
    files: int = 0
    complete: bool = True


async def search(context: ToolContext, args: dict[str, Any]) -> PreparedCall:
    """`text`, and maybe the folder `path` and a `glob` that names must match."""
    check_names(args, "text", "path", "glob")
    text, glob = text_argument(args, "text"), text_argument(args, "glob", "*")
    path = await run_disk_work(context.files.locate, text_argument(args, "path", "."))
    if not text or "\n" in text:
        raise ToolRefused("invalid_arguments", "expected one line of text to search for")

    async def perform(call: ActiveCall) -> CallResult:
        looking = partial(_search, context.files, path, text, glob, context.resources.policy)
        found = await run_disk_work(looking)
        await call.mark_applied()
        summary = f"{_count_text(len(found.lines), 'line')} in {_count_text(found.files, 'file')}"
        data = {"matches": len(found.lines), "files": found.files, "complete": found.complete}
        more = "" if found.complete else "\n… and possibly more: a limit was reached"
        return CallResult(text="\n".join(found.lines) + more, summary=summary, data=data)

    request = PolicyRequest(
        tool="search", workspace=context.workspace, paths=(path,), args={"text": text, "glob": glob}
    )
    return PreparedCall(request=request, prompt=f"Search {path}?", perform=perform)


def _search(
    files: WorkspaceFiles, path: str, text: str, glob: str, policy: Policy
) -> SearchMatches:
    found, left = SearchMatches(), SEARCH_BYTES
    for name in _names(files, path):
        if not fnmatchcase(name, glob) and not fnmatchcase(PurePosixPath(name).name, glob):
            continue
        if found.files >= SEARCH_FILES or left <= 0 or len(found.lines) >= SEARCH_MATCHES:
            found.complete = False
            break
        if not _may_read(policy, files, name):
            continue
        try:
            content = files.text(name)
        except ToolRefused:
            continue
        found.files += 1
        left -= len(content)
        _gather(found, name, content, text)
    return found


def _names(files: WorkspaceFiles, path: str) -> Iterator[str]:
    """Plain files at or below a path, in order, without following a link."""
    top = files.root / path
    if not top.exists():
        raise ToolRefused("not_found", f"{path} does not exist, so it cannot be searched")
    if top.is_file():
        yield path
        return
    for folder, folders, names in os.walk(top, followlinks=False):
        folders[:] = sorted(set(folders) - PASSED_OVER)
        inside = PurePosixPath(os.path.relpath(folder, files.root))
        for name in sorted(names):
            path = (inside / name).as_posix()
            # A name that is not UTF-8 cannot be told, so nobody could ask for the file.
            if path.isprintable():
                yield path


def _may_read(policy: Policy, files: WorkspaceFiles, name: str) -> bool:
    request = PolicyRequest(tool="read", workspace=str(files.root), paths=(name,))
    return evaluate(policy, request).decision == "allow"


def _gather(found: SearchMatches, name: str, content: str, text: str) -> None:
    if text not in content:
        return
    for number, line in enumerate(content.split("\n"), 1):
        if text in line:
            if len(found.lines) >= SEARCH_MATCHES:
                found.complete = False
                return
            found.lines.append(f"{name}:{number}: {line[:MATCH_CHARACTERS]}")


def _count_text(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_VERSION: Final = 12
"""Digits of a hash that name a version."""


async def write(context: ToolContext, args: dict[str, Any]) -> PreparedCall:
    """`path` and its whole `content`."""
    check_names(args, "path", "content")
    path = await run_disk_work(context.files.locate, text_argument(args, "path"))
    after = _require_writable(path, text_argument(args, "content"))
    change = FileRevision(
        path=path, before=await run_disk_work(context.files.text_if_any, path), after=after
    )

    async def perform(call: ActiveCall) -> CallResult:
        await run_disk_work(context.files.apply, [change])
        await call.mark_applied()
        return await _record_changes(call, [change])

    return _prepare_call(context, "write", [change], f"Write {path}?", perform)


async def patch(context: ToolContext, args: dict[str, Any]) -> PreparedCall:
    """`edits`: in the file `path`, the text `old`, which is there once, becomes `new`. Without
    `old`, the file is made.
    """
    check_names(args, "edits")
    changes = await _apply_edits(context, args.get("edits"))

    async def perform(call: ActiveCall) -> CallResult:
        paths = [change.path for change in changes]
        ids = {"patchId": f"patch_{call.call_id}", "paths": paths}
        begun = call.fact("patch.started", ids)
        try:
            await run_disk_work(context.files.apply, changes)
        except ToolRefused as refusal:
            failure = {"failureCategory": refusal.category, "message": str(refusal)}
            call.host.emit(begun, call.fact("patch.failed", {**ids, **failure}))
            raise
        await call.mark_applied()
        ref = await call.keep(join_diffs(changes), "artifact")
        applied = call.fact("patch.applied", {**ids, "diffRef": ref.ref}, ref_ids=(ref.ref,))
        call.host.emit(begun, applied)
        return await _record_changes(call, changes)

    names = ", ".join(change.path for change in changes)
    return _prepare_call(context, "patch", changes, f"Patch {names}?", perform)


def _prepare_call(
    context: ToolContext,
    tool: str,
    changes: list[FileRevision],
    prompt: str,
    perform: Callable[[ActiveCall], Awaitable[CallResult]],
) -> PreparedCall:
    request = PolicyRequest(
        tool=tool,
        workspace=context.workspace,
        paths=tuple(change.path for change in changes),
        diff=join_diffs(changes),
    )
    shown = tuple(change.path for change in changes if change.before is not None)
    return PreparedCall(request=request, prompt=prompt, perform=perform, reads=shown)


class TextEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place in one file."""

    path: str
    new: str
    old: str = ""


async def _apply_edits(context: ToolContext, edits: Any) -> list[FileRevision]:
    try:
        wanted = msgspec.convert(edits, list[TextEdit])
    except msgspec.ValidationError as error:
        raise ToolRefused("invalid_arguments", f"edits of path, old and new: {error}") from error
    if not 0 < len(wanted) <= PATCH_EDITS:
        message = f"expected 1 to {PATCH_EDITS} edits, got {len(wanted)}"
        raise ToolRefused("invalid_arguments", message)
    changes: dict[str, FileRevision] = {}
    for edit in wanted:
        path = await run_disk_work(context.files.locate, edit.path)
        if path not in changes:
            before = await run_disk_work(context.files.text_if_any, path)
            changes[path] = FileRevision(path=path, before=before, after=before or "")
        after = _replace_text(changes[path], edit)
        changes[path] = msgspec.structs.replace(changes[path], after=after)
    return list(changes.values())


def _replace_text(change: FileRevision, edit: TextEdit) -> str:
    if change.before is None and not change.after:
        if edit.old:
            raise ToolRefused("not_found", f"{change.path} does not exist, so it cannot be changed")
        return _require_writable(change.path, edit.new)
    count = change.after.count(edit.old) if edit.old else 0
    if count != 1:
        message = f"expected the text once in {change.path}, found it {count} times"
        raise ToolRefused("patch_mismatch", message)
    return _require_writable(change.path, change.after.replace(edit.old, edit.new))


def _require_writable(path: str, text: str) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ToolRefused(
            "not_text", f"{path}: the text contains an incomplete character"
        ) from error
    if "\0" in text:
        raise ToolRefused("not_text", f"{path}: the text contains a NUL character")
    if size > FILE_BYTES:
        raise ToolRefused(
            "too_big", f"{path} would have {size} bytes; at most {FILE_BYTES} are allowed"
        )
    return text


async def _record_changes(call: ActiveCall, changes: list[FileRevision]) -> CallResult:
    """Say what changed, each file as a version of an artifact."""
    changes = [change for change in changes if change.before != change.after]
    for change in changes:
        diff = build_diff(change)
        content = await call.keep(change.after, "artifact")
        difference = await call.keep(diff.text, "artifact")
        call.put(
            "file.changed",
            {
                "path": change.path,
                "change": change.kind,
                "title": change.path,
                "mediaType": "text/plain",
                "diffRef": difference.ref,
                "contentRef": content.ref,
                "versionId": hash_version(content),
                "addedLines": diff.added,
                "removedLines": diff.removed,
            },
            artifact_id=build_artifact_id(call, change.path),
            ref_ids=(content.ref, difference.ref),
        )
    names = [change.path for change in changes]
    kinds = ", ".join(f"{change.kind} {change.path}" for change in changes)
    data = {"paths": names, "diff": join_diffs(changes)}
    return CallResult(summary=kinds or "nothing changed", data=data)


def hash_version(content: Ref) -> str:
    """The name of a version: the beginning of its hash."""
    return content.ref.rpartition(":")[2][:_VERSION]


def build_artifact_id(call: ActiveCall, path: str) -> str:
    """A file is one artifact of its thread, whoever changes it."""
    name = f"{call.scope.thread_id}\n{path}".encode()
    return f"art_{hashlib.sha256(name).hexdigest()[:24]}"

"""`write` and `patch`: files that get another text, all of them or none.

The diff is made before anybody is asked, from the files as they are, and it is what is asked about.
A file that is no longer so when the answer comes is left alone.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from factwire.facts import Ref
from factwire.journal.blobs.disk import on_disk
from factwire.runtime.policy import Request
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.diffs import diff_of, whole_diff
from factwire.runtime.toolbox.files import Change
from factwire.runtime.toolbox.limits import FILE_BYTES, PATCH_EDITS
from factwire.runtime.toolbox.outcomes import Done, ToolRefused
from factwire.runtime.toolbox.works import Bench, Work, check_names, text_argument

_VERSION: Final = 12
"""Digits of a hash that name a version."""


async def write(bench: Bench, args: dict[str, Any]) -> Work:
    """`path` and its whole `content`."""
    check_names(args, "path", "content")
    path = await on_disk(bench.files.locate, text_argument(args, "path"))
    after = _writable(path, text_argument(args, "content"))
    change = Change(path=path, before=await on_disk(bench.files.text_if_any, path), after=after)

    async def perform(call: Call) -> Done:
        await on_disk(bench.files.apply, [change])
        await call.acted()
        return await _told(call, [change])

    return _work(bench, "write", [change], f"Write {path}?", perform)


async def patch(bench: Bench, args: dict[str, Any]) -> Work:
    """`edits`: in the file `path`, the text `old`, which is there once, becomes `new`. Without
    `old`, the file is made.
    """
    check_names(args, "edits")
    changes = await _edited(bench, args.get("edits"))

    async def perform(call: Call) -> Done:
        paths = [change.path for change in changes]
        ids = {"patchId": f"patch_{call.call_id}", "paths": paths}
        begun = call.fact("patch.started", ids)
        try:
            await on_disk(bench.files.apply, changes)
        except ToolRefused as refusal:
            failure = {"failureCategory": refusal.category, "message": str(refusal)}
            call.host.emit(begun, call.fact("patch.failed", {**ids, **failure}))
            raise
        await call.acted()
        ref = await call.keep(whole_diff(changes), "artifact")
        applied = call.fact("patch.applied", {**ids, "diffRef": ref.ref}, ref_ids=(ref.ref,))
        call.host.emit(begun, applied)
        return await _told(call, changes)

    names = ", ".join(change.path for change in changes)
    return _work(bench, "patch", changes, f"Patch {names}?", perform)


def _work(
    bench: Bench,
    tool: str,
    changes: list[Change],
    prompt: str,
    perform: Callable[[Call], Awaitable[Done]],
) -> Work:
    request = Request(
        tool=tool,
        workspace=bench.workspace,
        paths=tuple(change.path for change in changes),
        diff=whole_diff(changes),
    )
    shown = tuple(change.path for change in changes if change.before is not None)
    return Work(request=request, prompt=prompt, perform=perform, reads=shown)


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place in one file."""

    path: str
    new: str
    old: str = ""


async def _edited(bench: Bench, edits: Any) -> list[Change]:
    try:
        wanted = msgspec.convert(edits, list[Edit])
    except msgspec.ValidationError as error:
        raise ToolRefused("invalid_arguments", f"edits of path, old and new: {error}") from error
    if not 0 < len(wanted) <= PATCH_EDITS:
        message = f"expected 1 to {PATCH_EDITS} edits, got {len(wanted)}"
        raise ToolRefused("invalid_arguments", message)
    changes: dict[str, Change] = {}
    for edit in wanted:
        path = await on_disk(bench.files.locate, edit.path)
        if path not in changes:
            before = await on_disk(bench.files.text_if_any, path)
            changes[path] = Change(path=path, before=before, after=before or "")
        after = _replaced(changes[path], edit)
        changes[path] = msgspec.structs.replace(changes[path], after=after)
    return list(changes.values())


def _replaced(change: Change, edit: Edit) -> str:
    if change.before is None and not change.after:
        if edit.old:
            raise ToolRefused("not_found", f"{change.path} is not there to be changed")
        return _writable(change.path, edit.new)
    count = change.after.count(edit.old) if edit.old else 0
    if count != 1:
        message = f"expected the text once in {change.path}, found it {count} times"
        raise ToolRefused("patch_mismatch", message)
    return _writable(change.path, change.after.replace(edit.old, edit.new))


def _writable(path: str, text: str) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ToolRefused("not_text", f"{path}: the text holds half a character") from error
    if "\0" in text:
        raise ToolRefused("not_text", f"{path}: the text holds a NUL, as text never does")
    if size > FILE_BYTES:
        raise ToolRefused("too_big", f"{path} would have {size} bytes of {FILE_BYTES}")
    return text


async def _told(call: Call, changes: list[Change]) -> Done:
    """Say what changed, each file as a version of an artifact."""
    changes = [change for change in changes if change.before != change.after]
    for change in changes:
        diff = diff_of(change)
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
                "versionId": version_of(content),
                "addedLines": diff.added,
                "removedLines": diff.removed,
            },
            artifact_id=artifact_id(call, change.path),
            ref_ids=(content.ref, difference.ref),
        )
    names = [change.path for change in changes]
    kinds = ", ".join(f"{change.kind} {change.path}" for change in changes)
    data = {"paths": names, "diff": whole_diff(changes)}
    return Done(summary=kinds or "nothing changed", data=data)


def version_of(content: Ref) -> str:
    """The name of a version: the beginning of its hash."""
    return content.ref.rpartition(":")[2][:_VERSION]


def artifact_id(call: Call, path: str) -> str:
    """A file is one artifact of its thread, whoever changes it."""
    name = f"{call.scope.thread_id}\n{path}".encode()
    return f"art_{hashlib.sha256(name).hexdigest()[:24]}"

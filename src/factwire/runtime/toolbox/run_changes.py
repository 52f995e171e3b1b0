"""What a command changed in its workspace, as far as a bounded look can tell.

The files are looked at before and after: their sizes and times, and of small ones their text, for a
diff. That is what changed *while* the command ran, whoever did it. A workspace with too many files
is not watched at all, folders full of what tools made are passed over, and links are not followed.
The content of a file that may not be read is not kept.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from factwire.runtime.policy import Policy, Request, evaluate
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.changing import artifact_id, version_of
from factwire.runtime.toolbox.diffs import diff_of
from factwire.runtime.toolbox.files import Change, WorkspaceFiles
from factwire.runtime.toolbox.limits import (
    CHANGED_FILES,
    WATCHED_BYTES,
    WATCHED_FILE_BYTES,
    WATCHED_FILES,
)
from factwire.runtime.toolbox.outcomes import ToolRefused
from factwire.runtime.toolbox.searching import PASSED_OVER

Mark = tuple[int, int, int]
"""Size, time of the last change, and number of a file: what tells one state from another."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The plain files of a workspace; `texts` are those that were small enough to keep."""

    marks: dict[str, Mark]
    texts: dict[str, str]


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not what it was."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    before: str | None
    after: str | None

    @property
    def diff(self) -> Change | None:
        """The change as a diff needs it; None where a text is not known."""
        if (self.kind != "created" and self.before is None) or (
            self.kind != "deleted" and self.after is None
        ):
            return None
        return Change(path=self.path, before=self.before, after=self.after or "")


def look(files: WorkspaceFiles, own: tuple[str, ...] = (), *, keep: bool) -> Look | None:
    """The files as they are, with their texts if wanted; None where there are too many. Paths that
    begin as one of `own` are the runtime's.
    """
    marks: dict[str, Mark] = {}
    for seen, entry in enumerate(_entries(files.root, own)):
        if seen >= WATCHED_FILES:
            return None
        path = os.path.relpath(entry.path, files.root)
        with suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and path.isprintable():
                marks[path] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return Look(marks=marks, texts=_texts(files, marks) if keep else {})


def _entries(root: Path, own: tuple[str, ...]) -> Iterator["os.DirEntry[str]"]:
    """Everything below a folder, one by one, so that whoever has seen enough can stop."""
    waiting = [str(root)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if f"{entry.path}{os.sep}".startswith(own):
                    continue
                yield entry
                if entry.name not in PASSED_OVER and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _texts(files: WorkspaceFiles, marks: dict[str, Mark]) -> dict[str, str]:
    texts: dict[str, str] = {}
    left = WATCHED_BYTES
    for path, (size, _, _) in marks.items():
        if size <= WATCHED_FILE_BYTES and size <= left:
            left -= size
            with suppress(ToolRefused):
                texts[path] = files.text(path)
    return texts


def changes(files: WorkspaceFiles, before: Look, after: Look) -> list[Changed]:
    """What is not as it was, by path."""
    old, new = before.marks, after.marks
    found: list[Changed] = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        kind = "created" if path not in old else "deleted" if path not in new else "modified"
        known, text = before.texts.get(path), None
        if kind != "deleted" and new[path][0] <= WATCHED_FILE_BYTES:
            with suppress(ToolRefused):
                text = files.text(path)
        if kind != "modified" or known is None or known != text:
            found.append(Changed(path=path, kind=kind, before=known, after=text))
    return found


async def tell_changes(call: Call, found: list[Changed], policy: Policy, workspace: str) -> None:
    """Say which files changed, each as a version of an artifact."""
    for changed in found[:CHANGED_FILES]:
        readable = _may_read(policy, workspace, changed.path)
        await _tell(
            call, changed if readable else msgspec.structs.replace(changed, before=None, after=None)
        )


async def _tell(call: Call, changed: Changed) -> None:
    said: dict[str, Any] = {"path": changed.path, "change": changed.kind, "title": changed.path}
    refs: list[str] = []
    if changed.after is not None:
        content = await call.keep(changed.after, "artifact")
        refs.append(content.ref)
        said |= {
            "mediaType": "text/plain",
            "contentRef": content.ref,
            "versionId": version_of(content),
        }
    if changed.diff is not None:
        diff = diff_of(changed.diff)
        kept = await call.keep(diff.text, "artifact")
        refs.append(kept.ref)
        said |= {"diffRef": kept.ref, "addedLines": diff.added, "removedLines": diff.removed}
    call.put("file.changed", said, artifact_id=artifact_id(call, changed.path), ref_ids=tuple(refs))


def _may_read(policy: Policy, workspace: str, path: str) -> bool:
    request = Request(tool="read", workspace=workspace, paths=(path,))
    return evaluate(policy, request).decision == "allow"

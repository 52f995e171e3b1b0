"""`search`: lines that hold a text, in the files below a folder.

A plain text and no pattern, so that nothing that is searched for can take for ever. Links are not
followed, files that are no text are passed over, and a file that may not be read is not looked at.
"""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import msgspec

from factwire.journal.blobs.disk import on_disk
from factwire.runtime.policy import Policy, Request, evaluate
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.files import WorkspaceFiles
from factwire.runtime.toolbox.limits import (
    MATCH_CHARACTERS,
    SEARCH_BYTES,
    SEARCH_FILES,
    SEARCH_MATCHES,
)
from factwire.runtime.toolbox.outcomes import Done, ToolRefused
from factwire.runtime.toolbox.works import Bench, Work, check_names, text_argument

PASSED_OVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders full of what tools made, which nobody wrote."""


class Found(msgspec.Struct, kw_only=True):
    """Lines as `path:line: text`; `complete` is whether no bound was reached."""

    lines: list[str] = msgspec.field(default_factory=list[str])
    files: int = 0
    complete: bool = True


async def search(bench: Bench, args: dict[str, Any]) -> Work:
    """`text`, and maybe the folder `path` and a `glob` that names must match."""
    check_names(args, "text", "path", "glob")
    text, glob = text_argument(args, "text"), text_argument(args, "glob", "*")
    path = await on_disk(bench.files.locate, text_argument(args, "path", "."))
    if not text or "\n" in text:
        raise ToolRefused("invalid_arguments", "expected a text of one line to search for")

    async def perform(call: Call) -> Done:
        looking = partial(_search, bench.files, path, text, glob, bench.means.policy)
        found = await on_disk(looking)
        await call.acted()
        summary = f"{_counted(len(found.lines), 'line')} in {_counted(found.files, 'file')}"
        data = {"matches": len(found.lines), "files": found.files, "complete": found.complete}
        more = "" if found.complete else "\n… and maybe more: a bound was reached"
        return Done(text="\n".join(found.lines) + more, summary=summary, data=data)

    request = Request(
        tool="search", workspace=bench.workspace, paths=(path,), args={"text": text, "glob": glob}
    )
    return Work(request=request, prompt=f"Search {path}?", perform=perform)


def _search(files: WorkspaceFiles, path: str, text: str, glob: str, policy: Policy) -> Found:
    found, left = Found(), SEARCH_BYTES
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
        raise ToolRefused("not_found", f"there is no {path} to search")
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
    request = Request(tool="read", workspace=str(files.root), paths=(name,))
    return evaluate(policy, request).decision == "allow"


def _gather(found: Found, name: str, content: str, text: str) -> None:
    if text not in content:
        return
    for number, line in enumerate(content.split("\n"), 1):
        if text in line:
            if len(found.lines) >= SEARCH_MATCHES:
                found.complete = False
                return
            found.lines.append(f"{name}:{number}: {line[:MATCH_CHARACTERS]}")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

"""What changed in a workspace since its last commit, as git tells it; never a guess.

All files are taken over into an index of our own first, untracked ones too, and the diff is made
from that: a snapshot, so that its parts agree although an agent may be writing. Marks in the
repository's own index that would hide a change are not looked at. Without a repository, or where
git cannot say, the answer is that there is none, and why.
"""

import os
import stat
from pathlib import Path
from typing import Final, Literal

import msgspec

from factwire.runtime.sandbox import limits
from factwire.runtime.sandbox.git import BorrowedRepository, argument_list, borrow
from factwire.runtime.sandbox.git_layout import NoRepository

Change = Literal["created", "modified", "deleted"]

_CHANGES: Final[dict[str, Change]] = {
    "A": "created",
    "M": "modified",
    "T": "modified",
    "D": "deleted",
}
_PLAIN: Final = ("--cached", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
_PLAIN_DIFF: Final = ("diff-index", *_PLAIN, "--ignore-submodules=all", "--full-index")
_HEADER: Final = b"diff --git "
_GITLINK: Final = b"160000"


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One file. `diff` is absent for binary files and past the bound; lines for binary files."""

    path: str
    change: Change
    added_lines: int | None = None
    removed_lines: int | None = None
    diff: str | None = None


class WorkspaceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """`available` says whether git could tell; `reason` is a stable word where it could not."""

    available: bool
    reason: str | None = None
    base: str | None = None
    files: tuple[ChangedFile, ...] = ()
    truncated: bool = False


async def workspace_diff(
    workspace: str | Path,
    *,
    limit: int = limits.DIFF_BYTES,
    repository: str | Path | None = None,
    base: str | None = None,
) -> WorkspaceDiff:
    """What is different from the last commit, with at most `limit` bytes of diff text. A commit
    `base` of another folder's `repository` takes the place of the last commit of this one's.
    """
    try:
        async with borrow(Path(repository or workspace), files=Path(workspace)) as git:
            head = base or git.head
            tree = await _snapshot(git, head)
            return await _compare(git, tree, head, limit)
    except NoRepository as error:
        return WorkspaceDiff(available=False, reason=error.reason)


async def _snapshot(git: BorrowedRepository, base: str | None) -> str:
    """Take every file into our index; gives what to compare with."""
    if base is None:
        empty = await git.run("hash-object", "-t", "tree", "-w", "--stdin")
        base = empty.data.decode().strip()
    await git.run("read-tree", base)
    linked = await _names(git, "ls-files", "-z", "--cached", "--stage", only=_GITLINK)
    known = await _names(git, "ls-files", "-z", "--cached")
    others = await _names(git, "ls-files", "-z", "--others", "--exclude-standard")
    present = [name for name in dict.fromkeys([*known, *others]) if name not in linked]
    kept = [name for name in present if _is_file(git.workspace, name)]
    gone = set(known) - set(kept) - set(linked)
    await git.run("update-index", "-z", "--force-remove", "--stdin", given=argument_list([*gone]))
    await git.run("update-index", "-z", "--add", "--remove", "--stdin", given=argument_list(kept))
    return base


async def _names(git: BorrowedRepository, *arguments: str, only: bytes = b"") -> list[str]:
    listing = await git.run(*arguments)
    if not listing.complete:
        raise NoRepository("too_many_files")
    entries = [entry for entry in listing.data.split(b"\0") if entry.startswith(only) and entry]
    # A name with a slash at its end is a repository inside this one.
    paths = [entry.partition(b"\t")[2] if only else entry for entry in entries]
    return [os.fsdecode(path) for path in paths if not path.endswith(b"/")]


def _is_file(workspace: Path, name: str) -> bool:
    try:
        mode = os.lstat(workspace / name).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


async def _compare(
    git: BorrowedRepository, base: str, head: str | None, limit: int
) -> WorkspaceDiff:
    changes = await _table(git, "--name-status", base)
    lines = await _lines(git, base)
    text = await git.run(*_PLAIN_DIFF, "--patch", base, "--", limit=limit)
    patches = _patches(text.data, complete=text.complete)
    files: list[ChangedFile] = []
    for at, (word, path) in enumerate(changes):
        added, removed = lines.get(path, (None, None))
        files.append(
            ChangedFile(
                path=_shown(path),
                change=_CHANGES.get(word[:1], "modified"),
                added_lines=added,
                removed_lines=removed,
                diff=patches[at] if at < len(patches) and added is not None else None,
            )
        )
    return WorkspaceDiff(available=True, base=head, files=tuple(files), truncated=not text.complete)


async def _table(git: BorrowedRepository, form: str, base: str) -> list[tuple[str, str]]:
    said = await git.run(*_PLAIN_DIFF, form, "-z", base, "--")
    fields = [os.fsdecode(field) for field in said.data.split(b"\0")[:-1]]
    if not said.complete:
        raise NoRepository("too_many_files")
    return list(zip(fields[::2], fields[1::2], strict=True))


async def _lines(git: BorrowedRepository, base: str) -> dict[str, tuple[int, int]]:
    """Path → lines added and removed, for files of text."""
    said = await git.run(*_PLAIN_DIFF, "--numstat", "-z", base, "--")
    counts: dict[str, tuple[int, int]] = {}
    for row in said.data.split(b"\0")[:-1]:
        added, removed, path = row.split(b"\t", 2)
        if added != b"-":
            counts[os.fsdecode(path)] = int(added), int(removed)
    return counts


def _patches(data: bytes, *, complete: bool) -> list[str]:
    """The diff of each file in order; lines of content never start like a header does.

    A file that became a link, or the other way round, has two parts, which belong together.
    """
    patches: list[bytes] = []
    header = b""
    for part in data.removeprefix(_HEADER).split(b"\n" + _HEADER) if data else []:
        name, _, _ = part.partition(b"\n")
        whole = _HEADER + part if part.endswith(b"\n") else _HEADER + part + b"\n"
        if name == header:
            patches[-1] += whole
        else:
            patches.append(whole)
        header = name
    kept = patches if complete else patches[:-1]
    return [patch.decode("utf-8", "replace") for patch in kept]


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")

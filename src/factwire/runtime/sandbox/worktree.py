"""A worktree of a repository that nobody trusts, made without showing that repository to git.

`git worktree add` would run what the settings of the repository name: hooks after the checkout,
filters for every file, a file-system monitor. So the files are checked out by a repository of ours
that borrows the other's objects (see `git`), and the few files by which git knows a worktree are
written by hand, through folders that are held open: a link in the repository leads nowhere.
"""

import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.sandbox.sandbox_policy import SandboxError
from factwire.runtime.sandbox.workspace_git import (
    BorrowedRepository,
    GitLayout,
    NoRepository,
    borrow,
    find_layout,
)

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PATH_BYTES: Final = 8 * 1024
_PRIVATE: Final = 0o700


class WorktreeUnavailable(SandboxError):
    """`reason` is a stable word: one of `NoRepository`'s, `no_commit`, `folder_exists` or
    `not_writable`.
    """

    code = "worktree_unavailable"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"cannot create a git worktree from this folder ({reason}); name the top folder of a "
            "repository that has a commit, or work without a worktree"
        )


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that began as the commit `base` of the repository at `repository`."""

    path: str
    repository: str
    base: str


async def add_worktree(repository: Path, folder: Path) -> Worktree:
    """Make `folder`, which must not exist, a worktree at the last commit of a repository; raises
    `WorktreeUnavailable`, having left nothing behind.
    """
    await run_disk_work(_make, folder)
    try:
        async with borrow(repository, files=folder) as git:
            base = _commit(git)
            await git.run("read-tree", base)
            await git.run("checkout-index", "--all", "--index")
            await run_disk_work(_register, git.layout, base, git.index, git.workspace)
            source = await run_disk_work(repository.resolve)
            return Worktree(path=str(git.workspace), repository=str(source), base=base)
    except BaseException as error:
        await run_disk_work(_remove_all, repository, folder)
        if isinstance(error, NoRepository):
            raise WorktreeUnavailable(error.reason) from error
        if isinstance(error, OSError):
            raise WorktreeUnavailable("not_writable") from error
        raise


async def remove_worktree(repository: Path, folder: Path) -> None:
    """Take a worktree away, and what the repository knows of it; one that is gone is no error."""
    await run_disk_work(_remove_all, repository, folder)


def _commit(git: BorrowedRepository) -> str:
    if git.head is None:
        raise NoRepository("no_commit")
    return git.head


def _make(folder: Path) -> None:
    try:
        folder.mkdir(_PRIVATE, parents=True)
    except OSError as error:
        reason = "folder_exists" if isinstance(error, FileExistsError) else "not_writable"
        raise WorktreeUnavailable(reason) from error


def _register(layout: GitLayout, head: str, index: Path, folder: Path) -> None:
    """What `git worktree list` reads, and what leads from the folder to it."""
    with _worktrees(layout, make=True) as worktrees:
        os.mkdir(folder.name, _PRIVATE, dir_fd=worktrees)
        own = os.open(folder.name, _FOLDER, dir_fd=worktrees)
        try:
            _write(own, "gitdir", f"{folder / '.git'}\n".encode())
            _write(own, "commondir", b"../..\n")
            _write(own, "HEAD", f"{head}\n".encode())
            _write(own, "index", index.read_bytes())
        finally:
            os.close(own)
    with _open_folder(folder) as files:
        place = layout.common.resolve() / "worktrees" / folder.name
        _write(files, ".git", f"gitdir: {place}\n".encode())


def _remove_all(repository: Path, folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        _release(folder)
        shutil.rmtree(folder)
    # Git itself drops what a repository still says of a worktree that is gone.
    with suppress(NoRepository, OSError):
        _unregister(find_layout(repository.resolve()), folder)


def _release(folder: Path) -> None:
    """Undo what keeps folders from being emptied; package stores like to lock theirs."""
    for _, folders, _, file in os.fwalk(folder):
        for name in folders:
            mode = os.stat(name, dir_fd=file, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and mode & _PRIVATE != _PRIVATE:
                os.chmod(name, _PRIVATE, dir_fd=file)


def _unregister(layout: GitLayout, folder: Path) -> None:
    """Remove what belongs to this worktree, and nothing that only has its name."""
    with _worktrees(layout, make=False) as worktrees:
        own = os.open(folder.name, _FOLDER, dir_fd=worktrees)
        try:
            named = _read(own, "gitdir").strip()
        finally:
            os.close(own)
        if named in (os.fsencode(folder / ".git"), os.fsencode(folder.resolve() / ".git")):
            shutil.rmtree(folder.name, dir_fd=worktrees)


@contextmanager
def _worktrees(layout: GitLayout, *, make: bool) -> Generator[int]:
    """The folder of a repository that lists its worktrees, open."""
    with _open_folder(layout.common) as common:
        if make:
            with suppress(FileExistsError):
                os.mkdir("worktrees", dir_fd=common)
        listing = os.open("worktrees", _FOLDER, dir_fd=common)
        try:
            yield listing
        finally:
            os.close(listing)


@contextmanager
def _open_folder(folder: Path) -> Generator[int]:
    file = os.open(folder, _FOLDER)
    try:
        yield file
    finally:
        os.close(file)


def _write(folder: int, name: str, data: bytes) -> None:
    with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=folder), "wb") as file:
        file.write(data)


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, _OLD, dir_fd=folder), "rb") as file:
        return file.read(_PATH_BYTES)

"""Merging what a worktree holds into a branch of its repository, which nobody trusts.

Git never sees the repository itself (see `workspace_git`): commits and trees are made in a
repository of ours, and what is new in it is copied over. A branch is moved by the file protocol
that git itself uses, and only from the commit that was looked at. Where the branch is checked out,
its files follow, and only if nothing is uncommitted there.

The order makes a kill harmless. Whoever calls this keeps the `MergePlan` before anything changes.
The branch's file decides: before it is replaced nothing was merged, and after it everything was;
`complete_merge` then brings the files and the index along, whatever state they were left in.
"""

import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Final

import msgspec

from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.sandbox.sandbox_policy import SandboxError
from factwire.runtime.sandbox.workspace_git import (
    BorrowedRepository,
    GitLayout,
    GitOutput,
    NoRepository,
    borrow,
    find_layout,
    is_branch,
    read_head,
    take_snapshot,
)
from factwire.runtime.sandbox.worktree import Worktree

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HEADS: Final = "refs/heads/"
_UNDER_WAY: Final = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
)


class MergeRefused(SandboxError):
    """Why nothing was merged; `code` is stable."""

    code = "merge_unavailable"


class MergeTargetUnknown(MergeRefused):
    code = "merge_target_unknown"


class MergeTargetBusy(MergeRefused):
    code = "merge_target_busy"


class MergeTargetDirty(MergeRefused):
    code = "merge_target_dirty"


class MergedFilesTooBig(MergeRefused):
    code = "files_too_big"


class WorkChanged(MergeRefused):
    code = "work_changed"


class MergeUnfinished(SandboxError):
    """The branch was moved, and its files could not follow: `complete_merge` is to be called again,
    with the plan that was kept.
    """

    code = "merge_unfinished"


class MergeAuthor(msgspec.Struct, frozen=True, kw_only=True):
    """Who a commit is by, and when it was made, in seconds; the same again is the same commit."""

    name: str
    email: str
    at: int


class MergePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of a repository that moves from one commit to another; `checked_out` says whether
    the repository's own folder shows it.
    """

    repository: str
    ref: str
    before: str
    after: str
    checked_out: bool

    @property
    def branch(self) -> str:
        return self.ref.removeprefix(_HEADS)


class MergeConflicts(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a branch and a worktree both changed."""

    branch: str
    files: tuple[str, ...]


KeepPlan = Callable[[MergePlan], Awaitable[None]]


async def merge_worktree(
    worktree: Worktree,
    into: str | None,
    author: MergeAuthor,
    message: str,
    keep: KeepPlan,
    *,
    tree: str | None = None,
) -> MergePlan | MergeConflicts:
    """Merge what a worktree holds into a branch, or into the one that its repository shows; where
    `tree` is given, only if that is what it holds. `keep` is called before anything changes.
    Raises `MergeRefused` with nothing changed, `MergeUnfinished` once the branch was moved, and
    `NoRepository` or `OSError` where only `complete_merge` can tell.
    """
    async with borrow(Path(worktree.repository), files=Path(worktree.path)) as git:
        ref, before = await run_disk_work(_find_target, git.layout, into)
        held = await _read_tree(git, worktree)
        if tree is not None and held != tree:
            raise WorkChanged("the worktree was changed since it was looked at; review it again")
        after = await _build_result(git, worktree, held, before, author=author, message=message)
        if isinstance(after, tuple):
            return MergeConflicts(branch=ref.removeprefix(_HEADS), files=after)
        is_shown = await run_disk_work(_is_checked_out, git.layout, ref, Path(worktree.path))
        plan = MergePlan(
            repository=worktree.repository,
            ref=ref,
            before=before,
            after=after,
            checked_out=is_shown,
        )
        await keep(plan)
        if before == after:
            return plan
        async with _holding_index(plan, git.layout):
            if is_shown:
                await _ensure_clean(plan, git)
            await run_disk_work(_copy_objects, git.objects, git.layout.objects)
            await run_disk_work(_move_ref, git.layout, plan, author)
            if is_shown:
                await _advance_files(plan)
        return plan


async def complete_merge(plan: MergePlan) -> bool:
    """Finish what a kill left half done; whether the branch has what was to be merged. Raises
    `MergeRefused`, `MergeUnfinished`, `NoRepository` or `OSError` where it is to be tried again.
    """
    layout = await run_disk_work(find_layout, Path(plan.repository))
    await run_disk_work(_release_locks, layout, plan)
    now = layout.resolve(plan.ref)
    if now is None or plan.before == plan.after:
        return now == plan.after
    if now == plan.after:
        if plan.checked_out and layout.read_head() == plan.ref:
            async with _holding_index(plan, layout):
                await _advance_files(plan)
        return True
    async with borrow(Path(plan.repository)) as git:
        known = await git.run("cat-file", "-e", plan.after, codes=(0, 1, 128))
        if known.code:
            return False
        return (
            await git.run("merge-base", "--is-ancestor", plan.after, now, codes=(0, 1))
        ).code == 0


def _find_target(layout: GitLayout, into: str | None) -> tuple[str, str]:
    """The branch that is meant, and where it is."""
    ref = layout.read_head() if into is None else f"{_HEADS}{into}"
    if ref is None:
        message = "the repository has no branch checked out; name one to merge into"
        raise MergeTargetUnknown(message)
    found = layout.resolve(ref) if is_branch(ref) else None
    if found is None:
        shown = ref.removeprefix(_HEADS)[:80]
        raise MergeTargetUnknown(f"the repository has no branch {shown!r}")
    if layout.is_symbolic(ref):
        shown = ref.removeprefix(_HEADS)[:80]
        raise MergeTargetUnknown(f"{shown!r} stands for another branch; name that one")
    return ref, found


def _is_checked_out(layout: GitLayout, ref: str, worktree: Path) -> bool:
    """Whether the repository's folder shows a branch; one that another folder shows is refused."""
    others = [layout.common, *sorted((layout.common / "worktrees").glob("*"))]
    for folder in others:
        is_own = folder == layout.own or folder.name == worktree.name
        if not is_own and read_head(folder) == ref:
            message = "the branch is checked out in another worktree; merge it there"
            raise MergeTargetBusy(message)
    return layout.read_head() == ref


async def _read_tree(git: BorrowedRepository, worktree: Worktree) -> str:
    """What a worktree holds, as a tree of our repository."""
    _, unread = await take_snapshot(git, worktree.base)
    if unread:
        names = ", ".join(file.path for file in unread[:3])
        raise MergedFilesTooBig(f"files are too big to be merged: {names}")
    return _line(await git.run("write-tree"))


async def _build_result(
    git: BorrowedRepository,
    worktree: Worktree,
    tree: str,
    target: str,
    *,
    author: MergeAuthor,
    message: str,
) -> str | tuple[str, ...]:
    """The commit where a branch is after a merge, or the files in conflict."""
    if tree == _line(await git.run("rev-parse", f"{worktree.base}^{{tree}}")):
        return target
    work = await _write_commit(git, tree, (worktree.base,), author, message)
    if target == worktree.base:
        return work
    if (await git.run("merge-base", "--is-ancestor", work, target, codes=(0, 1))).code == 0:
        return target
    merged = await git.run(
        "merge-tree",
        "--write-tree",
        "-z",
        "--name-only",
        "--no-messages",
        target,
        work,
        codes=(0, 1),
    )
    result, *files = [os.fsdecode(part) for part in merged.data.split(b"\0") if part]
    if merged.code:
        return tuple(os.fsencode(name).decode("utf-8", "replace") for name in files)
    return await _write_commit(git, result, (target, work), author, f"Merge: {message}")


def _line(output: GitOutput) -> str:
    return output.data.decode().strip()


async def _write_commit(
    git: BorrowedRepository, tree: str, parents: tuple[str, ...], author: MergeAuthor, message: str
) -> str:
    """By hand, because git would look for a name in settings."""
    person = f"{_plain(author.name)} <{_plain(author.email)}> {author.at} +0000"
    head = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines = [*head, f"author {person}", f"committer {person}", "", message.strip(), ""]
    data = "\n".join(lines).encode("utf-8", "replace")
    return _line(await git.run("hash-object", "-t", "commit", "-w", "--stdin", input_bytes=data))


def _plain(text: str) -> str:
    """A name that cannot end its line, nor its place in it."""
    kept = "".join(each for each in text if each.isprintable() and each not in "<>")
    return kept.strip(" .,:;\"'\\") or "unknown"


async def _ensure_clean(plan: MergePlan, work: BorrowedRepository) -> None:
    """Raise `MergeRefused` where the folder of a repository has something uncommitted, or files of
    its own where the merge has some.
    """
    layout = work.layout
    if await run_disk_work(_is_under_way, layout.own):
        raise _refuse_dirty("git is in the middle of something there")
    added = await work.run(
        "diff-tree", "-r", "-z", "--name-only", "--diff-filter=A", plan.before, plan.after
    )
    async with borrow(Path(plan.repository)) as git:
        await run_disk_work(_copy_index, layout, git.index)
        staged = await git.run(
            "diff-index",
            "--cached",
            "--quiet",
            "--ignore-submodules=all",
            plan.before,
            "--",
            codes=(0, 1),
        )
        if staged.code:
            raise _refuse_dirty("something is staged there")
        changed = await _list_changed(git, plan.before)
        if changed:
            raise _refuse_dirty(f"{changed[0]!r} is not committed there")
        known = set(await _list_index(git))
        for name in _split(added.data):
            found = await run_disk_work(_find_obstacle, git.workspace, name)
            if found is not None and (found == name or found not in known):
                raise _refuse_dirty(f"{found!r} is in the way there")


async def _list_index(git: BorrowedRepository) -> list[str]:
    return _split((await git.run("ls-files", "-z", "--cached")).data)


def _find_obstacle(workspace: Path, name: str) -> str | None:
    """What is where a new file is to be: something of its name, or no folder where it needs one."""
    for parent in reversed(Path(name).parents[:-1]):
        place = workspace / parent
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            return str(parent)
    return name if os.path.lexists(workspace / name) else None


def _is_under_way(own: Path) -> bool:
    return any(os.path.lexists(own / name) for name in _UNDER_WAY)


def _refuse_dirty(why: str) -> MergeRefused:
    message = f"the branch is checked out, and {why}; commit or stash it first"
    return MergeTargetDirty(message)


def _copy_index(layout: GitLayout, target: Path) -> None:
    source = layout.own / "index"
    if source.is_symlink() or not source.is_file():
        raise _refuse_dirty("it has no index")
    shutil.copyfile(source, target)


async def _list_changed(git: BorrowedRepository, tree: str) -> list[str]:
    """The files of a tree that are different in the folder. Our index is that tree after it."""
    await run_disk_work(git.index.unlink, missing_ok=True)
    await git.run("read-tree", tree)
    await git.run("update-index", "-q", "--refresh", codes=(0, 1))
    found = await git.run("diff-files", "--name-only", "-z", "--ignore-submodules=all")
    return _split(found.data)


def _split(data: bytes) -> list[str]:
    return [os.fsdecode(part) for part in data.split(b"\0") if part]


async def _advance_files(plan: MergePlan) -> None:
    """Bring the folder and the index of a repository to where its branch is; raises
    `MergeUnfinished`. A file that is neither as it was nor as it is to be stays, and shows as
    changed.
    """
    try:
        async with borrow(Path(plan.repository)) as git:
            changed = set(await _list_changed(git, plan.before))
            listing = await git.run("diff-tree", "-r", "-z", "--raw", plan.before, plan.after)
            present: list[bytes] = []
            for about, name in _pair_rows(listing.data):
                is_there = await run_disk_work(os.path.lexists, git.workspace / name)
                if name in changed or (about.endswith("A") and is_there):
                    _, mode, _, content, _ = about.split(" ")
                    present.append(os.fsencode(f"{mode} {content} 0\t{name}\0"))
            # What our index has as it is to be, git leaves alone.
            await git.run("update-index", "-z", "--index-info", input_bytes=b"".join(present))
            await git.run("update-index", "-q", "--refresh", codes=(0, 1))
            current = _line(await git.run("write-tree"))
            await git.run("read-tree", "-m", "-u", current, plan.after)
            await run_disk_work(_replace_index, plan, git)
    except (NoRepository, OSError) as error:
        message = f"{plan.branch!r} was moved, but its files could not follow ({error}); try again"
        raise MergeUnfinished(message) from error


def _pair_rows(data: bytes) -> list[tuple[str, str]]:
    """What a raw diff says of each file, and its name."""
    fields = [os.fsdecode(part) for part in data.split(b"\0")[:-1]]
    return list(zip(fields[::2], fields[1::2], strict=True))


def _copy_objects(ours: Path, theirs: Path) -> None:
    """Copy what is new in our repository: loose objects, and packs, the index of each last."""
    for place in ours.iterdir():
        if place.name == "info":
            continue
        with _open_below(theirs, (place.name,), make=True) as folder:
            for source in sorted(place.iterdir(), key=lambda file: file.suffix == ".idx"):
                _write_new(folder, source.name, source.read_bytes())


def _write_new(folder: int, name: str, data: bytes) -> None:
    """A file that is there whole or not at all, and stays as it is if it is there."""
    own = f"tmp_obj_{os.getpid()}_{name[:40]}"
    with suppress(FileNotFoundError):
        os.unlink(own, dir_fd=folder)
    with os.fdopen(os.open(own, _NEW, 0o444, dir_fd=folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):
        os.link(own, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(own, dir_fd=folder)
    os.fsync(folder)


def _move_ref(layout: GitLayout, plan: MergePlan, author: MergeAuthor) -> None:
    """Move a branch from one commit to another, under the lock that git takes for it, and with a
    line in each log that git keeps of it.
    """
    *folders, name = plan.ref.split("/")
    own, lock = _name_ref_lock(layout, plan)
    with _open_below(layout.common, tuple(folders), make=True) as folder:
        busy = "another program is changing the branch; try again once it is done"
        _take_lock(own, lock, folder, f"{plan.after}\n".encode(), busy)
        try:
            _ensure_unmoved(layout, plan)
            person = f"{_plain(author.name)} <{_plain(author.email)}> {int(time())} +0000"
            line = f"{plan.before} {plan.after} {person}\tmerge: by Factwire\n"
            _append_to_log(layout.common, plan.ref, line)
            if plan.checked_out:
                _append_to_log(layout.own, "HEAD", line)
            os.rename(lock.name, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:
            _release_lock(own, lock)


def _append_to_log(top: Path, ref: str, line: str) -> None:
    """Add to the log of a ref, if there is one."""
    *folders, name = ("logs", *ref.split("/"))
    with (
        suppress(FileNotFoundError),
        _open_below(top, tuple(folders), make=False) as folder,
        os.fdopen(os.open(name, _APPEND, dir_fd=folder), "ab") as file,
    ):
        file.write(line.encode("utf-8", "replace"))


def _ensure_unmoved(layout: GitLayout, plan: MergePlan) -> None:
    if layout.resolve(plan.ref) != plan.before or layout.is_symbolic(plan.ref):
        raise MergeTargetBusy("the branch was moved meanwhile; try again")


@contextmanager
def _open_below(top: Path, names: tuple[str, ...], *, make: bool) -> Generator[int]:
    """A folder, reached without following any link."""
    folder = os.open(top, _FOLDER)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _name_index_lock(layout: GitLayout, plan: MergePlan) -> tuple[Path, Path]:
    """The file by which a lock of ours is known, and the lock, which is a link to it."""
    return layout.own / f"factwire-{_digest(plan)}.index", layout.own / "index.lock"


def _name_ref_lock(layout: GitLayout, plan: MergePlan) -> tuple[Path, Path]:
    """The same for a branch. Among the refs, git would take any file for one."""
    return layout.common / f"factwire-{_digest(plan)}.ref", layout.common / f"{plan.ref}.lock"


def _digest(plan: MergePlan) -> str:
    return sha256(msgspec.json.encode(plan)).hexdigest()[:16]


@asynccontextmanager
async def _holding_index(plan: MergePlan, layout: GitLayout) -> AsyncGenerator[None]:
    """Keep other programs from changing the index, where the branch is checked out."""
    if not plan.checked_out:
        yield
        return
    own, lock = _name_index_lock(layout, plan)
    await run_disk_work(_take_index, own, lock)
    try:
        yield
    finally:
        await run_disk_work(_release_lock, own, lock)


def _take_index(own: Path, lock: Path) -> None:
    with _open_below(lock.parent, (), make=False) as folder:
        busy = "another program is changing the repository; try again once it is done"
        _take_lock(own, lock, folder, b"", busy)


def _take_lock(own: Path, lock: Path, folder: int, data: bytes, busy: str) -> None:
    """Make a lock in a folder, whole or not at all; raises `MergeTargetBusy`."""
    _release_lock(own, lock)
    with _open_below(own.parent, (), make=False) as home:
        with os.fdopen(os.open(own.name, _NEW, 0o644, dir_fd=home), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(own.name, lock.name, src_dir_fd=home, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            os.unlink(own.name, dir_fd=home)
            raise MergeTargetBusy(busy) from None


def _release_locks(layout: GitLayout, plan: MergePlan) -> None:
    for own, lock in (_name_index_lock(layout, plan), _name_ref_lock(layout, plan)):
        _release_lock(own, lock)


def _release_lock(own: Path, lock: Path) -> None:
    """Remove a lock of ours, and no other."""
    with suppress(FileNotFoundError):
        if os.path.samestat(lock.lstat(), own.lstat()):
            lock.unlink()
    own.unlink(missing_ok=True)


def _replace_index(plan: MergePlan, git: BorrowedRepository) -> None:
    """The index that we hold becomes ours, whole or not at all."""
    own, lock = _name_index_lock(git.layout, plan)
    with own.open("r+b") as file:
        file.write(git.index.read_bytes())
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    lock.rename(git.layout.own / "index")

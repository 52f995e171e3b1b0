"""Git on a workspace that nobody trusts, and what changed there since its last commit; never a
guess.

The repository's own configuration, hooks and filters are never seen by git.
"""

import asyncio
import os
import re
import shutil
import signal
import stat
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.facts.resources import ChangedFile, FileStatus
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.program_lookup import find_own_program, list_own_path, note_agent_folders
from factwire.runtime.sandbox import limits

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"refs/(?:[A-Za-z0-9_+@=-][A-Za-z0-9_.+@=-]*/?)+")
_SHA256_HEX: Final = 64
_SMALL: Final = 4 * 1024 * 1024


class NoRepository(Exception):
    """Why there is nothing to compare with; `reason` is stable."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class GitLayout(msgspec.Struct, frozen=True, kw_only=True):
    """`head` is None before the first commit."""

    own: Path
    common: Path
    objects: Path
    head: str | None
    is_sha256: bool

    def resolve(self, ref: str) -> str | None:
        """The commit that a ref names; None where there is none."""
        return _resolve((self.own, self.common), ref, limits.REF_DEPTH)

    def is_symbolic(self, ref: str) -> bool:
        """Whether a ref stands for another one."""
        place = self.common / ref
        return place.is_symlink() or _read(place).startswith("ref:")

    def read_head(self) -> str | None:
        """The ref that is checked out; None where a commit is."""
        return read_head(self.own)


def read_head(folder: Path) -> str | None:
    """The ref that the HEAD in a folder names."""
    text = _read(folder / "HEAD").strip()
    return text.removeprefix("ref:").strip() if text.startswith("ref:") else None


def is_branch(ref: str) -> bool:
    """Whether a ref has the form of a branch's."""
    is_plain = _REF.fullmatch(ref) is not None and ".." not in ref
    return is_plain and ref.startswith("refs/heads/") and not ref.endswith((".lock", "/", "."))


def find_layout(workspace: Path) -> GitLayout:
    """The layout of the repository whose top is `workspace`; raises `NoRepository`."""
    own = _own_folder(workspace)
    common = _common_folder(own)
    objects = common / "objects"
    if not objects.is_dir() or objects.is_symlink() or "\n" in str(objects):
        raise NoRepository("damaged_repository")
    if (common / "reftable").exists():
        raise NoRepository("unsupported_ref_storage")
    if (own / "info" / "sparse-checkout").exists():
        raise NoRepository("sparse_checkout")
    head = _resolve((own, common), "HEAD", limits.REF_DEPTH)
    is_sha256 = _is_sha256(common, head)
    return GitLayout(own=own, common=common, objects=objects, head=head, is_sha256=is_sha256)


def _own_folder(workspace: Path) -> Path:
    entry = workspace / ".git"
    if entry.is_symlink():
        raise NoRepository("damaged_repository")
    if entry.is_dir():
        return entry
    if not entry.is_file():
        raise NoRepository("not_a_repository")
    named = _read(entry).removeprefix("gitdir:").strip()
    folder = (workspace / named).resolve()
    back = _read(folder / "gitdir").strip()
    if not back or (folder / back).resolve() != entry.resolve():
        raise NoRepository("damaged_repository")
    return folder


def _common_folder(own: Path) -> Path:
    named = _read(own / "commondir").strip()
    if not named:
        return own
    common = (own / named).resolve()
    if own.parent != common / "worktrees":
        raise NoRepository("damaged_repository")
    return common


def _resolve(folders: tuple[Path, Path], name: str, depth: int) -> str | None:
    """The commit that a ref names; None where it has none yet."""
    text = next((text for folder in folders if (text := _read(folder / name).strip())), "")
    if not text and name != "HEAD":
        text = _read_packed_ref(folders[1], name)
    if _COMMIT.fullmatch(text):
        return text
    target = text.removeprefix("ref:").strip()
    if text.startswith("ref:") and depth and _REF.fullmatch(target) and ".." not in target:
        return _resolve(folders, target, depth - 1)
    if name == "HEAD" or text:
        raise NoRepository("damaged_repository")
    return None


def _read_packed_ref(common: Path, name: str) -> str:
    for line in _read(common / "packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""


def _is_sha256(common: Path, head: str | None) -> bool:
    if head is not None:
        return len(head) == _SHA256_HEX
    return (
        re.search(r"objectformat\s*=\s*sha256", _read(common / "config"), re.IGNORECASE) is not None
    )


def _read(path: Path) -> str:
    """A small file of text, or nothing."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _SMALL:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


_READ_BYTES: Final = 64 * 1024

_SETTINGS: Final = {
    "core.bare": "false",
    "core.repositoryFormatVersion": "1",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.pager": "cat",
    "core.bigFileThreshold": str(limits.BIG_FILE_BYTES),
    "core.quotePath": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "all",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
"""The settings of our repository. Most only say again what git would do anyway."""

_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "LC_ALL": "C.UTF-8",
}


class GitOutput(msgspec.Struct, frozen=True):
    """What git said, and its exit code; `complete` is False where it was cut at the bound."""

    data: bytes
    complete: bool
    code: int = 0


class BorrowedRepository:
    """Git commands that change nothing but our own objects and index. Made by `borrow`."""

    def __init__(self, program: str, folder: Path, workspace: Path, layout: GitLayout) -> None:
        self.objects = folder / "objects"
        self.head = layout.head
        self.layout = layout
        self.workspace = workspace
        self.index = folder / "index"
        self._program = program
        self._environment = {
            **_ENVIRONMENT,
            "HOME": str(folder),
            "PATH": os.pathsep.join(list_own_path()),
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(workspace),
            "GIT_INDEX_FILE": str(self.index),
        }

    async def run(
        self,
        *arguments: str,
        input_bytes: bytes = b"",
        limit: int = limits.LISTING_BYTES,
        codes: tuple[int, ...] = (0,),
        may_be_cut: bool = False,
    ) -> GitOutput:
        """Run git; raises `NoRepository` where it takes too long, ends with another code, or says
        more than `limit` bytes and may not be cut.
        """
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            cwd=self.workspace,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(limits.GIT_SECONDS):
                output = await _exchange(process, input_bytes, limit)
        except TimeoutError:
            raise NoRepository("git_took_too_long") from None
        finally:
            await _end(process)
        if not output.complete and not may_be_cut:
            raise NoRepository("too_many_files")
        if output.complete and process.returncode not in codes:
            raise NoRepository("git_failed")
        return msgspec.structs.replace(output, code=process.returncode or 0)


@asynccontextmanager
async def borrow(
    workspace: Path, *, files: Path | None = None
) -> AsyncGenerator[BorrowedRepository]:
    """A look at the repository of a workspace and at its files, or at those of another folder;
    raises `NoRepository`.
    """
    workspace = await run_disk_work(workspace.resolve)
    note_agent_folders((workspace,))
    program = find_own_program("git")
    if program is None:
        raise NoRepository("git_missing")
    layout = await run_disk_work(find_layout, workspace)
    folder = Path(await run_disk_work(tempfile.mkdtemp, prefix="factwire-git-"))
    try:
        await run_disk_work(_furnish, folder, layout)
        looked_at = workspace if files is None else await run_disk_work(files.resolve)
        yield BorrowedRepository(program, folder, looked_at, layout)
    finally:
        await run_disk_work(shutil.rmtree, folder, ignore_errors=True)


def _furnish(folder: Path, layout: GitLayout) -> None:
    """A repository by hand: no git runs before its settings are ours."""
    for name in ("objects/info", "refs/heads", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "objects/info/alternates").write_text(f"{layout.objects}\n")
    (folder / "HEAD").write_text(f"{layout.head or 'ref: refs/heads/unborn'}\n")
    exclude = layout.common / "info" / "exclude"
    if exclude.is_file() and not exclude.is_symlink():
        shutil.copyfile(exclude, folder / "info/exclude")
    settings = dict(_SETTINGS)
    if layout.is_sha256:
        settings["extensions.objectFormat"] = "sha256"
    (folder / "config").write_text(_as_config(settings))


def _as_config(settings: dict[str, str]) -> str:
    lines: list[str] = []
    for name, value in settings.items():
        section, _, key = name.partition(".")
        lines.append(f'[{section}]\n\t{key} = "{value}"\n')
    return "".join(lines)


async def _exchange(
    process: asyncio.subprocess.Process, input_bytes: bytes, limit: int
) -> GitOutput:
    assert process.stdin is not None  # noqa: S101 - narrows the type; both are pipes
    assert process.stdout is not None  # noqa: S101 - as above
    giving = asyncio.ensure_future(_write_input(process.stdin, input_bytes))
    try:
        data = bytearray()
        while len(data) <= limit and (piece := await process.stdout.read(_READ_BYTES)):
            data += piece
        if len(data) > limit:
            return GitOutput(bytes(data[:limit]), complete=False)
        await process.wait()
    finally:
        giving.cancel()
        await asyncio.gather(giving, return_exceptions=True)
    return GitOutput(bytes(data), complete=True)


async def _write_input(pipe: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(data)
        await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # A pipe is let go of at its end alone.
    while process.stdout is not None and await process.stdout.read(_READ_BYTES):
        pass
    await process.wait()


def argument_list(names: Sequence[str]) -> bytes:
    """Names as `-z --stdin` wants them."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


_CHANGES: Final[dict[str, FileStatus]] = {
    "A": "created",
    "M": "modified",
    "T": "modified",
    "D": "deleted",
}
_PLAIN: Final = ("--cached", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
_PLAIN_DIFF: Final = ("diff-index", *_PLAIN, "--ignore-submodules=all", "--full-index")
_HEADER: Final = b"diff --git "
_GITLINK: Final = b"160000"


class WorkspaceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """`available` says whether git could tell; `reason` is a stable word where it could not. `tree`
    is git's id of all that is there but files that are too big.
    """

    available: bool
    reason: str | None = None
    base: str | None = None
    tree: str | None = None
    files: tuple[ChangedFile, ...] = ()
    truncated: bool = False


async def diff_workspace(
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
            start, unread = await take_snapshot(git, head)
            tree = await git.run("write-tree", "--missing-ok")
            diff = await _compare(git, start, head, limit)
            files = sorted((*diff.files, *unread), key=lambda file: file.path)
            return msgspec.structs.replace(
                diff, files=tuple(files), tree=tree.data.decode().strip()
            )
    except NoRepository as error:
        return WorkspaceDiff(available=False, reason=error.reason)


async def take_snapshot(git: BorrowedRepository, base: str | None) -> tuple[str, list[ChangedFile]]:
    """Take every file into our index; gives what to compare with, and the big files that changed
    for certain without being read.
    """
    if base is None:
        empty = await git.run("hash-object", "-t", "tree", "-w", "--stdin")
        base = empty.data.decode().strip()
    await git.run("read-tree", base)
    linked = await _names(git, "ls-files", "-z", "--cached", "--stage", only=_GITLINK)
    known = await _names(git, "ls-files", "-z", "--cached")
    others = await _names(git, "ls-files", "-z", "--others", "--exclude-standard")
    present = [name for name in dict.fromkeys([*known, *others]) if name not in linked]
    sizes = await run_disk_work(_file_sizes, git.workspace, present)
    unread = await _find_unread(git, base, sizes)
    gone = set(known) - set(sizes) - set(linked)
    await git.run(
        "update-index", "-z", "--force-remove", "--stdin", input_bytes=argument_list([*gone])
    )
    kept = [name for name in sizes if name not in unread]
    await git.run(
        "update-index", "-z", "--add", "--remove", "--stdin", input_bytes=argument_list(kept)
    )
    return base, [
        ChangedFile(path=_show_path(name), change=change) for name, change in unread.items()
    ]


def _file_sizes(workspace: Path, names: Sequence[str]) -> dict[str, int]:
    """The files and links that are there, with their sizes."""
    sizes: dict[str, int] = {}
    for name in names:
        with suppress(OSError):
            about = os.lstat(workspace / name)
            if stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
                sizes[name] = about.st_size
    return sizes


async def _find_unread(
    git: BorrowedRepository, base: str, sizes: dict[str, int]
) -> dict[str, FileStatus]:
    """Big files that are new or of another size than before. A sparse file takes no room on a
    disk and minutes to read; one of the same size is read, up to a bound.
    """
    big = {name: size for name, size in sizes.items() if size > limits.BIG_FILE_BYTES}
    if not big:
        return {}
    before = await _base_sizes(git, base)
    same = [size for name, size in big.items() if before.get(name) == str(size)]
    if sum(same) > limits.HASHED_BYTES:
        raise NoRepository("files_too_big")
    return {
        name: "modified" if name in before else "created"
        for name, size in big.items()
        if before.get(name) != str(size)
    }


async def _base_sizes(git: BorrowedRepository, base: str) -> dict[str, str]:
    listing = await git.run("ls-tree", "-r", "-l", "-z", "--full-tree", base)
    rows = (os.fsdecode(row).partition("\t") for row in listing.data.split(b"\0") if row)
    return {name: about.split()[-1] for about, _, name in rows}


async def _names(git: BorrowedRepository, *arguments: str, only: bytes = b"") -> list[str]:
    listing = await git.run(*arguments)
    entries = [entry for entry in listing.data.split(b"\0") if entry.startswith(only) and entry]
    # A name with a slash at its end is a repository inside this one.
    paths = [entry.partition(b"\t")[2] if only else entry for entry in entries]
    return [os.fsdecode(path) for path in paths if not path.endswith(b"/")]


async def _compare(
    git: BorrowedRepository, base: str, head: str | None, limit: int
) -> WorkspaceDiff:
    changes = await _table(git, "--name-status", base)
    lines = await _lines(git, base)
    text = await git.run(*_PLAIN_DIFF, "--patch", base, "--", limit=limit, may_be_cut=True)
    patches = _patches(text.data, complete=text.complete)
    files: list[ChangedFile] = []
    for at, (word, path) in enumerate(changes):
        added, removed = lines.get(path, (None, None))
        files.append(
            ChangedFile(
                path=_show_path(path),
                change=_CHANGES.get(word[:1], "modified"),
                added_lines=added,
                removed_lines=removed,
                diff=patches[at] if at < len(patches) and added is not None else None,
            )
        )
    return WorkspaceDiff(available=True, base=head, files=tuple(files), truncated=not text.complete)


async def _table(git: BorrowedRepository, form: str, base: str) -> list[tuple[str, str]]:
    output = await git.run(*_PLAIN_DIFF, form, "-z", base, "--")
    fields = [os.fsdecode(field) for field in output.data.split(b"\0")[:-1]]
    return list(zip(fields[::2], fields[1::2], strict=True))


async def _lines(git: BorrowedRepository, base: str) -> dict[str, tuple[int, int]]:
    """Path → lines added and removed, for files of text."""
    output = await git.run(*_PLAIN_DIFF, "--numstat", "-z", base, "--")
    counts: dict[str, tuple[int, int]] = {}
    for row in output.data.split(b"\0")[:-1]:
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


def _show_path(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")

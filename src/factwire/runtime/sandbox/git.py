"""Git on a repository that nobody trusts.

The settings of a repository can name programs: hooks, filters, file-system monitors, pagers, diff
and text converters, credential helpers, includes of more settings. Switching off those one knows
leaves those one does not, and the agent may change them while git starts. So git is never shown the
repository: it works in a fresh one of ours, in a temporary folder, that borrows the other's objects
to read, knows its head, and looks at its files. Attributes in the workspace may still name a
filter; in our repository no such filter is set up. Nothing of the workspace is written.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.journal.blobs.disk import on_disk
from factwire.runtime.sandbox import limits
from factwire.runtime.sandbox.git_layout import GitLayout, NoRepository, find_layout

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
    """What git said; `complete` is False where it was cut at the bound."""

    data: bytes
    complete: bool


class BorrowedRepository:
    """Git commands that only look. Made by `borrow`."""

    def __init__(self, program: str, folder: Path, workspace: Path, layout: GitLayout) -> None:
        self.head = layout.head
        self.layout = layout
        self.workspace = workspace
        self.index = folder / "index"
        self._program = program
        self._environment = {
            **_ENVIRONMENT,
            "HOME": str(folder),
            "PATH": _absolute_path(),
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(workspace),
            "GIT_INDEX_FILE": str(self.index),
        }

    async def run(
        self, *arguments: str, given: bytes = b"", limit: int = limits.LISTING_BYTES
    ) -> GitOutput:
        """Run git; raises `NoRepository` where it fails or takes too long."""
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
                output = await _exchange(process, given, limit)
        except TimeoutError:
            raise NoRepository("git_took_too_long") from None
        finally:
            await _end(process)
        if output.complete and process.returncode != 0:
            raise NoRepository("git_failed")
        return output


@asynccontextmanager
async def borrow(
    workspace: Path, *, files: Path | None = None
) -> AsyncGenerator[BorrowedRepository]:
    """A look at the repository of a workspace and at its files, or at those of another folder;
    raises `NoRepository`.
    """
    program = shutil.which("git", path=_absolute_path())
    if program is None:
        raise NoRepository("git_missing")
    workspace = await on_disk(workspace.resolve)
    layout = await on_disk(find_layout, workspace)
    folder = Path(await on_disk(tempfile.mkdtemp, prefix="factwire-git-"))
    try:
        await on_disk(_furnish, folder, layout)
        looked_at = workspace if files is None else await on_disk(files.resolve)
        yield BorrowedRepository(program, folder, looked_at, layout)
    finally:
        await on_disk(shutil.rmtree, folder, ignore_errors=True)


def _absolute_path() -> str:
    """PATH without entries that would be looked up in the workspace."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry.startswith("/"))


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


async def _exchange(process: asyncio.subprocess.Process, given: bytes, limit: int) -> GitOutput:
    assert process.stdin is not None  # noqa: S101 - narrows the type; both are pipes
    assert process.stdout is not None  # noqa: S101 - as above
    giving = asyncio.ensure_future(_give(process.stdin, given))
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


async def _give(pipe: asyncio.StreamWriter, data: bytes) -> None:
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

"""Launch: a program that exists but does not run yet, in an open folder, with an environment
that is an allow-list.

The folder is opened first, looked at then, and used through what was opened; a program's name
is looked up once.
"""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from factwire.runtime.processes.process_spec import (
    FolderRefused,
    InvalidSpec,
    NotStarted,
    ProgramNotFound,
)
from factwire.runtime.program_lookup import is_program

ALLOWED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL"),
        *("LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "TMPDIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)
"""Names that every program gets. XDG_RUNTIME_DIR, SSH_AUTH_SOCK and proxies lead to sockets and
credentials of the user, and are not among them."""

ALLOWED_PREFIXES: Final = ("LC_",)

MARKER: Final = "FACTWIRE_PROCESS"
"""Name of the variable that holds the id of the process; the reaper knows our programs by it."""

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def child_environment(
    base: Mapping[str, str], extra: Mapping[str, str], own: Collection[str] = ()
) -> dict[str, str]:
    """The variables of `base` that a program may see, and the `extra` ones."""
    _ensure_sound(extra)
    passed = {name: value for name, value in base.items() if _passes(name, own)}
    if "PATH" in passed:
        # A relative or an empty entry would mean whichever folder a program works in.
        entries = passed["PATH"].split(os.pathsep)
        passed["PATH"] = os.pathsep.join(entry for entry in entries if entry.startswith("/"))
    return {
        name: value
        for name, value in {**passed, **extra}.items()
        if name in own or not names_secret(name)
    }


def names_secret(name: str) -> bool:
    """Whether a variable of this name is taken for a secret."""
    return _SECRET.search(name) is not None


def _passes(name: str, own: Collection[str]) -> bool:
    return name in own or name in ALLOWED or name.startswith(ALLOWED_PREFIXES)


def _ensure_sound(extra: Mapping[str, str]) -> None:
    for name, value in extra.items():
        if not _NAME.fullmatch(name):
            raise InvalidSpec(
                f"expected a variable of letters, digits and underscores, got {name!r}"
            )
        if "\0" in value:
            raise InvalidSpec(
                f"the value of {name} contains a NUL character, which environment variables cannot"
            )


def find_program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The absolute path of a program; one with a slash is taken from `folder`."""
    if "/" in name:
        found = folder / name
        if is_program(found):
            return str(found)
        raise ProgramNotFound(f"{found} is not an executable program")
    for entry in environment.get("PATH", os.defpath).split(os.pathsep):
        if entry.startswith("/") and is_program(Path(entry) / name):
            return str(Path(entry) / name)
    raise ProgramNotFound(f"program {name!r} not found on PATH; install it, or use its full path")


class OpenFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is held open: where it really is, and the workspace that it lies in, which is
    held open, too.
    """

    file: int
    path: Path
    workspace: Path
    workspace_file: int


@contextmanager
def folder_inside(path: str, workspaces: Iterable[Path]) -> Generator[OpenFolder]:
    """Open a folder that lies inside one of the workspaces; raises `FolderRefused`."""
    file = _open(path)
    try:
        real = real_path(file, path)
        root = _workspace_of(real, workspaces)
        root_file = _open_above(file, root, len(real.parts) - len(root.parts))
    except BaseException:
        os.close(file)
        raise
    try:
        yield OpenFolder(file=file, path=real, workspace=root, workspace_file=root_file)
    finally:
        os.close(root_file)
        os.close(file)


def _open_above(file: int, path: Path, steps: int) -> int:
    """The folder so many steps above an open one, which is the one at `path`. No path is followed
    on the way, so that it holds the open folder for certain.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    above = os.dup(file)
    try:
        for _ in range(steps):
            below, above = above, os.open("..", flags, dir_fd=above)
            os.close(below)
        is_there = real_path(above, str(path)) == path
    except (OSError, FolderRefused):
        is_there = False
    if not is_there:
        os.close(above)
        raise FolderRefused(f"the folder {path} cannot be opened, or was replaced meanwhile")
    return above


def real_path(file: int, path: str) -> Path:
    """Where an open folder is, free of symlinks."""
    if sys.platform == "linux":
        return Path(os.readlink(f"/proc/self/fd/{file}"))  # noqa: PTH115 - no path, a link of proc
    found = Path(path).resolve()
    if not os.path.samestat(found.stat(), os.fstat(file)):
        raise FolderRefused(f"the folder {path!r} was replaced while it was opened")
    return found


def _open(path: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FolderRefused(f"expected a folder to work in, got {path!r}: {reason}") from error
    if not stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise FolderRefused(f"expected a folder to work in, got {path!r}")
    return file


def _workspace_of(real: Path, workspaces: Iterable[Path]) -> Path:
    roots = [workspace.resolve() for workspace in workspaces]
    inside = [root for root in roots if real == root or root in real.parents]
    if not inside:
        wanted = ", ".join(str(root) for root in roots) or "none is allowed"
        raise FolderRefused(
            f"{real} is not in an allowed workspace ({wanted}); add its workspace to use it"
        )
    return max(inside, key=lambda root: len(root.parts))


_SHELL: Final = "/bin/sh"
_GATE: Final = 'IFS= read -r go && exec "$@"; exit 125'
_GATE_WITHOUT_INPUT: Final = 'IFS= read -r go && exec "$@" </dev/null; exit 125'

OPEN_GATE: Final = b"\n"


class Launched(msgspec.Struct, kw_only=True, frozen=True):
    """A process at its gate and our ends of its pipes."""

    popen: "subprocess.Popen[bytes]"
    stdin: int
    stdout: int
    stderr: int

    @property
    def pid(self) -> int:
        return self.popen.pid

    def discard(self) -> None:
        """Let go of a process that never passed its gate."""
        for file in (self.stdin, self.stdout, self.stderr):
            os.close(file)
        self.popen.kill()
        self.popen.wait()


def launch(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: OpenFolder,
    takes_input: bool,
    inherited: Sequence[int] = (),
) -> Launched:
    """Start `argv` up to its gate; raises `NotStarted`."""
    gate = _GATE if takes_input else _GATE_WITHOUT_INPUT
    with ExitStack() as theirs, ExitStack() as ours:
        their_in, our_in = _pipe(theirs, ours)
        our_out, their_out = _pipe(ours, theirs)
        our_err, their_err = _pipe(ours, theirs)
        try:
            popen = subprocess.Popen(  # noqa: S603 - arguments are never read as shell
                [_SHELL, "-c", gate, "factwire", *argv],
                cwd=_working_directory(folder),
                env=dict(environment),
                stdin=their_in,
                stdout=their_out,
                stderr=their_err,
                start_new_session=True,
                pass_fds=tuple(inherited),
            )
        except OSError as error:
            raise NotStarted(f"{argv[0]} could not be started: {error.strerror}") from error
        ours.pop_all()
    return Launched(popen=popen, stdin=our_in, stdout=our_out, stderr=our_err)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    reader.callback(os.close, ends[0])
    writer.callback(os.close, ends[1])
    return ends


def _working_directory(folder: OpenFolder) -> str:
    """The opened folder itself, so that nobody can swap it; its path where that has no name."""
    if sys.platform == "linux":
        return f"/proc/self/fd/{folder.file}"
    return str(folder.path)

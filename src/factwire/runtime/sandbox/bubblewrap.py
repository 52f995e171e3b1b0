"""The command line of bubblewrap, from what is wanted; pure.

Mounts are made from the outside in, so that a folder inside another one wins over it: a workspace
in a hidden home is there, and hidden data in a workspace is not. The session is already new (the
process leads its own, without a terminal); bubblewrap making another would take the program out of
its group, and SIGTERM would not reach it.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec

MountKind = Literal["empty", "no-file", "read", "write"]

_NAMESPACES: Final = ("user", "pid", "ipc", "uts")


class Mount(msgspec.Struct, frozen=True):
    """A folder that is emptied, a file that is emptied, or something that is shown."""

    kind: MountKind
    path: str


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine's bubblewrap can do beyond what every sandbox needs."""

    cgroup_namespace: bool = True
    no_nested_namespaces: bool = True
    system_call_filter: bool = True


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the command line depends on."""

    program: str
    network: bool
    features: Features
    mounts: tuple[Mount, ...]
    scratch_bytes: int
    folder: str | None = None
    status_file: int | None = None
    seccomp_file: int | None = None
    process_limit: tuple[str, int] | None = None
    """Where the `prlimit` tool is, and how many processes there may be: the count begins inside,
    where only those inside are counted."""


def bubblewrap_argv(wanted: Wanted) -> list[str]:
    """The arguments up to where the program inside begins."""
    argv = [wanted.program, *(f"--unshare-{name}" for name in namespaces(wanted))]
    if wanted.features.no_nested_namespaces:
        argv.append("--disable-userns")
    argv += ["--cap-drop", "ALL", "--die-with-parent"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Settings of the kernel are files there, and one that root may write runs programs outside.
    argv += ["--remount-ro", "/proc"]
    # Memory that is shared by name has a bound, and the folder around it takes nothing.
    argv += ["--size", str(wanted.scratch_bytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108 - a private one
    for mount in ordered(wanted.mounts):
        argv += _mount(mount, wanted.scratch_bytes)
    if wanted.folder is not None:
        argv += ["--chdir", wanted.folder]
    for option, file in (("json-status-fd", wanted.status_file), ("seccomp", wanted.seccomp_file)):
        if file is not None:
            argv += [f"--{option}", str(file)]
    argv.append("--")
    if wanted.process_limit is not None:
        tool, count = wanted.process_limit
        argv += [tool, f"--nproc={count}:{count}", "--"]
    return argv


def namespaces(wanted: Wanted) -> list[str]:
    """The namespaces that are new inside."""
    names: list[str] = [*_NAMESPACES]
    if wanted.features.cgroup_namespace:
        names.append("cgroup")
    if not wanted.network:
        names.append("net")
    return names


def ordered(mounts: Sequence[Mount]) -> list[Mount]:
    """Outer folders first; at one place what is hidden is made first and what is shown wins."""
    ranks: dict[MountKind, int] = {"empty": 0, "no-file": 1, "read": 2, "write": 3}
    return sorted(
        set(mounts), key=lambda m: (len(PurePosixPath(m.path).parts), m.path, ranks[m.kind])
    )


def _mount(mount: Mount, scratch_bytes: int) -> list[str]:
    match mount.kind:
        case "empty":
            return ["--size", str(scratch_bytes), "--tmpfs", mount.path]
        case "no-file":
            return ["--ro-bind", "/dev/null", mount.path]
        case "read":
            return ["--ro-bind", mount.path, mount.path]
        case "write":
            return ["--bind", mount.path, mount.path]

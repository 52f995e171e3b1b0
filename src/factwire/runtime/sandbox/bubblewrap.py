"""The command line of bubblewrap and its filter of system calls, from what is wanted; pure."""

import struct
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Literal, NamedTuple

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
    bind_open_folder: bool = True


class BubblewrapOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the command line depends on."""

    program: str
    network: bool
    features: Features
    mounts: tuple[Mount, ...]
    scratch_bytes: int
    folder: str | None = None
    status_file: int | None = None
    seccomp_file: int | None = None
    open_folder: tuple[str, int] | None = None
    """A writable folder by its path, and the open file that it is: between looking at a path and
    mounting it, somebody may put another folder there."""
    process_limit: tuple[str, int] | None = None
    """Where the `prlimit` tool is, and how many processes there may be: the count begins inside,
    where only those inside are counted."""


def build_bubblewrap_argv(wanted: BubblewrapOptions) -> list[str]:
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
    for mount in order_mounts(wanted.mounts):
        path, file = wanted.open_folder or (None, None)
        is_open = mount == Mount("write", path or "") and wanted.features.bind_open_folder
        held = ["--bind-fd", str(file), mount.path]
        argv += held if is_open else _mount(mount, wanted.scratch_bytes)
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


def namespaces(wanted: BubblewrapOptions) -> list[str]:
    """The namespaces that are new inside."""
    names: list[str] = [*_NAMESPACES]
    if wanted.features.cgroup_namespace:
        names.append("cgroup")
    if not wanted.network:
        names.append("net")
    return names


def order_mounts(mounts: Sequence[Mount]) -> list[Mount]:
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


_LOAD: Final = 0x20
_EQUALS: Final = 0x15
_AT_LEAST: Final = 0x35
_HAS_BITS: Final = 0x45
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_EPERM: Final = 1
_ENOSYS: Final = 38

_NUMBER: Final = 0
_MACHINE: Final = 4
_ARGUMENTS: Final = 16

_SET_ID_BITS: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000
_FIRST_FOREIGN: Final = 0x40000000
_TERMINAL_REQUESTS: Final = (0x5412, 0x541C)

Instruction = tuple[int, int, int, int]


class SystemCallNumbers(NamedTuple):
    """Numbers of system calls on one kind of machine, and where their mode stands."""

    code: int
    absent: tuple[int, ...]
    modes: dict[int, int]
    opens: dict[int, tuple[int, int]]
    ioctl: int


_MACHINES: Final = {
    "x86_64": SystemCallNumbers(
        code=0xC000003E,
        absent=(248, 249, 250, 425, 437),
        modes={90: 1, 91: 1, 268: 2, 452: 2, 133: 1, 259: 2, 85: 1},
        opens={2: (1, 2), 257: (2, 3)},
        ioctl=16,
    ),
    "aarch64": SystemCallNumbers(
        code=0xC00000B7,
        absent=(217, 218, 219, 425, 437),
        modes={52: 1, 53: 2, 452: 2, 33: 2},
        opens={56: (2, 3)},
        ioctl=29,
    ),
}
"""absent: add_key, request_key, keyctl, io_uring_setup, openat2. modes: call → argument with the
mode. opens: call → arguments with the flags and the mode."""


def system_call_filter(machine: str) -> bytes | None:
    """The filter for a machine as `uname -m` calls it; None for one that we do not know."""
    known = _MACHINES.get(machine)
    if known is None:
        return None
    program = _preamble(known)
    for number in known.absent:
        program += _when(number, [_answer(_ENOSYS)])
    for number, mode in known.modes.items():
        program += _when(number, _refuse_set_id(mode))
    for number, (flags, mode) in known.opens.items():
        check = _refuse_set_id(mode)
        skipped = (_HAS_BITS, 0, len(check) - 1, _CREATES)
        program += _when(number, [_argument(flags), skipped, *check])
    program += _when(known.ioctl, _refuse_typing())
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _preamble(machine: SystemCallNumbers) -> list[Instruction]:
    """Calls in the manner of another machine would have other numbers."""
    return [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUALS, 1, 0, machine.code),
        _answer(_ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _FIRST_FOREIGN),
        _answer(_ENOSYS),
    ]


def _when(number: int, block: list[Instruction]) -> list[Instruction]:
    return [(_LOAD, 0, 0, _NUMBER), (_EQUALS, 0, len(block), number), *block]


def _refuse_set_id(argument: int) -> list[Instruction]:
    return [
        _argument(argument),
        (_HAS_BITS, 0, 1, _SET_ID_BITS),
        _answer(_EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse_typing() -> list[Instruction]:
    first, second = _TERMINAL_REQUESTS
    return [
        _argument(1),
        (_EQUALS, 1, 0, first),
        (_EQUALS, 0, 1, second),
        _answer(_EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _answer(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)

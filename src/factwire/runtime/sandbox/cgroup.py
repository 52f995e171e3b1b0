"""Control groups: a bound on all processes of a sandbox together, where we may make one.

A limit on processes by user does not hold for root, and a limit on memory by process not for many
processes. A control group bounds both, in either version. Where the file system of groups is not
ours to write to, there is none, and the sandbox says so.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

Controller = Literal["pids", "memory"]

_MOUNT: Final = Path("/sys/fs/cgroup")
_FILES: Final[dict[Controller, tuple[str, str]]] = {
    "pids": ("pids.max", "pids.max"),
    "memory": ("memory.limit_in_bytes", "memory.max"),
}
"""Controller → the file with its bound in version 1 and in version 2."""


class Cgroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group that was made for one process, and the controllers that hold in it."""

    path: str
    controllers: tuple[Controller, ...]

    def join(self, pid: int) -> None:
        (Path(self.path) / "cgroup.procs").write_text(str(pid))


def make_cgroups(
    name: str, bounds: dict[Controller, int], *, mount: Path = _MOUNT
) -> tuple[list[Cgroup], dict[Controller, str]]:
    """The groups that could be made, and why a bound could not be."""
    made: list[Cgroup] = []
    missing: dict[Controller, str] = {}
    for controller, bound in bounds.items():
        reason = "control groups are not writable here"
        for folder, file in _places(mount, controller):
            try:
                made.append(_make(folder / name, file, controller, bound))
                break
            except OSError as error:
                reason = f"{folder}: {error.strerror}"
        else:
            missing[controller] = reason
    return made, missing


def remove_cgroup(path: str) -> bool:
    """Kill what is left in a group and remove it; False while something is still dying."""
    with suppress(OSError, ValueError):
        for pid in (Path(path) / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    try:
        os.rmdir(path)  # noqa: PTH106 - a group is removed although it shows files
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _make(path: Path, file: str, controller: Controller, bound: int) -> Cgroup:
    if not (path.parent / "cgroup.procs").exists():
        raise FileNotFoundError(2, "there is no such hierarchy")
    path.mkdir(exist_ok=True)
    try:
        # Opened without creating: a controller that is not on has no file.
        descriptor = os.open(path / file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, str(bound).encode())
        finally:
            os.close(descriptor)
    except OSError:
        remove_cgroup(str(path))
        raise
    return Cgroup(path=str(path), controllers=(controller,))


def _places(mount: Path, controller: Controller) -> list[tuple[Path, str]]:
    """Folders to try, innermost first, each with the name of its file."""
    old, new = _FILES[controller]
    own_old, own_new = _own_groups(controller)
    return [
        (mount / controller / own_old, old),
        (mount / own_new, new),
        (mount / Path(own_new).parent, new),
    ]


def _own_groups(controller: Controller) -> tuple[str, str]:
    """Where this process is in the hierarchies of version 1 and 2."""
    old = new = ""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, place = line.split(":", 2)
            if controller in names.split(","):
                old = place.lstrip("/")
            elif not names:
                new = place.lstrip("/")
    return old, new

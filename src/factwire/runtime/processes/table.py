"""The table of processes, as Linux shows it under /proc.

A pid alone names nobody: it is given to another process later. A pid with the time at which it was
started is one process for as long as the machine runs. Elsewhere there is no such table, and what
cannot be known is None.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_ZOMBIE: Final = frozenset("ZX")


class Entry(NamedTuple):
    """A process: `started` counts clock ticks since the machine did."""

    pid: int
    state: str
    parent: int
    group: int
    started: int

    @property
    def alive(self) -> bool:
        return self.state not in _ZOMBIE


def entry_of(pid: int) -> Entry | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name in brackets may itself hold brackets and spaces.
    fields = text[text.rindex(")") + 2 :].split()
    return Entry(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[19]))


def entries() -> Iterator[Entry]:
    """Every process that can be seen."""
    if not _PROC.is_dir():
        return
    for name in os.listdir(_PROC):  # noqa: PTH208 - hundreds of names, few of them paths
        if name.isdecimal() and (entry := entry_of(int(name))):
            yield entry


def members(group: int) -> list[Entry]:
    """The living processes of a process group."""
    return [entry for entry in entries() if entry.group == group and entry.alive]


def carries(pid: int, variable: str) -> bool:
    """Whether a process was started with `NAME=value` in its environment, as far as we may see."""
    with suppress(OSError):
        return variable.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def this_boot() -> str | None:
    """An id of this run of the machine."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return None


def this_pid_namespace() -> int | None:
    """Which numbering our pids belong to: containers on one machine have their own."""
    with suppress(OSError):
        return (_PROC / "self/ns/pid").stat().st_ino
    return None

"""SIGTERM to a group. Bubblewrap would take it as its own end and kill what runs inside at once,
so in a sandbox everybody in the group gets it but bubblewrap.
"""

import os
import signal
from contextlib import suppress

from factwire.runtime.processes.reaper import kill_exactly
from factwire.runtime.processes.table import Entry, members


def terminate_group(group: int, *, sandboxed: bool) -> None:
    """Ask every program of the group to end; the leader must not have been asked for yet."""
    if not sandboxed:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGTERM)
        return
    for entry in inside(group, members(group)):
        kill_exactly(entry, signal.SIGTERM)


def inside(leader: int, group: list[Entry]) -> list[Entry]:
    """The group without bubblewrap: without its leader and the first process of the sandbox."""
    outer = {leader, *(entry.pid for entry in group if entry.parent == leader)}
    return [entry for entry in group if entry.pid not in outer]

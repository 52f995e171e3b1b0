"""The reaper: ends what a Factwire that was killed left behind, and never anybody else.

A group is killed when its leader is the very process of the record (same pid, same start) or a
process carries the id of the record in its environment. A pid that was given to somebody else since
has another start and is left alone. Where the system does not tell (no /proc, another container),
nothing is killed and the record stays.
"""

import os
import signal
from contextlib import suppress
from typing import Literal

import msgspec

from factwire.runtime.processes import limits
from factwire.runtime.processes.environment import MARKER
from factwire.runtime.processes.records import ProcessRecord, RecordFolder
from factwire.runtime.processes.table import (
    Entry,
    carries,
    entries,
    entry_of,
    this_boot,
    this_pid_namespace,
)
from factwire.runtime.sandbox.cgroup import remove_cgroup

Outcome = Literal["killed", "gone", "owned", "unknown"]


class Reaped(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a record: its processes were killed, were gone, still have their owner, or
    nobody can say.
    """

    process_id: str
    outcome: Outcome
    pids: tuple[int, ...] = ()


def reap(folder: RecordFolder) -> list[Reaped]:
    """Deal with every record of an owner that is gone."""
    return [_reap(record, folder) for record in list(folder.records())]


def _reap(record: ProcessRecord, folder: RecordFolder) -> Reaped:
    outcome = _outcome(record)
    pids: set[int] = set()
    if outcome == "killed":
        pids = _kill_all(record)
        outcome = "killed" if pids else "gone"
    if outcome in ("killed", "gone"):
        for cgroup in record.cgroups:
            remove_cgroup(cgroup)
        folder.remove(record.process_id)
    return Reaped(process_id=record.process_id, outcome=outcome, pids=tuple(sorted(pids)))


def _outcome(record: ProcessRecord) -> Outcome:
    boot = this_boot()
    if boot is None or record.boot is None or record.started is None:
        return "unknown"
    if record.boot != boot:
        return "gone"
    if record.namespace != this_pid_namespace():
        return "unknown"
    return "owned" if _is_same(entry_of(record.owner), record.owner_started) else "killed"


def _is_same(entry: Entry | None, started: int | None) -> bool:
    return entry is not None and entry.alive and entry.started == started


def _kill_all(record: ProcessRecord) -> set[int]:
    killed: set[int] = set()
    for _ in range(limits.REAP_ROUNDS):
        found = _left_behind(record)
        if not found:
            break
        for entry in found:
            kill_exactly(entry, signal.SIGKILL)
        killed.update(entry.pid for entry in found)
    return killed


def _left_behind(record: ProcessRecord) -> list[Entry]:
    leader = entry_of(record.pid)
    # While the leader is there, dead or alive, the number of the group is nobody else's.
    is_ours = leader is not None and leader.started == record.started
    variable = f"{MARKER}={record.process_id}"
    return [
        entry
        for entry in entries()
        if entry.alive and ((is_ours and entry.group == record.pid) or carries(entry.pid, variable))
    ]


def kill_exactly(entry: Entry, number: signal.Signals) -> None:
    """Send a signal to this process, and not to one that got its pid a moment ago."""
    with suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(entry.pid)
        try:
            again = entry_of(entry.pid)
            if again is not None and again.started == entry.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

"""The reaper: ends what a Factwire that was killed left behind, and never anybody else.

What was started is on disk before it runs; a process is the recorded one only if its start
time, boot and namespace are.
"""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from factwire.journal.atomic_files import replace_file
from factwire.runtime.processes import limits
from factwire.runtime.processes.process_launch import MARKER
from factwire.runtime.sandbox.sandbox import remove_cgroup

_PROC: Final = Path("/proc")
_ZOMBIE: Final = frozenset("ZX")


class ProcessEntry(NamedTuple):
    """A process: `started` counts clock ticks since the machine did."""

    pid: int
    state: str
    parent: int
    group: int
    started: int

    @property
    def alive(self) -> bool:
        return self.state not in _ZOMBIE


def find_entry(pid: int) -> ProcessEntry | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name in brackets may itself hold brackets and spaces.
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessEntry(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[19]))


def entries() -> Iterator[ProcessEntry]:
    """Every process that can be seen."""
    if not _PROC.is_dir():
        return
    for name in os.listdir(_PROC):  # noqa: PTH208 - hundreds of names, few of them paths
        if name.isdecimal() and (entry := find_entry(int(name))):
            yield entry


def list_members(group: int) -> list[ProcessEntry]:
    """The living processes of a process group."""
    return [entry for entry in entries() if entry.group == group and entry.alive]


def has_variable(pid: int, variable: str) -> bool:
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


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A process group and its owner. What the system does not tell is None."""

    process_id: str
    pid: int
    started: int | None = None
    boot: str | None = None
    namespace: int | None = None
    owner: int
    owner_started: int | None = None
    cgroups: tuple[str, ...] = ()


def build_record(process_id: str, pid: int, cgroups: tuple[str, ...] = ()) -> ProcessRecord:
    """The record of a process that leads its group and that we own."""
    entry, owner = find_entry(pid), find_entry(os.getpid())
    return ProcessRecord(
        process_id=process_id,
        pid=pid,
        started=entry.started if entry else None,
        boot=this_boot(),
        namespace=this_pid_namespace(),
        owner=os.getpid(),
        owner_started=owner.started if owner else None,
        cgroups=cgroups,
    )


class RecordFolder:
    """One file a process; readable by its user alone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, record: ProcessRecord) -> None:
        """Write so that it survives a loss of power: the file, then its name."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._file(record.process_id), msgspec.json.encode(record))

    def remove(self, process_id: str) -> None:
        """Forget; that this itself is not synced only makes a later reaper look once more."""
        self._file(process_id).unlink(missing_ok=True)

    def records(self) -> Iterator[ProcessRecord]:
        """All that can be read; a torn file is one whose program never ran."""
        for path in sorted(self.path.glob("*.json")):
            with suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode(path.read_bytes(), type=ProcessRecord)

    def _file(self, process_id: str) -> Path:
        return self.path / f"{process_id}.json"


ReapOutcome = Literal["killed", "gone", "owned", "unknown"]


class Reaped(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a record: its processes were killed, were gone, still have their owner, or
    nobody can say.
    """

    process_id: str
    outcome: ReapOutcome
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


def _outcome(record: ProcessRecord) -> ReapOutcome:
    boot = this_boot()
    if boot is None or record.boot is None or record.started is None:
        return "unknown"
    if record.boot != boot:
        return "gone"
    if record.namespace != this_pid_namespace():
        return "unknown"
    return "owned" if _is_same(find_entry(record.owner), record.owner_started) else "killed"


def _is_same(entry: ProcessEntry | None, started: int | None) -> bool:
    return entry is not None and entry.alive and entry.started == started


def _kill_all(record: ProcessRecord) -> set[int]:
    killed: set[int] = set()
    for _ in range(limits.REAP_ROUNDS):
        found = _find_left_behind(record)
        if not found:
            break
        for entry in found:
            kill_exactly(entry, signal.SIGKILL)
        killed.update(entry.pid for entry in found)
    return killed


def _find_left_behind(record: ProcessRecord) -> list[ProcessEntry]:
    leader = find_entry(record.pid)
    # While the leader is there, dead or alive, the number of the group is nobody else's.
    is_ours = leader is not None and leader.started == record.started
    variable = f"{MARKER}={record.process_id}"
    return [
        entry
        for entry in entries()
        if entry.alive
        and ((is_ours and entry.group == record.pid) or has_variable(entry.pid, variable))
    ]


def kill_exactly(entry: ProcessEntry, number: signal.Signals) -> None:
    """Send a signal to this process, and not to one that got its pid a moment ago."""
    with suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(entry.pid)
        try:
            again = find_entry(entry.pid)
            if again is not None and again.started == entry.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def terminate_group(group: int) -> None:
    """Ask every program of the group to end; the leader must not have been asked for yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)


def terminate_sandboxed(leader: int) -> None:
    """Ask every program in a sandbox to end, whatever group it has gone to."""
    for entry in list_sandboxed(leader):
        kill_exactly(entry, signal.SIGTERM)


def list_sandboxed(leader: int) -> list[ProcessEntry]:
    """The living processes in the sandbox of a bubblewrap: all that descend from it, without the
    first, which is bubblewrap, too, and becomes the parent of those that lose theirs.
    """
    children: dict[int, list[ProcessEntry]] = {}
    for entry in entries():
        children.setdefault(entry.parent, []).append(entry)
    found: list[ProcessEntry] = []
    level = [entry.pid for entry in children.get(leader, ())]
    while level:
        below = [entry for pid in level for entry in children.get(pid, ())]
        found += below
        level = [entry.pid for entry in below]
    return [entry for entry in found if entry.alive]


@contextmanager
def hold_process(pid: int) -> Generator[None]:
    """Keep a child of ours from running; it can still be killed."""
    entry = find_entry(pid)
    if entry is not None:
        kill_exactly(entry, signal.SIGSTOP)
    try:
        yield
    finally:
        if entry is not None:
            kill_exactly(entry, signal.SIGCONT)

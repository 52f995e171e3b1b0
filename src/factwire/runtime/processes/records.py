"""Records: what was started, on disk before it runs.

If we are killed, whoever comes next finds here which processes we left behind. A record is written
and synced while the program still waits at its gate, and removed when nothing of it is left.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from factwire.runtime.processes.table import entry_of, this_boot, this_pid_namespace


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


def record_of(process_id: str, pid: int, cgroups: tuple[str, ...] = ()) -> ProcessRecord:
    """The record of a process that leads its group and that we own."""
    entry, owner = entry_of(pid), entry_of(os.getpid())
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
        unfinished = self.path / f"{record.process_id}.new"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, msgspec.json.encode(record))
            os.fsync(file)
        finally:
            os.close(file)
        unfinished.replace(self._file(record.process_id))
        self._sync()

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

    def _sync(self) -> None:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

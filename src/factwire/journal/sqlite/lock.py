"""One writing process for each journal, held by a lock that dies with its holder."""

import fcntl
import os
from contextlib import suppress

from factwire.journal.errors import JournalBusy


class WriterLock:
    """An exclusive lock on `PATH-lock`, in which the holder leaves its process id."""

    def __init__(self, path: str) -> None:
        self._file = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise JournalBusy(path, int(holder) if holder.isdigit() else None) from None
        # A full disk must not keep a journal from being opened; the lock itself is what counts.
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        os.close(self._file)

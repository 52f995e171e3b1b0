"""The end of a process, seen before it is forgotten.

A process that has ended keeps its pid until its parent has asked for it. As long as we have not,
the number of its group is nobody else's, and killing the group is safe. So the end is waited for
without asking.
"""

import asyncio
import os
import select
import sys
import threading
from contextlib import closing, suppress
from typing import Any


async def ended(pid: int) -> None:
    """Wait until our child has ended; it stays in the table."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    handle = _handle(pid)
    if handle is None:
        threading.Thread(target=_wait, args=(pid, loop, done), daemon=True).start()
        await done
        return
    try:
        loop.add_reader(handle, _set, done)
        await done
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _handle(pid: int) -> int | None:
    """A file that becomes readable when the process ends, where the system has such a thing."""
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


def _wait(pid: int, loop: asyncio.AbstractEventLoop, done: "asyncio.Future[None]") -> None:
    with suppress(OSError):
        if sys.platform == "linux":
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        else:
            _wait_by_queue(pid)
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_set, done)


def _wait_by_queue(pid: int) -> None:
    """The same on systems of the BSD family."""
    if sys.platform != "linux":
        with closing(select.kqueue()) as queue:
            end = select.kevent(
                pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, fflags=select.KQ_NOTE_EXIT
            )
            queue.control([end], 1)


def _set(done: "asyncio.Future[Any]") -> None:
    if not done.done():
        done.set_result(None)

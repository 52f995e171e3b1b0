"""A network without a way out: real agents run where nothing but loopback is.

The kernel holds it, for the whole tree of processes that a test starts, whatever an agent's
settings say. Each test has a network of its own, so ports never meet either.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NEW_NETWORK: Final = 0x40000000
"""CLONE_NEWNET."""

_SET_FLAGS: Final = 0x8914
"""SIOCSIFFLAGS."""

_UP_AND_RUNNING: Final = 0x1 | 0x40

_HINT: Final = "run them by `make test-agents`, on Linux, which asks for the rights that it needs"


@contextmanager
def loopback_only() -> Generator[None]:
    """Take this thread, and what it starts from now on, into a network that has only loopback."""
    system = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _require_success(system.unshare(_NEW_NETWORK), "a network of their own")
        try:
            _bring_up()
            yield
        finally:
            _require_success(
                system.setns(home, _NEW_NETWORK), "the way back to the network of the machine"
            )
    finally:
        os.close(home)


def interfaces() -> set[str]:
    """The network interfaces that there are here."""
    lines = Path("/proc/thread-self/net/dev").read_text("ascii").splitlines()[2:]
    return {line.partition(":")[0].strip() for line in lines}


def _bring_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14s", b"lo", _UP_AND_RUNNING, b""))


def _require_success(result: int, what: str) -> None:
    if result != 0:
        reason = os.strerror(ctypes.get_errno())
        raise OSError(f"real agents cannot be given {what}: {reason}; {_HINT}")

"""What is asked of a sandbox."""

from typing import Literal

import msgspec

from factwire.runtime.sandbox import limits

SandboxMode = Literal["off", "prefer", "require"]
"""prefer: run without one where none can be had, and say so. require: then refuse to run."""


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what runs inside; None asks for none."""

    processes: int | None = limits.PROCESSES
    memory_bytes: int | None = limits.MEMORY_BYTES
    file_bytes: int | None = limits.FILE_BYTES
    open_files: int | None = limits.OPEN_FILES


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`readable` are folders of the home that stay visible, `writable` are more folders to work
    in beside the workspace, `hidden` is more to hide.
    """

    mode: SandboxMode = "off"
    network: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    limits: SandboxLimits = SandboxLimits()

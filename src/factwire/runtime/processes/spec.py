"""What is asked of a process, and what it tells: plain values.

A program is a list of arguments, never a line for a shell: nothing in an argument is interpreted.
"""

from typing import Literal

import msgspec

from factwire.facts import Ref
from factwire.runtime.processes import limits
from factwire.runtime.processes.batches import Stream
from factwire.runtime.processes.errors import InvalidSpec
from factwire.runtime.sandbox.policy import SandboxPolicy

OutputMode = Literal["log", "protocol"]
"""log: text for people; redacted, capped and kept. protocol: text that a reader parses; complete,
as it is, and not kept. The program waits when its reader does."""

Rung = Literal["interrupt", "terminate", "kill"]


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One program to run. `cwd` must lie inside an allowed workspace."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    own_env_names: frozenset[str] = frozenset()
    stdin: bytes | Literal["none", "pipe"] = "none"
    output: OutputMode = "log"
    max_output: int = limits.OUTPUT_CAP
    time_limit: float | None = limits.TIME_LIMIT
    sandbox: SandboxPolicy = SandboxPolicy()

    def __post_init__(self) -> None:
        if isinstance(self.argv, str):
            raise InvalidSpec("argv is a list of arguments, got one string; no shell reads it")
        if not self.argv or not self.argv[0]:
            raise InvalidSpec("argv names a program first, got none")
        if len(self.argv) > limits.ARGUMENTS:
            raise InvalidSpec(f"at most {limits.ARGUMENTS} arguments, got {len(self.argv)}")
        if any("\0" in argument for argument in (*self.argv, self.cwd)):
            raise InvalidSpec("an argument or folder holds a NUL, which no program can be given")
        if self.max_output < 0 or (self.time_limit is not None and self.time_limit <= 0):
            raise InvalidSpec("max_output and time_limit are positive")


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """How long each step of stopping a program waits for it to end, in seconds."""

    interrupt: float = limits.INTERRUPT_SECONDS
    terminate: float = limits.TERMINATE_SECONDS
    kill: float = limits.KILL_SECONDS
    linger: float = limits.LINGER_SECONDS


class OutputPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Output of one stream; `offset` counts bytes of its log.

    A truncated piece is the last one with text: the log goes on, facts do not. When the program has
    ended, one more without text says how long the log became and under which ref it is.
    """

    stream: Stream
    offset: int
    text: str
    truncated: bool = False
    bytes_written: int | None = None
    ref: Ref | None = None


class InputPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Input that was written; `text` is absent unless the writer wanted it shown."""

    offset: int
    bytes: int
    text: str | None = None


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. `stopped` says why we ended it, `rung` how far that had to go."""

    exit_code: int | None = None
    signal: str | None = None
    stopped: str | None = None
    rung: Rung | None = None
    sandbox_failed: bool = False
    log_error: str | None = None

"""What is asked of a process, what it reports, and what it refuses: plain values.

Output comes in batches of whole characters: many small writes become few pieces, and nobody
waits noticeably for them.
"""

import codecs
from typing import Final, Literal

import msgspec

from factwire.facts import Ref
from factwire.runtime.processes import limits
from factwire.runtime.sandbox.sandbox_policy import SandboxPolicy


class ProcessError(Exception):
    """The root of every error that `factwire.runtime.processes` raises; `code` is stable."""

    code: str = "process_error"


class InvalidSpec(ProcessError):
    code = "invalid_spec"


class FolderRefused(ProcessError):
    code = "folder_refused"


class PlaceChanged(ProcessError):
    """Another folder is where the one was that was shown."""

    code = "place_changed"


class ProgramNotFound(ProcessError):
    code = "program_not_found"


class NotStarted(ProcessError):
    code = "not_started"


class InputClosed(ProcessError):
    code = "input_closed"


class LogUnavailable(ProcessError):
    code = "log_unavailable"


class ProcessStuck(ProcessError):
    code = "process_stuck"


_CONTINUATION_MASK: Final = 0xC0
_CONTINUATION: Final = 0x80


class Utf8Text:
    """Feed it the bytes of one stream; what it holds back is less than one character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        return self._decoder.decode(data)

    def end(self) -> str:
        """What is left of a character that never became whole."""
        return self._decoder.decode(b"", final=True)


def whole_characters(data: bytes, limit: int) -> int:
    """The length of the longest beginning of `data`, at most `limit`, that cuts no character."""
    if limit >= len(data):
        return len(data)
    end = max(limit, 0)
    while end > 0 and data[end] & _CONTINUATION_MASK == _CONTINUATION:
        end -= 1
    return end


Stream = Literal["stdout", "stderr"]

STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")

_LONGEST_CHARACTER: Final = 4


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Text of one stream; `offset` is where its first byte stands."""

    stream: Stream
    offset: int
    text: str


class Batches:
    """Gathers; knows the time only from its caller."""

    def __init__(self, *, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = max(size, _LONGEST_CHARACTER)
        self._waiting: dict[Stream, bytearray] = {}
        self._since = 0.0
        self.offsets: dict[Stream, int] = dict.fromkeys(STREAMS, 0)

    @property
    def due(self) -> float | None:
        """When what waits must go; None while nothing does."""
        return self._since + self._seconds if self._waiting else None

    def add(self, stream: Stream, data: bytes, now: float) -> list[Batch]:
        """Take whole characters; gives what must go at once."""
        if not data:
            return []
        if not self._waiting:
            self._since = now
        waiting = self._waiting.setdefault(stream, bytearray())
        waiting += data
        return self.flush() if len(waiting) >= self._size else []

    def flush(self) -> list[Batch]:
        """All that waits."""
        batches = [
            batch
            for stream, data in self._waiting.items()
            for batch in self._split_batches(stream, data)
        ]
        self._waiting.clear()
        return batches

    def _split_batches(self, stream: Stream, data: bytearray) -> list[Batch]:
        batches: list[Batch] = []
        content, at = bytes(data), 0
        while at < len(content):
            piece = content[at : at + self._size + 1]
            piece = piece[: whole_characters(piece, self._size)]
            batches.append(Batch(stream, self.offsets[stream], piece.decode()))
            self.offsets[stream] += len(piece)
            at += len(piece)
        return batches


OutputMode = Literal["log", "protocol"]
"""log: text for people; redacted, capped and kept. protocol: text that a reader parses; complete,
as it is, and not kept. The program waits when its reader does."""

StopStep = Literal["interrupt", "terminate", "kill"]


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One program to run. `cwd` must lie inside an allowed workspace; `folder_id` is which folder
    that is, as device and inode, where somebody was shown it. With `own_path`, PATH leads to no
    folder in which agents may write.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    own_env_names: frozenset[str] = frozenset()
    stdin: bytes | Literal["none", "pipe"] = "none"
    output: OutputMode = "log"
    max_output: int = limits.OUTPUT_CAP
    time_limit: float | None = limits.TIME_LIMIT
    sandbox: SandboxPolicy = SandboxPolicy()
    folder_id: str | None = None
    own_path: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.argv, str):
            raise InvalidSpec(
                "expected argv as a list of arguments, got one string; it is not passed to a shell"
            )
        if not self.argv or not self.argv[0]:
            raise InvalidSpec("expected a program as the first item of argv, got none")
        if len(self.argv) > limits.ARGUMENTS:
            raise InvalidSpec(
                f"expected at most {limits.ARGUMENTS} arguments, got {len(self.argv)}"
            )
        if any("\0" in argument for argument in (*self.argv, self.cwd)):
            raise InvalidSpec(
                "an argument or folder contains a NUL character, which cannot be passed to a "
                "program"
            )
        if self.max_output < 0 or (self.time_limit is not None and self.time_limit <= 0):
            raise InvalidSpec("max_output and time_limit must be positive")


class StopEscalation(msgspec.Struct, frozen=True, kw_only=True):
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
    rung: StopStep | None = None
    sandbox_failed: bool = False
    log_error: str | None = None

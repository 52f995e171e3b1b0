"""Logs: one line an event on standard error, with nothing secret in it.

JSON for machines, words for a terminal. Every value passes the redaction that facts pass, and the
secrets of this very process are taken out by name: a token in an error's text stays out of the log.
Warnings of libraries go the same way. Whoever embeds a server and sets up nothing hears warnings
only, as Python logs them.

A server never waits for whoever reads its log: lines for a pipe or a terminal wait in memory, up to
a limit. What goes beyond it is dropped and counted, and the count is a line once there is room.
"""

import json
import logging
import os
import re
import select
import stat
import sys
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any, Final, Literal, TextIO, cast

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from factwire.facts import REDACTED, redact_value
from factwire.serving.limits import LOG_END_SECONDS, LOG_WAITING_BYTES

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]

_OURS: Final = "factwire"
_PLAIN: Final = re.compile(r"[\w.:/{}*+@%~-]+", re.ASCII)
_UNSEEN: Final = re.compile(r"[^\n\t -~\u00a0-\ud7ff\ue000-\uffff\U00010000-\U0010ffff]")
_HIDDEN: Final[dict[str, int]] = {}


def logger(name: str) -> BoundLogger:
    """Where the parts of a server say something."""
    return cast(
        "BoundLogger",
        structlog.wrap_logger(
            logging.getLogger(name),
            processors=[structlog.stdlib.filter_by_level, *_OWN],
            wrapper_class=BoundLogger,
        ),
    )


def set_up_logs(
    level: LogLevel = "info", form: LogFormat = "auto", stream: TextIO | None = None
) -> None:
    """Send what a server says, and what libraries warn of, to standard error."""
    out = stream or sys.stderr
    is_text = form == "text" or (form == "auto" and out.isatty())
    render: Processor = render_text if is_text else structlog.processors.JSONRenderer()
    can_block = (number := _find_descriptor(out)) is not None
    handler = PipeLogHandler(number) if can_block else logging.StreamHandler(out)
    handler.setFormatter(ProcessorFormatter(foreign_pre_chain=_FOREIGN, processor=render))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel(level.upper())
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_OWN],
        wrapper_class=BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _find_descriptor(stream: TextIO) -> int | None:
    """The descriptor of a pipe, a socket or a terminal: only these have a reader that may stop."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return None
    return None if stat.S_ISREG(os.fstat(number).st_mode) else number


class PipeLogHandler(logging.Handler):
    """Has lines written by a thread of its own, which may wait where nobody else may."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._changed = Condition()
        self._bytes = 0
        self._dropped = 0
        self._is_writing = False
        # Not through the stream: its lock would be held by a thread that waits for ever.
        Thread(target=self._write_lines, name="factwire-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        except Exception:  # noqa: BLE001 - what cannot be logged stops no work, and is counted
            line = None
        with self._changed:
            if line is None or self._bytes + len(line) > LOG_WAITING_BYTES:
                self._dropped += 1
                return
            self._report_dropped()
            self._add(line)

    def flush(self) -> None:
        """Wait for the reader, but not for long: this is how a process ends."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._lines and not self._is_writing, LOG_END_SECONDS
            )

    def _add(self, line: bytes) -> None:
        self._lines.append(line)
        self._bytes += len(line)
        self._changed.notify_all()

    def _report_dropped(self) -> None:
        if self._dropped:
            count, self._dropped = self._dropped, 0
            event: EventDict = {"event": "log_lines_dropped", "lines": count}
            for process in _SHARED:
                event = cast("EventDict", process(None, "warning", event))
            record = logging.makeLogRecord({"msg": event, "_logger": None, "_name": "warning"})
            self._add(f"{self.format(record)}\n".encode())

    def _write_lines(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                line, self._is_writing = self._lines.popleft(), True
            is_written = self._write(line)
            with self._changed:
                self._is_writing = False
                self._bytes -= len(line)
                self._dropped += not is_written
                if not self._lines and is_written:
                    self._report_dropped()
                self._changed.notify_all()

    def _write(self, line: bytes) -> bool:
        """Whether all of a line was taken; a reader that is gone takes nothing."""
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                waiting = select.poll()
                waiting.register(self._descriptor, select.POLLOUT)
                waiting.poll()
            except OSError:
                return False
        return True


def hide_secret(secret: str) -> Callable[[], None]:
    """Keep a text out of every line from now on; returns how to stop that."""
    _HIDDEN[secret] = _HIDDEN.get(secret, 0) + 1

    def stop() -> None:
        _HIDDEN[secret] -= 1
        if not _HIDDEN[secret]:
            del _HIDDEN[secret]

    return stop


def redact_event(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The entry with what is, or looks like, a secret replaced."""
    redacted, _found = redact_value({name: _remove_hidden(value) for name, value in event.items()})
    return cast("EventDict", redacted)


def render_text(_: WrappedLogger, __: str, event: EventDict) -> str:
    """The entry as a line for people; what could steer a terminal is spelled out."""
    time, level = event.pop("timestamp", ""), str(event.pop("level", "")).upper()
    name, trace = _escape_unprintable(str(event.pop("event", ""))), event.pop("exception", None)
    fields = [f"{key}={_format_value(value)}" for key, value in event.items()]
    line = " ".join((f"{time} {level:<7}", name.replace("\n", "\\n"), *fields))
    return line if trace is None else f"{line}\n{_escape_unprintable(str(trace))}"


def _remove_hidden(value: Any) -> Any:
    if isinstance(value, str):
        for secret in _HIDDEN:
            value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, BaseException):
        return _remove_hidden(f"{type(value).__name__}: {value}")
    return value


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _escape_unprintable(text: str) -> str:
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_SHARED: Final[tuple[Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    redact_event,
)
_OWN: Final[tuple[Processor, ...]] = (*_SHARED, ProcessorFormatter.wrap_for_formatter)
_FOREIGN: Final[tuple[Processor, ...]] = (structlog.stdlib.add_logger_name, *_SHARED)
"""Libraries are named, so that it is plain who warns; their texts are theirs."""

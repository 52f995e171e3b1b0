"""Logs: one JSON object a line, on standard error, with nothing secret in it.

Every value passes the redaction that facts pass, so that a token in an error's text stays out of
the log as it stays out of the journal. Addresses are logged without their query.
"""

import logging
import sys
from typing import Any, Final, cast

import structlog
from structlog.typing import EventDict, WrappedLogger

from factwire.facts import redact_value

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def set_up_logs(level: str = "info") -> None:
    """Send what the Edge and the libraries under it log to standard error, as JSON."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        without_secrets,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processor=structlog.processors.JSONRenderer()
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)


def without_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The entry with what looks like a secret replaced."""
    redacted, _ = redact_value(dict(event))
    return cast("EventDict", redacted)

"""Times of a source, as facts state them: UTC, in milliseconds; one that cannot be read is none.

A time without a zone is taken for UTC, so that a recording reads the same on every machine.
"""

from datetime import UTC, datetime


def moment_of_text(given: str | None) -> str | None:
    """A time in ISO 8601."""
    try:
        moment = datetime.fromisoformat(given or "")
        return _stated(moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC))
    except (OverflowError, ValueError):
        return None


def moment_of_seconds(given: float | None) -> str | None:
    """Seconds since 1970."""
    if given is None:
        return None
    try:
        return _stated(datetime.fromtimestamp(given, UTC))
    except (OverflowError, OSError, ValueError):
        return None


def _stated(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

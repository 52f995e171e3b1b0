"""Times of items: ISO 8601 with an offset, or seconds or milliseconds since 1970.

A time without an offset is nobody's in particular and is not taken; nor is anything else that is no
time. Facts then keep the time of the item before.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final


def _from_iso(given: Any) -> datetime | None:
    if not isinstance(given, str):
        return None
    moment = datetime.fromisoformat(given)
    return moment if moment.tzinfo is not None else None


def _from_seconds(given: Any) -> datetime | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return datetime.fromtimestamp(given, UTC) if is_number else None


def _from_milliseconds(given: Any) -> datetime | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return datetime.fromtimestamp(given / 1_000, UTC) if is_number else None


UNITS: Final[dict[str, Callable[[Any], datetime | None]]] = {
    "iso": _from_iso,
    "milliseconds": _from_milliseconds,
    "seconds": _from_seconds,
}


def time_of(given: Any, unit: str) -> str | None:
    """A time as facts state it."""
    try:
        moment = UNITS[unit](given)
        shown = moment.astimezone(UTC) if moment else None
    except (OverflowError, OSError, ValueError):
        return None
    return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z") if shown else None

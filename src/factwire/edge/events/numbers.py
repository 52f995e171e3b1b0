"""Numbers of payloads: what is no number that JSON can carry and a reader can hold is absent."""

from math import isfinite
from typing import Any


def amount(payload: dict[str, Any], *names: str) -> float | None:
    """The first of these fields that is a number."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                continue
            if isfinite(number):
                return number
    return None


def whole(payload: dict[str, Any], *names: str) -> int | None:
    """The first of these fields that is a whole number."""
    found = (payload.get(name) for name in names)
    return next((value for value in found if type(value) is int), None)


def percent(share: float | None) -> float | None:
    """A share of one, in hundredths."""
    hundredths = None if share is None else share * 100
    return hundredths if hundredths is not None and isfinite(hundredths) else None

"""A computation that is given up when it takes too long; its thread is left behind as a daemon."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TookTooLong(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"took more than {seconds:g} s")


class _Answer(Generic[T]):
    value: T
    error: BaseException | None = None


def in_time(compute: Callable[[], T], seconds: float) -> T:
    """What the computation returns or raises, or `TookTooLong`."""
    answer: _Answer[T] = _Answer()

    def work() -> None:
        try:
            answer.value = compute()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            answer.error = error

    thread = threading.Thread(target=work, name="conformance-case", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TookTooLong(seconds)
    if answer.error is not None:
        raise answer.error
    return answer.value

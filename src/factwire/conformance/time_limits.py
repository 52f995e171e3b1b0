"""Work that is given up when it takes too long: a computation, or coroutines on their own loop.

An agent that blocks its event loop cannot take the run along. What is raised to end the process
ends the work only. Work that runs out of time is cancelled; if it does not go then, its thread is
left behind, as a daemon, and nothing more is given to it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar

from factwire.conformance.limits import GRACE_SECONDS

T = TypeVar("T")


class TookTooLong(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"took more than {seconds:g} s")


class _Answer(Generic[T]):
    value: T
    error: BaseException | None = None


def run_in_time(compute: Callable[[], T], seconds: float) -> T:
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


class OutOfTime(Exception):
    """`stuck` is whether the work could not even be cancelled."""

    def __init__(self, seconds: float, *, stuck: bool) -> None:
        self.stuck = stuck
        did = "blocked its event loop and could not be stopped" if stuck else "did not end"
        super().__init__(f"{did} within {seconds:g} s")


class TriedToExit(Exception):
    """The work raised what would have ended the process."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"tried to end the process: {type(error).__name__}: {error}")


class LoopThread:
    """Runs coroutines one after the other on one loop; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="conformance", daemon=True)
        self._leaving = False
        self.stuck = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        if not self.stuck:
            self._thread.join(GRACE_SECONDS)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """The result of the work, or `OutOfTime`."""
        ended = threading.Event()

        async def watch_work() -> T:
            try:
                return await work()
            except (SystemExit, KeyboardInterrupt) as error:
                raise TriedToExit(error) from error
            finally:
                ended.set()

        if self.stuck:
            raise OutOfTime(seconds, stuck=True)
        future = asyncio.run_coroutine_threadsafe(watch_work(), self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise  # The work's own, and not the end of its time.
        future.cancel()
        self.stuck = not ended.wait(GRACE_SECONDS)
        raise OutOfTime(seconds, stuck=self.stuck)

    def _run(self) -> None:
        """Unlike `asyncio.Runner`, wait for no thread of the loop's executor in the end."""
        asyncio.set_event_loop(self._loop)
        try:
            while not self._leaving:
                # A task that an agent began by itself may leave the loop; the others stay.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

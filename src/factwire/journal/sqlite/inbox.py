"""Jobs for one thread: any number of threads put them in, one takes all that has gathered.

Putting is an append and a look; only a taker that waits is woken. The taker says that it waits
before it looks a last time, so a job put in between is seen by one of the two looks.
"""

from collections import deque
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """In order of arrival; one thread alone may take."""

    def __init__(self) -> None:
        self._jobs: deque[T] = deque()
        self._waits = False
        self._bell: SimpleQueue[None] = SimpleQueue()

    def put(self, job: T) -> None:
        self._jobs.append(job)
        if self._waits:
            self._waits = False
            self._bell.put(None)

    def take(self, most: int) -> list[T]:
        """What there is, at least one and at most so many; waits for the first."""
        jobs = self._jobs
        while not jobs:
            self._waits = True
            if not jobs:
                self._bell.get()
        take = jobs.popleft
        return [take() for _ in range(min(most, len(jobs)))]

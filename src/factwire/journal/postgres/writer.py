"""Group commit: what callers bring while one commit is on its way makes up the next.

The next commit is put together as they bring it, on the ground of the one before, so that when that
one is durable the next has only to be sent. Callers are answered after their commit is durable, and
after the next, if there is one, has been sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from factwire.journal.admission import Entry
from factwire.journal.chunk import Chunk
from factwire.journal.errors import JournalClosed
from factwire.journal.group import Expected
from factwire.journal.postgres.commit import Attempt, Committer
from factwire.journal.postgres.rows import Place
from factwire.journal.postgres.session import Session
from factwire.journal.postgres.stage import Answer, Stage
from factwire.journal.protocol import Appended

_HALVED: Final = 256
"""Facts past which only half of those waiting are taken, so that while they are on their way there
are others to put together."""

_LONGEST_HOLD: Final = 0.005
"""Seconds for which an answer waits for the next commit to be sent, should the server be gone."""


class Request(msgspec.Struct, gc=False):
    """A batch and the one who waits for it."""

    entries: list[Entry]
    expected: Expected | None
    done: asyncio.Future[Appended]
    due: float


class Ahead(msgspec.Struct):
    """The commit after the one that is on its way."""

    stage: Stage
    group: list[Request]

    def takes(self, request: Request) -> bool:
        """Put a request in, if there is room and all is known that admission asks for."""
        stage = self.stage
        if stage.full or request.expected or not stage.knows(request.entries):
            return False
        stage.take(request.entries, None)
        self.group.append(request)
        return True


class Writer:
    """Takes requests from any number of callers on one event loop."""

    def __init__(
        self,
        session: Session,
        journal: int,
        *,
        patience: float,
        on_commit: Callable[[Place, Chunk], None],
    ) -> None:
        self._session = session
        self._patience = patience
        self._on_commit = on_commit
        self._committer = Committer(journal, self._flies)
        self._waiting: deque[Request] = deque()
        self._ahead: Ahead | None = None
        self._brought = asyncio.Event()
        self._closing = False
        self._held: tuple[list[Request], Sequence[Answer]] | None = None
        """Callers whose commit is durable and who are answered as soon as the next has been sent:
        what they do then takes the time that the server needs for it."""
        self._hold: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._work())

    def append(self, entries: list[Entry], expected: Expected | None) -> asyncio.Future[Appended]:
        """A future that is done when the batch is durable or refused."""
        if self._closing:
            raise JournalClosed("the journal is closed")
        loop = self._loop
        done: asyncio.Future[Appended] = loop.create_future()
        request = Request(entries, expected, done, loop.time() + self._patience)
        # Those who wait already come first.
        if self._waiting or self._ahead is None or not self._ahead.takes(request):
            self._waiting.append(request)
        self._brought.set()
        return done

    async def close(self) -> None:
        """Write what callers wait for, then end."""
        self._closing = True
        self._brought.set()
        await self._task

    def forget(self) -> None:
        """Look again where the journal ends before the next commit."""
        self._committer.forget()

    async def _work(self) -> None:
        while True:
            ahead, self._ahead = self._ahead, None
            if ahead is not None and ahead.group:
                await self._write(ahead.group, ahead.stage)
            elif self._waiting:
                await self._write(self._next_group(), None)
            elif self._closing:
                return
            else:
                self._brought.clear()
                await self._brought.wait()

    async def _write(self, group: list[Request], prepared: Stage | None) -> None:
        attempt = Attempt([(each.entries, each.expected) for each in group], prepared)
        try:
            stage = await self._session.run(
                lambda link: self._committer.write(link, attempt), due=group[0].due
            )
        except Exception as error:  # noqa: BLE001 - it is the callers' to handle
            self._committer.forget()
            self._answer_held()
            _fail(group, error)
            return
        self._answer_held()
        self._committer.remember(stage)
        if stage.chunk is not None:
            self._on_commit(stage.end(), stage.chunk)
        answered = len(stage.answers)
        if answered < len(group):
            self._put_back(group[answered:])
        self._held = (group[:answered], stage.answers)
        if self._ahead is None or not self._ahead.group:
            self._answer_held()
        else:
            self._hold = self._loop.call_later(_LONGEST_HOLD, self._answer_held)

    def _answer_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            _answer(*held)
        if self._hold is not None:
            self._hold.cancel()

    def _put_back(self, rest: list[Request]) -> None:
        """Requests that no longer fitted in their commit; all others came after them."""
        ahead, self._ahead = self._ahead, None
        later = ahead.group if ahead else []
        self._waiting.extendleft(reversed([*rest, *later]))

    def _flies(self, stage: Stage) -> None:
        """A commit is on its way: answer those of the one before, and begin the next."""
        self._answer_held()
        # What stood on an earlier attempt at this commit has lost its ground.
        self._put_back([])
        self._ahead = Ahead(self._committer.ahead_of(stage), [])
        while self._waiting and self._ahead.takes(self._waiting[0]):
            self._waiting.popleft()

    def _next_group(self) -> list[Request]:
        facts = sum(len(request.entries) for request in self._waiting)
        most = max(_HALVED, facts // 2)
        group: list[Request] = []
        while self._waiting and most > 0:
            group.append(self._waiting.popleft())
            most -= len(group[-1].entries)
        return group


def _answer(group: list[Request], answers: Sequence[Answer]) -> None:
    for request, answer in zip(group, answers, strict=True):
        if request.done.done():
            continue
        if isinstance(answer, Appended):
            request.done.set_result(answer)
        else:
            request.done.set_exception(answer)


def _fail(group: list[Request], error: Exception) -> None:
    for request in group:
        if not request.done.done():
            request.done.set_exception(error)

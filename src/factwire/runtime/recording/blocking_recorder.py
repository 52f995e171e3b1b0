"""`BlockingRecorder`: the recorder for loops that are not async.

The async one runs in a thread of its own; every call here waits until it is done there, so that an
error is raised where it was caused.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from factwire.journal import Journal
from factwire.projection import ProjectionState
from factwire.runtime.provider import Decision
from factwire.runtime.recording.recorder import Recorder
from factwire.runtime.recording.turn_recorder import CallRecorder, TurnRecorder

Done = TypeVar("Done")
Entered = TypeVar("Entered")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def wait(self, work: Callable[[], Awaitable[Done]]) -> Done:
        async def run() -> Done:
            return await work()

        return self._result(run())

    def call(self, work: Callable[..., Done], *args: Any, **named: Any) -> Done:
        async def run() -> Done:
            return work(*args, **named)

        return self._result(run())

    def _result(self, work: Coroutine[Any, Any, Done]) -> Done:
        try:
            coming = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            # The recorder is closed, and nobody else would ever begin or close this.
            work.close()
            raise
        return coming.result()

    @contextmanager
    def enter(self, manager: AbstractAsyncContextManager[Entered]) -> Generator[Entered]:
        inner = self.wait(manager.__aenter__)
        try:
            yield inner
        except BaseException as error:
            failure = error
            if not self.wait(
                lambda: manager.__aexit__(type(failure), failure, failure.__traceback__)
            ):
                raise
        else:
            self.wait(lambda: manager.__aexit__(None, None, None))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingCall:
    """One call of a tool."""

    def __init__(self, loop: _Loop, call: CallRecorder) -> None:
        self._loop = loop
        self.recorded = call

    def output(self, piece: str, stream: str = "stdout") -> None:
        self._loop.call(self.recorded.output, piece, stream)

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self._loop.call(self.recorded.progress, message, done, total)

    def result(self, output: object = None, *, summary: str | None = None) -> None:
        self._loop.call(self.recorded.result, output, summary=summary)

    def fail(self, category: str, message: str) -> None:
        self._loop.call(self.recorded.fail, category, message)


class BlockingTurn:
    """One turn, or what a subagent does of it."""

    def __init__(self, loop: _Loop, turn: TurnRecorder) -> None:
        self._loop = loop
        self.recorded = turn

    def text(self, piece: str) -> None:
        self._loop.call(self.recorded.text, piece)

    def say(self, text: str) -> None:
        self._loop.call(self.recorded.say, text)

    def reasoning(self, summary: str) -> None:
        self._loop.call(self.recorded.reasoning, summary)

    def plan(self, text: str) -> None:
        self._loop.call(self.recorded.plan, text)

    def status(self, message: str, phase: str | None = None) -> None:
        self._loop.call(self.recorded.status, message, phase)

    def cost(self, **used: Any) -> None:
        self._loop.call(self.recorded.cost, **used)

    def warning(self, message: str, *, code: str | None = None) -> None:
        self._loop.call(self.recorded.warning, message, code=code)

    @contextmanager
    def tool(self, name: str, args: dict[str, Any] | None = None) -> Generator[BlockingCall]:
        with self._loop.enter(self.recorded.tool(name, args)) as call:
            yield BlockingCall(self._loop, call)

    @contextmanager
    def subagent(self, name: str, task: str) -> Generator["BlockingTurn"]:
        with self._loop.enter(self.recorded.subagent(name, task)) as inner:
            yield BlockingTurn(self._loop, inner)

    def ask(self, prompt: str, *, call: BlockingCall | None = None, **how: Any) -> Decision:
        of = call.recorded if call else None
        return self._loop.wait(lambda: self.recorded.ask(prompt, call=of, **how))

    def artifact(self, title: str, content: bytes | str, **what: Any) -> str:
        return self._loop.wait(lambda: self.recorded.artifact(title, content, **what))

    def evidence(self, title: str, **what: Any) -> str:
        return self._loop.wait(lambda: self.recorded.evidence(title, **what))


class BlockingRecorder:
    """Records turns of one thread from code that is not async; a context manager. It takes what
    `Recorder` takes.
    """

    def __init__(self, journal: str | Journal, **settings: Any) -> None:
        self.recorded = Recorder(journal, **settings)
        self._loop = _Loop()

    @property
    def thread_id(self) -> str:
        return self.recorded.thread_id

    @property
    def state(self) -> ProjectionState:
        """What has been recorded comes to."""
        return self.recorded.state

    def __enter__(self) -> Self:
        try:
            self._loop.wait(self.recorded.__aenter__)
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._loop.wait(lambda: self.recorded.__aexit__(kind, error, trace))
        finally:
            self._loop.close()

    @contextmanager
    def turn(self, prompt: str, *, turn_id: str | None = None) -> Generator[BlockingTurn]:
        with self._loop.enter(self.recorded.turn(prompt, turn_id=turn_id)) as turn:
            yield BlockingTurn(self._loop, turn)

    def flush(self) -> None:
        """Wait until everything recorded so far is durable; raises what kept it from being so."""
        self._loop.wait(self.recorded.flush)

    def ask(self, prompt: str, *, call: BlockingCall | None = None, **how: Any) -> Decision:
        """Ask a person within the turn that is under way."""
        of = call.recorded if call else None
        return self._loop.wait(lambda: self.recorded.ask(prompt, call=of, **how))

    def approval(self, action_id: str) -> Decision:
        """The decision on a request that was recorded before, by an earlier process too."""
        return self._loop.wait(lambda: self.recorded.approval(action_id))

    def decide(
        self, action_id: str, decision: str, *, by: str, reason: str | None = None
    ) -> Decision:
        """Answer an open request."""
        return self._loop.wait(
            lambda: self.recorded.decide(action_id, decision, by=by, reason=reason)
        )

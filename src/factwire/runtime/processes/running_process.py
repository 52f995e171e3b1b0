"""A process: one program that runs, everything it says, and its certain end, seen before it is
forgotten.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

from factwire.runtime.processes.limits import SANDBOX_POLL_SECONDS
from factwire.runtime.processes.process_output import (
    LogFolder,
    ProcessEvent,
    ProcessFeed,
    ProcessLog,
    ProcessOutput,
    ReadPipe,
    WritePipe,
)
from factwire.runtime.processes.process_reaper import (
    hold_process,
    list_sandboxed,
    terminate_group,
    terminate_sandboxed,
)
from factwire.runtime.processes.process_spec import (
    Exit,
    InputClosed,
    InputPiece,
    OutputPiece,
    ProcessSpec,
    ProcessStuck,
    StopEscalation,
    StopStep,
    Stream,
)
from factwire.runtime.sandbox.sandbox import SandboxPlan


async def wait_until_ended(pid: int) -> None:
    """Wait until our child has ended; it stays in the table."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    handle = _handle(pid)
    if handle is None:
        threading.Thread(target=_wait, args=(pid, loop, done), daemon=True).start()
        await done
        return
    try:
        loop.add_reader(handle, _set, done)
        await done
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _handle(pid: int) -> int | None:
    """A file that becomes readable when the process ends, where the system has such a thing."""
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


def _wait(pid: int, loop: asyncio.AbstractEventLoop, done: "asyncio.Future[None]") -> None:
    with suppress(OSError):
        if sys.platform == "linux":
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        else:
            _wait_by_queue(pid)
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_set, done)


def _wait_by_queue(pid: int) -> None:
    """The same on systems of the BSD family."""
    if sys.platform != "linux":
        with closing(select.kqueue()) as queue:
            end = select.kevent(
                pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, fflags=select.KQ_NOTE_EXIT
            )
            queue.control([end], 1)


def _set(done: "asyncio.Future[Any]") -> None:
    if not done.done():
        done.set_result(None)


Interrupt = Callable[["RunningProcess"], Awaitable[None]]


class RunningProcess:
    """Made by `Processes.start`. Read its output once, by `events` or by `output`."""

    def __init__(
        self,
        process_id: str,
        spec: ProcessSpec,
        *,
        cwd: str,
        popen: "subprocess.Popen[bytes]",
        stdin: WritePipe,
        feed: ProcessFeed[ProcessEvent],
        output: ProcessOutput,
        log: ProcessLog | None,
        logs: LogFolder,
        plan: SandboxPlan | None,
        ladder: StopEscalation,
        interrupt: Interrupt | None,
    ) -> None:
        self.process_id = process_id
        self.spec = spec
        self.plan = plan
        self.cwd = cwd
        self.on_interrupt = interrupt
        self._popen = popen
        self._stdin = stdin
        self._feed = feed
        self._output = output
        self._log = log
        self._logs = logs
        self._ladder = ladder
        self._ended = asyncio.Event()
        self._input_offset = 0
        self._stopped: str | None = None
        self._rung: StopStep | None = None
        self._pipes: dict[Stream, ReadPipe] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._supervision: asyncio.Task[Exit] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._limit: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return self._start_supervision.done() and not self._start_supervision.cancelled()

    def begin(self, pipes: dict[Stream, ReadPipe]) -> None:
        """Start to read, to wait and to count the time."""
        loop = asyncio.get_running_loop()
        self._pipes = pipes
        self._tasks = [
            loop.create_task(self._output.pump(pipe, stream)) for stream, pipe in pipes.items()
        ]
        self._supervision = loop.create_task(self._supervise())
        if self.spec.time_limit is not None:
            self._limit = loop.call_later(self.spec.time_limit, self._stop, "time_limit")
        if self.spec.stdin == "none":
            self._stdin.close()
        elif isinstance(self.spec.stdin, bytes):
            self._tasks.append(loop.create_task(self._give(self.spec.stdin)))

    async def events(self) -> AsyncIterator[ProcessEvent]:
        """Output and input in order, until the program has ended."""
        async for event in self._feed.read():
            yield event

    async def output(self) -> AsyncIterator[OutputPiece]:
        async for event in self._feed.read():
            if isinstance(event, OutputPiece):
                yield event

    async def write(self, data: bytes, *, shown: bool = False) -> None:
        """Write to standard input; raises `InputClosed`.

        What is typed may be a password, so its text stays out of facts unless `shown`.
        """
        if self.spec.stdin != "pipe":
            raise InputClosed("the program was started without input to write to")

        def record_input() -> None:
            text = data.decode("utf-8", "replace") if shown else None
            piece = InputPiece(offset=self._input_offset, bytes=len(data), text=text)
            self._input_offset += len(data)
            self._feed.put(piece)

        await self._stdin.write(data, written=record_input)

    async def close_input(self) -> None:
        """Tell the program that no more input comes."""
        await self._stdin.finish()

    async def read_log(self, stream: Stream, offset: int, length: int) -> bytes:
        """Bytes of a stream's log, also while it grows; raises `LogUnavailable`."""
        return await self._logs.read(self.process_id, stream, offset, length)

    async def wait(self) -> Exit:
        """How it ended, once all it said is in the log."""
        return await asyncio.shield(self._start_supervision)

    async def stop(self, reason: str = "stopped") -> Exit:
        """Down the ladder: the program's own interrupt, SIGTERM, SIGKILL; returns at its end."""
        if (stopping := self._stop(reason)) is not None:
            await asyncio.shield(stopping)
        return await self.wait()

    async def close(self, *, gently: bool = False) -> None:
        """End it now, or by the ladder, and let go of everything; safe to call again."""
        try:
            if gently and not self.has_ended:
                await self.stop("closed")
        finally:
            # From here on nothing can interrupt: a cancelled caller gets its cancellation after.
            await _finish(self._tear_down())

    @property
    def _start_supervision(self) -> "asyncio.Task[Exit]":
        assert self._supervision is not None, "begin was called"  # noqa: S101 - narrows the type
        return self._supervision

    def _stop(self, reason: str) -> "asyncio.Task[None] | None":
        if self._stopping is None and not self.has_ended:
            self._stopped = reason
            self._stopping = asyncio.get_running_loop().create_task(self._escalate())
        return self._stopping

    async def _escalate(self) -> None:
        if self.on_interrupt is not None:
            self._rung = "interrupt"
            if await self._ends(self._ladder.interrupt, self.on_interrupt(self)):
                return
        self._rung = "terminate"
        if await (self._ends_by_signal() if self.plan is None else self._ends_in_sandbox()):
            return
        self._rung = "kill"
        self._kill_group()
        if not await self._ends(self._ladder.kill):
            raise ProcessStuck(f"process {self.pid} is still running after SIGKILL")

    async def _ends_by_signal(self) -> bool:
        terminate_group(self.pid)
        return await self._ends(self._ladder.terminate)

    async def _ends_in_sandbox(self) -> bool:
        """Whether everything in the sandbox ends in time. Bubblewrap stands still meanwhile: it
        would end the sandbox with the command, whatever the command's children are still doing.
        """
        with hold_process(self.pid):
            terminate_sandboxed(self.pid)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ladder.terminate):
                    # Nobody but their parents, which are not us, hears of their ends.
                    while list_sandboxed(self.pid):  # noqa: ASYNC110 - so it is looked at again
                        await asyncio.sleep(SANDBOX_POLL_SECONDS)
            if list_sandboxed(self.pid):
                return False
        return await self._ends(self._ladder.terminate)

    async def _ends(self, seconds: float, asking: Awaitable[None] | None = None) -> bool:
        """Whether it ends in time. A question that fails is no answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if asking is not None:
                    with suppress(Exception):
                        await asking
                await self._ended.wait()
        return self.has_ended

    async def _supervise(self) -> Exit:
        try:
            return await self._run_to_end()
        finally:
            # Whatever went wrong here, nobody waits for more.
            self._feed.close()

    async def _run_to_end(self) -> Exit:
        await wait_until_ended(self.pid)
        self._ended.set()
        self._feed.lift()
        if self._limit is not None:
            self._limit.cancel()
        await self._drain()
        self._kill_group()
        # It has ended, so this does not wait; from here on its numbers may be somebody else's.
        code = self._popen.wait()
        self._stdin.close()
        if self.plan is not None:
            await self.plan.leave(self._ladder.kill)
        await self._output.finish()
        if self._log is not None:
            self._log.close()
        for pump in self._tasks[: len(self._pipes)]:
            pump.result()
        return Exit(
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            stopped=self._stopped,
            rung=self._rung,
            sandbox_failed=self.plan is not None and not self.plan.did_run(),
            log_error=self._log.error if self._log else None,
        )

    async def _drain(self) -> None:
        """Read to the end. Who still writes is killed; who left the group is not waited for."""
        pumps = self._tasks[: len(self._pipes)]
        _, pending = await asyncio.wait(pumps, timeout=self._ladder.linger)
        self._kill_group()
        while pending:
            _, pending = await asyncio.wait(pending, timeout=self._ladder.linger)
            for pipe in self._pipes.values():
                if pending and pipe.is_idle:
                    pipe.close()

    def _kill_group(self) -> None:
        """Safe as long as the leader was not asked for, dead or alive."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _give(self, data: bytes) -> None:
        with suppress(InputClosed):
            await self._stdin.write(data)
        self._stdin.close()

    async def _tear_down(self) -> None:
        if not self._start_supervision.done():
            self._stopped = self._stopped or "closed"
            self._rung = "kill"
            self._feed.abandon()
            self._kill_group()
            await asyncio.wait(
                [self._start_supervision], timeout=self._ladder.kill + self._ladder.linger
            )
        if self._limit is not None:
            self._limit.cancel()
        rest: list[asyncio.Task[Any]] = [
            task for task in (self._stopping, *self._tasks, self._start_supervision) if task
        ]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        self._stdin.close()
        for pipe in self._pipes.values():
            pipe.close()
        if self._log is not None:
            self._log.close()
        self._feed.close()


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"SIG{number}"


async def _finish(work: "Awaitable[None]") -> None:
    """Do it to its end, even when whoever waits is cancelled meanwhile, also twice."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()

"""`Outbox`: what was seen, on its way to where facts are kept, in a thread of its own.

The program only appends bytes to a queue. While nothing can be sent, the queue grows to its
bound; what comes then is dropped as lines, before it is a fact, so that the facts of a run are
sound whatever is missing between them, and the next line of the run says how many are. The end
of a run is never dropped once its beginning was taken. A sink is used by the one thread that
sends; nothing leaves unredacted. `SinkUnavailable` means that the same facts may be taken
later, `SinkRefused` that they never will be.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from factwire.facts import Fact
from factwire.sources.kit.observed_run import ObservedRun, log

WAITING_BYTES: Final = 32 * 1024 * 1024
"""Bytes that wait to be sent; what comes while they do is dropped and counted."""

LINE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of one thing that happened; an Edge takes a body of twice that."""

BATCH_BYTES: Final = 2 * 1024 * 1024
"""Bytes of lines that are sent together: many small requests cost more than one."""

BATCH_FACTS: Final = 2_000
"""Facts that are sent together; an Edge takes five times as many."""

FIRST_PAUSE: Final = 0.2
"""Seconds before the second try to reach where facts go; then twice as long each time."""

LONGEST_PAUSE: Final = 5.0
"""Seconds between tries, so that an Edge that is back is found soon."""

EXIT_SECONDS: Final = 5.0
"""Seconds that the end of a program may be held up to send what is left."""

WAITING_RUNS: Final = 1_024
"""Runs that ended at a question and may go on; the oldest is taken to have been given up."""


PrepareFact = Callable[[Fact], list[Fact]]
"""Makes a fact of one run fit to be sent; with it come notes on what was mended."""


class SinkUnavailable(Exception):
    """Nobody takes facts there now."""


class SinkRefused(Exception):
    """These facts are not taken."""


class FactSink(Protocol):
    def make_reader(self) -> PrepareFact:
        """What facts of one run go through first."""
        ...

    def send(self, facts: list[Fact]) -> None:
        """Send facts, all or none; raises `SinkUnavailable` or `SinkRefused`."""
        ...

    def close(self) -> None: ...


_CLOSING: Final = (b'{"type":"run.c', b'{"type":"run.f', b'{"type":"run.i')
_STARTING: Final = b'{"type":"run.s'
_END: Final = b""
"""In the place of a line: nothing more comes of this run."""


class ObservedLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a run; `dropped` counts those before it that were not taken."""

    run: ObservedRun
    at: str
    data: bytes
    dropped: int


class Outbox:
    """Takes lines from any thread, and sends facts from one."""

    def __init__(
        self, sink: "Callable[[], FactSink]", *, waiting_bytes: int = WAITING_BYTES
    ) -> None:
        self._make_sink = sink
        self._most = waiting_bytes
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._lines: deque[ObservedLine] = deque()
        self._bytes = 0
        self._taken = 0
        self._sent = 0
        self._lost_runs = 0
        self._deadline: float | None = None
        self._thread: threading.Thread | None = None

    def put(self, run: ObservedRun, at: str, data: bytes) -> None:
        """Take a line, or count it as dropped."""
        self._be_born()
        with self._changed:
            if not self._has_room_for(run, data):
                self._drop(run, data)
                return
            lost, self._lost_runs = self._lost_runs, 0
            self._lines.append(ObservedLine(run, at, data, run.dropped + lost))
            run.dropped, run.has_begun = 0, True
            self._bytes += len(data)
            self._taken += 1
            self._start()
            self._changed.notify_all()

    def end(self, run: ObservedRun) -> None:
        """Nothing more comes of a run."""
        if run.has_begun:
            self.put(run, run.builder.at, _END)

    def flush(self, seconds: float) -> bool:
        """Wait until all that was seen so far is sent; whether it is."""
        self._be_born()
        with self._changed:
            wanted = self._taken
            return self._changed.wait_for(lambda: self._sent >= wanted, seconds)

    def close(self, seconds: float) -> bool:
        """Send what is left, for so long; whether all of it is sent."""
        self._be_born()
        with self._changed:
            self._deadline = time.monotonic() + seconds
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(seconds + 1.0)
        return self._sent >= self._taken

    def _be_born(self) -> None:
        """After a fork nobody sends in the child; what waited is its parent's to send."""
        if self._pid != os.getpid():
            self._begin()

    def _has_room_for(self, run: ObservedRun, data: bytes) -> bool:
        if self._deadline is not None or len(data) > LINE_BYTES:
            return False
        if run.has_begun and (data == _END or data.startswith(_CLOSING)):
            return True
        return self._bytes + len(data) <= self._most and (
            run.has_begun or data.startswith(_STARTING)
        )

    def _drop(self, run: ObservedRun, data: bytes) -> None:
        if not run.has_begun:
            self._lost_runs += data.startswith(_STARTING)
            return
        if not run.dropped:
            log.warning("%d bytes are waiting to be sent; new events are not observed", self._bytes)
        run.dropped += 1

    def _start(self) -> None:
        if self._thread is None:
            # It must not keep a program alive; `close` is called at its exit.
            self._thread = threading.Thread(target=self._run, name="factwire-observe", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        sending = _Sender(self._make_sink(), self._pause)
        try:
            while batch := self._next_batch():
                if not sending.send(batch):
                    return
                with self._changed:
                    self._sent += len(batch)
                    self._changed.notify_all()
        finally:
            sending.close()

    def _next_batch(self) -> list[ObservedLine]:
        """Lines that are sent together; none when it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._deadline is not None)
            batch: list[ObservedLine] = []
            size = 0
            if self._is_late():
                return batch
            while self._lines and size < BATCH_BYTES and len(batch) < BATCH_FACTS:
                batch.append(self._lines.popleft())
                size += len(batch[-1].data)
            self._bytes -= size
            return batch

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try; whether there may be one."""
        with self._changed:
            self._changed.wait_for(self._is_late, seconds)
            return not self._is_late()

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline


class _Sender:
    """Turns lines into facts, and sends them until they are there."""

    def __init__(self, sink: FactSink, pause: "Callable[[float], bool]") -> None:
        self._sink = sink
        self._pause = pause
        self._reads: dict[int, PrepareFact] = {}
        self._refused: set[str] = set()

    def send(self, batch: list[ObservedLine]) -> bool:
        """Send what lines mean; False when time is up."""
        facts: list[Fact] = []
        for seen in batch:
            try:
                facts += self._build_facts(seen)
            except Exception:  # noqa: BLE001 - logged
                # A line that nobody can make sense of costs that line, not what follows.
                log.exception("an event could not be recorded")
        facts = [fact for fact in facts if fact.thread_id not in self._refused]
        starts = range(0, len(facts), BATCH_FACTS)
        return all(self._deliver_safely(facts[start : start + BATCH_FACTS]) for start in starts)

    def _deliver_safely(self, facts: list[Fact]) -> bool:
        try:
            return self._deliver(facts)
        except Exception:  # noqa: BLE001 - logged
            # The thread that sends goes on, whatever a sink does.
            log.exception("facts were not sent")
            return True

    def close(self) -> None:
        self._sink.close()

    def _build_facts(self, seen: ObservedLine) -> list[Fact]:
        run = seen.run
        read = self._reads.setdefault(id(run), self._sink.make_reader())
        run.builder.now = run.builder.at = seen.at
        if seen.dropped:
            _warn_dropped(run, seen.dropped)
        if seen.data == _END:
            run.converter.finish()
            run.builder.close_stream()
            del self._reads[id(run)]
        else:
            run.converter.take(msgspec.json.decode(seen.data, type=dict[str, Any]))
        return [each for fact in run.builder.drain() for each in read(fact)]

    def _deliver(self, facts: list[Fact]) -> bool:
        pause, was_away = FIRST_PAUSE, False
        while True:
            try:
                self._sink.send(facts)
            except SinkUnavailable as away:
                if not was_away:
                    log.warning("facts cannot be sent and are waiting: %s", away)
                was_away = True
                if not self._pause(pause):
                    log.error("%d facts were not sent: %s", len(facts), away)
                    return False
                pause = min(pause * 2, LONGEST_PAUSE)
            except SinkRefused as refused:
                return self._deliver_by_thread(facts, refused)
            else:
                if was_away:
                    log.warning("facts are being sent again")
                return True

    def _deliver_by_thread(self, facts: list[Fact], refused: SinkRefused) -> bool:
        """One thread that is refused must not cost the others theirs."""
        threads = dict.fromkeys(fact.thread_id or "" for fact in facts)
        if len(threads) == 1:
            self._refused.update(threads)
            log.error("facts of thread %s were rejected: %s", *threads, refused)
            return True
        parts = ([fact for fact in facts if (fact.thread_id or "") == name] for name in threads)
        return all(self._deliver(part) for part in parts)


def _warn_dropped(run: ObservedRun, count: int) -> None:
    message = f"{count} events were not observed, because too many bytes were waiting to be sent"
    payload = {"code": "observations_dropped", "message": message, "count": count}
    run.builder.add_fact("runtime.warning", payload)

"""Reducers: functions and programs that turn facts into a state document.

Expectations are written against the JSON of a state, so that an implementation in any language can
be judged by them. Facts go in as shape A, on top of a read model or not, followed by a newer one or
not; one JSON document comes out. A program answers one request and exits (`program_reducer`), or
answers one request a line until its input ends (`LinesReducer`).
"""

import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from queue import Empty, SimpleQueue
from typing import Any, Final, Self, cast

import msgspec

from factwire.conformance.case import (
    ConformanceError,
    FullReducer,
    Projector,
    Wire,
    factwire_projector,
)
from factwire.conformance.limits import CASE_SECONDS
from factwire.facts import Fact, InvalidFacts, LenientReader
from factwire.projection import encode_state, read_thread_model

_SHOWN: Final = 400
_WITHOUT_REPAIR: Final = 2
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class BrokenReducer(ConformanceError):
    """A program that should reduce facts did not answer with a state document."""

    code = "broken_reducer"


class NoRepair(BrokenReducer):
    """A reducer that has no place for a read model behind the facts."""

    code = "no_repair"


def to_reducer(projector: Projector) -> FullReducer:
    """A projector of Python objects, as a reducer of documents."""

    def reduce(
        events: Sequence[Wire],
        model: Wire | None,
        repair: Wire | None = None,
        *,
        complete: bool = False,
    ) -> Wire:
        facts = _read_events(events)
        state = call_reducer(
            projector,
            facts,
            None if model is None else read_thread_model(model),
            None if repair is None else read_thread_model(repair),
            complete=complete,
        )
        return msgspec.json.decode(encode_state(state))

    return reduce


def _read_events(events: Sequence[Wire]) -> list[Fact]:
    """Facts as a reader of files reads them: what seed 000 makes optional may be left out."""
    reader = LenientReader("facts", lambda: events)
    readings = [reader.feed(event) for event in events]
    issues = [issue for reading in readings if reading.fact is None for issue in reading.issues]
    if issues:
        raise InvalidFacts(issues)
    return [reading.fact for reading in readings if reading.fact is not None]


def call_reducer(
    reduce: Callable[..., Any],
    facts: Any,
    model: Any,
    repair: Any = None,
    *,
    complete: bool = False,
) -> Any:
    """The state that a reducer or projector makes. It is given what it has parameters for; a newer
    read model that it has no place for is an error.
    """
    positional, takes_complete = _parameters_of(reduce)
    options = {"complete": True} if complete and takes_complete else {}
    if repair is None:
        return reduce(facts, model, **options)
    if positional <= _WITHOUT_REPAIR:
        raise NoRepair("expected a third parameter, for a read model that comes after facts")
    return reduce(facts, model, repair, **options)


def _parameters_of(reduce: Callable[..., Any]) -> tuple[int, bool]:
    """How many positional parameters a function has, and whether it has one called `complete`."""
    found = signature(reduce).parameters.values()
    positional = [each for each in found if each.kind in _POSITIONAL and each.name != "complete"]
    return len(positional), any(each.name == "complete" for each in found)


factwire_reducer: Final = to_reducer(factwire_projector)
"""Factwire's own projection."""


def program_reducer(command: Sequence[str], seconds: float = CASE_SECONDS) -> FullReducer:
    """A program that reads `{"events": […], "readModel": …, "repair": …, "complete": …}` from its
    standard input and writes the state document. It is started for each request.
    """

    def reduce(
        events: Sequence[Wire],
        model: Wire | None,
        repair: Wire | None = None,
        *,
        complete: bool = False,
    ) -> Wire:
        request = _encode_request(events, model, repair, complete=complete)
        try:
            done = subprocess.run(  # noqa: S603 - the caller's own program
                command, input=request, capture_output=True, timeout=seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BrokenReducer(f"expected {command[0]} to answer: {error}") from error
        if done.returncode:
            stderr = done.stderr[-_SHOWN:].decode("utf-8", "replace")
            raise BrokenReducer(
                f"expected {command[0]} to succeed, got {done.returncode}: {stderr}"
            )
        return _decode_document(done.stdout)

    return reduce


class LinesReducer:
    """A program that speaks JSON lines: for each request on a line of its standard input, as in
    `program_reducer`, it writes the state document on one line. It is started at the first request
    and again after it has failed one; leaving the context ends it.
    """

    def __init__(self, command: Sequence[str], seconds: float = CASE_SECONDS) -> None:
        self._command = list(command)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the reducer

    def __call__(
        self,
        events: Sequence[Wire],
        model: Wire | None,
        repair: Wire | None = None,
        *,
        complete: bool = False,
    ) -> Wire:
        request = _encode_request(events, model, repair, complete=complete)
        process = self._process or self._start()
        try:
            cast("Any", process.stdin).write(request + b"\n")
            cast("Any", process.stdin).flush()
            line = self._lines.get(timeout=self._seconds)
        except (OSError, Empty) as error:
            self.stop()
            raise BrokenReducer(
                f"expected {self._command[0]} to answer within {self._seconds:g} s"
                f"{self._error_text()}"
            ) from error
        if not line:
            self.stop()
            raise BrokenReducer(
                f"expected {self._command[0]} to answer, and it exited{self._error_text()}"
            )
        return _decode_document(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._stderr.close()

    def stop(self) -> None:
        """End the program; the next request starts it again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                cast("Any", pipe).close()

    def _start(self) -> "subprocess.Popen[bytes]":
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller's own program
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
            )
        except OSError as error:
            raise BrokenReducer(f"expected {self._command[0]} to start: {error}") from error
        lines: SimpleQueue[bytes] = SimpleQueue()

        def read_lines() -> None:
            try:
                for line in cast("Any", process.stdout):
                    lines.put(line)
            except (OSError, ValueError):
                pass  # The pipe was closed because the program is being stopped.
            lines.put(b"")

        threading.Thread(target=read_lines, name="conformance-reducer", daemon=True).start()
        self._process, self._lines = process, lines
        return process

    def _error_text(self) -> str:
        self._stderr.flush()
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - _SHOWN))
        text = self._stderr.read().decode("utf-8", "replace").strip()
        return f": {text}" if text else ""


def _encode_request(
    events: Sequence[Wire], model: Wire | None, repair: Wire | None, *, complete: bool
) -> bytes:
    request = {"events": events, "readModel": model, "repair": repair, "complete": complete}
    return msgspec.json.encode(request)


def _decode_document(text: bytes) -> Wire:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BrokenReducer(f"expected a state document on standard output: {error}") from error
    if not isinstance(found, dict):
        raise BrokenReducer(f"expected a state document, got {type(found).__name__}")
    return cast("Wire", found)

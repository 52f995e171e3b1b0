"""A long stream takes no more memory than a short one."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.facts.samples import complete, wire

MEGABYTE = 1024 * 1024

# Resident memory at its highest, told by the process itself when it ends. Not from getrusage, which
# counts what the forking process held before the program was started.
MEASURED = """
import atexit, pathlib, re, sys
from factwire.cli import main
status = pathlib.Path("/proc/self/status")
peak = lambda: re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text())[1]
atexit.register(lambda: print("peak", peak(), file=sys.stderr))
main()
"""


def write_stream(path: Path, megabytes: int) -> int:
    """Turns of text deltas with a tool call each: new ids, new turns, growing sequences."""
    text = "word " * 110
    facts = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * MEGABYTE:
            turn = f"turn_{facts}"
            chunk: list[bytes] = []
            for name in ("turn.started", "tool.started", "tool.result", *["model.delta"] * 60):
                facts += 1
                value = complete(name, facts, payload={"delta": text}, turnId=turn)
                chunk.append(msgspec.json.encode(value))
            facts += 1
            chunk.append(msgspec.json.encode(complete("turn.completed", facts, turnId=turn)))
            file.write(b"\n".join(chunk) + b"\n")
    return facts


def peak_memory(*arguments: str | Path) -> tuple[int, bytes]:
    """Kilobytes at the highest, and what was printed."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)],
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    *_, peak = done.stderr.split()
    return int(peak), done.stdout


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("cli.validate.constant-memory")
def test_ten_times_the_stream_takes_the_same_memory(tmp_path: Path):
    peaks: list[int] = []
    for megabytes in (20, 200):
        path = tmp_path / f"{megabytes}.ndjson"
        facts = write_stream(path, megabytes)
        peak, out = peak_memory("validate", path, "--json")
        assert msgspec.json.decode(out) == {"valid": True, "issues": [], "facts": facts}
        peaks.append(peak)
        path.unlink()
    small, large = peaks
    # The windows of ids fill up to their bound between the two; nothing else may grow.
    assert large <= small * 1.5 + 16 * 1024


@pytest.mark.fault
@pytest.mark.requirement("cli.validate.constant-memory")
def test_a_stream_of_nothing_but_issues_takes_bounded_memory(tmp_path: Path):
    peaks: list[int] = []
    for count in (20_000, 80_000):
        path = tmp_path / f"{count}.ndjson"
        with path.open("wb") as file:
            for number in range(count):
                value = wire("tool.result", 3 * number, threadId=f"t{number % 7}")
                file.write(msgspec.json.encode(value) + b"\n")
        peak, out = peak_memory("validate", path, "--json")
        report = msgspec.json.decode(out)
        assert len(report["issues"]) == 10_000
        peaks.append(peak)
    small, large = peaks
    assert large <= small * 1.5 + 16 * 1024


@pytest.mark.fault
@pytest.mark.requirement("cli.validate.constant-memory")
def test_the_measure_bites(tmp_path: Path):
    """The same facts as one document must be held in memory, and the measure shows it."""
    peaks: list[int] = []
    for megabytes in (2, 40):
        lines = tmp_path / "x.ndjson"
        write_stream(lines, megabytes)
        array = tmp_path / "x.json"
        array.write_bytes(b"[" + b",".join(lines.read_bytes().splitlines()) + b"]")
        peaks.append(peak_memory("validate", array, "--json")[0])
    small, large = peaks
    assert large > small * 1.5 + 16 * 1024


@pytest.mark.requirement("cli.validate.constant-memory")
@pytest.mark.parametrize(
    "arguments",
    [("validate", "FILE"), ("convert", "FILE", "--from", "claude-code"), ("project", "FILE")],
    ids=lambda arguments: arguments[0],
)
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, arguments: tuple[str, ...]
):
    path = tmp_path / "endless.ndjson"
    with path.open("wb") as file:
        file.truncate(1024 * MEGABYTE)
    command = [path if each == "FILE" else each for each in arguments]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)],
        capture_output=True,
        timeout=280,
        check=False,
    )
    *words, _, peak = done.stderr.decode().split()
    assert (done.returncode, " ".join(words).endswith("longer than 67108864 bytes")) == (2, True)
    assert int(peak) < 400 * 1024

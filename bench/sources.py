"""Recorded streams of other agents to facts, as `factwire convert` does it, on one core.

A stream is a real recording in which one piece of the answer comes many times over, because pieces
are what long streams consist of; a source that has none gives its whole recording over and over.
The baseline reads the same lines as JSON and writes them again: what any program pays that only
looks at them.
"""

import resource
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.measure import Row, rates
from factwire.sources import (
    SOURCE_NAMES,
    FactBuilder,
    Source,
    convert_recording,
    find_source,
    read_items,
)

_FOLDER = Path(__file__).resolve().parent.parent / "examples" / "recordings"
_COUNT = 20_000
_LONGER = 10


def rows() -> list[Row]:
    found = [row for name in sorted(SOURCE_NAMES) for row in _measure_speed(find_source(name))]
    return [*found, _memory(find_source("claude-code"))]


def _measure_speed(source: Source) -> list[Row]:
    before, piece, after = _split_recording(source)
    lines = [*before, *piece * (_COUNT // max(len(piece), 1)), *after]
    items = sum(1 for _ in read_items(lines, source.framing))
    measured = rates(
        {
            "facts": lambda: _convert_lines(source, lines, items),
            "json": lambda: _read(source, lines, items),
        },
        rounds=3,
    )
    ratio = measured["facts"] / measured["json"]
    goal = "≥ 50,000" if source.framing == "lines" else ""
    name = f"{source.name} to facts"
    base = "JSON read and written"
    return [
        Row(
            name=name,
            value=measured["facts"],
            unit="items/s",
            ratio=ratio,
            baseline=base,
            goal=goal,
        )
    ]


def _memory(source: Source) -> Row:
    """What a stream of ten times as many turns takes at its peak, in a process of its own."""
    few, many = (_peak(source, count) for count in (1_000, 1_000 * _LONGER))
    return Row(
        name=f"{source.name}, peak of a stream {_LONGER} times as long",
        value=many / 1024,
        unit="MiB",
        ratio=many / few,
        baseline="the shorter one",
        goal="≤ 1.2",
    )


def _peak(source: Source, count: int) -> int:
    argv = [sys.executable, "-m", "bench.sources", source.name, str(count)]
    return int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)  # noqa: S603


def _play(name: str, count: int) -> None:
    """Convert a recording so many times over, and print what that took at its peak, in KiB."""
    source = find_source(name)
    lines = _find_recording(source).read_bytes().splitlines(keepends=True)
    repeated = (line for _ in range(count) for line in lines)
    for _ in convert_recording(source, repeated, thread_id="bench"):
        pass
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _convert_lines(source: Source, lines: list[bytes], items: int) -> int:
    for _ in convert_recording(source, lines, thread_id="bench"):
        pass
    return items


def _read(source: Source, lines: list[bytes], items: int) -> int:
    for item in read_items(lines, source.framing):
        msgspec.json.encode(item)
    return items


def _split_recording(source: Source) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """A recording up to a piece of text, that piece, and the rest."""
    paths = sorted(
        (_FOLDER / source.name).glob("*.jsonl" if source.framing == "lines" else "*.sse")
    )
    for path in paths:
        frames = _frames(source, path.read_bytes().splitlines(keepends=True))
        telling = FactBuilder(source.name, thread_id="bench")
        converter = source.converter(telling)
        for place, frame in enumerate(frames):
            for item in read_items(frame, source.framing):
                if isinstance(item, dict):
                    converter.take(item)
            if [fact.event_class for fact in telling.drain()] == ["model.delta"]:
                return _flat(frames[:place]), frame, _flat(frames[place + 1 :])
    return [], _find_recording(source).read_bytes().splitlines(keepends=True), []


def _recordings(source: Source) -> list[Path]:
    suffix = "jsonl" if source.framing == "lines" else "sse"
    return sorted((_FOLDER / source.name).glob(f"*.{suffix}"))


def _find_recording(source: Source) -> Path:
    """The one of a plain answer, where there is one."""
    found = _recordings(source)
    return next((path for path in found if path.stem == "text"), found[0])


def _frames(source: Source, lines: list[bytes]) -> list[list[bytes]]:
    if source.framing == "lines":
        return [[line] for line in lines]
    frames: list[list[bytes]] = [[]]
    for line in lines:
        frames[-1].append(line)
        if not line.strip():
            frames.append([])
    return frames


def _flat(frames: list[list[bytes]]) -> list[bytes]:
    return [line for frame in frames for line in frame]


if __name__ == "__main__":
    _play(sys.argv[1], int(sys.argv[2]))

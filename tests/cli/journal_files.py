"""Journals in files, and the command line run on them, in this process or in one of its own."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw
import msgspec
import pytest

from factwire.cli import main
from factwire.facts.fact import Fact
from factwire.journal import open_journal
from factwire.journal.sqlite.schema import Database


class JournalOutput(msgspec.Struct):
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    def json(self) -> Any:
        return msgspec.json.decode(self.out)


class CommandLine:
    """`factwire journal …` in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch) -> None:
        self._capture = capture
        self._patch = patch

    def __call__(self, *arguments: object, stdin: bytes = b"") -> JournalOutput:
        self._patch.setattr(sys, "argv", ["factwire", "journal", *map(str, arguments)])
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capture.readouterr()
        code = ended.value.code
        return JournalOutput(code if isinstance(code, int) else 0, out, err.decode())


@pytest.fixture
def journal(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    return CommandLine(capsysbinary, monkeypatch)


def start_command(*arguments: object) -> subprocess.Popen[bytes]:
    """`factwire journal …` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from factwire.cli import main; main()", "journal"]
        + [str(argument) for argument in arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"},
    )


def fact(number: int, **fields: Any) -> Fact:
    thread = fields.pop("thread_id", "t1")
    return Fact(
        id=f"f{number}",
        kind="model",
        status="running",
        title=fields.pop("title", f"Fact {number}"),
        created_at="2026-06-10T09:00:00.000Z",
        schema_version="factwire-fact/v1",
        runtime_id="r",
        event_class=fields.pop("event_class", "run.status"),
        thread_id=thread,
        **fields,
    )


def streamed_turn(first: int, thread: str, turn: str, deltas: int = 5) -> list[Fact]:
    """A finished turn whose increments compaction may drop, all but the first."""
    ids: dict[str, Any] = {"thread_id": thread, "turn_id": turn, "message_id": "m"}
    increments = [
        fact(first + 1 + n, event_class="model.delta", payload={"text": f"{n} "}, **ids)
        for n in range(deltas)
    ]
    last = first + 1 + deltas
    return [
        fact(first, event_class="turn.started", **ids),
        *increments,
        fact(last, event_class="model.completed", payload={"text": "0 1 2 3 4 "}, **ids),
        fact(last + 1, event_class="turn.completed", **ids),
    ]


def request(number: int, thread: str, action: str) -> Fact:
    return fact(number, event_class="action.required", thread_id=thread, action_id=action)


Place = TypeVar("Place", Path, str)


def make(path: Place, *batches: Sequence[Fact], snapshots: Sequence[str] = ()) -> Place:
    """A journal of these batches in a file, with a snapshot of each of these threads at its end."""
    url = path if isinstance(path, str) else f"sqlite:{path}"

    async def write() -> None:
        async with open_journal(url) as opened:
            for batch in batches:
                await opened.append(batch)
            for thread in snapshots:
                await opened.save_snapshot(thread, await opened.head(), f"of {thread}".encode())

    asyncio.run(write())
    return path


def damage(path: Path, seq: int) -> None:
    """Change one byte of the commit that begins at a seq, as a bad disk would."""
    connection = cast("Database", apsw.Connection(str(path)))
    data: bytes = connection.execute("SELECT data FROM chunks WHERE first = ?", (seq,)).get
    flipped = data[:20] + bytes([data[20] ^ 1]) + data[21:]
    connection.execute("UPDATE chunks SET data = ? WHERE first = ?", (flipped, seq))
    connection.close()


def lines_of(path: Path | str) -> list[tuple[int, bytes]]:
    """Every fact of a journal: seq and stored line."""

    url = path if isinstance(path, str) else f"sqlite:{path}?mode=ro"

    async def read() -> list[tuple[int, bytes]]:
        async with open_journal(url) as opened:
            return [
                row
                async for batch in opened.read()
                for row in zip(batch.seqs, batch.lines(), strict=True)
            ]

    return asyncio.run(read())

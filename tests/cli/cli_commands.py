"""Running the `factwire` command: in this process for the many, as a real one for the few."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from factwire.cli import main

COMMAND = [sys.executable, "-c", "from factwire.cli import main; main()"]
"""What the installed script does, wherever the tests run."""


class CommandOutput(NamedTuple):
    code: int
    out: str
    err: str


class Stdin(io.TextIOWrapper):
    """Standard input with these bytes in it, which cannot be sought in, like a pipe."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BufferedReader(_Pipe(data)))


class _Pipe(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._data.readinto(buffer)


class Factwire:
    """The command, with what it prints captured."""

    def __init__(
        self, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, folder: Path
    ) -> None:
        self._capture = capture
        self._patch = patch
        self.folder = folder

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> CommandOutput:
        self._patch.setattr(sys, "argv", ["factwire", *map(str, arguments)])
        self._patch.setattr(sys, "stdin", Stdin(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capture.readouterr()
        return CommandOutput(int(ended.value.code or 0), out, err)

    def file(self, content: bytes | str, name: str = "facts.ndjson") -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def report(self, content: bytes | str, *arguments: str) -> dict[str, Any]:
        """The JSON report on a file with this content; the exit code must agree with it."""
        done = self("validate", self.file(content), "--json", *arguments)
        found: dict[str, Any] = msgspec.json.decode(done.out)
        assert done.code == (2 if "error" in found else int(not found["valid"]))
        assert done.err == ""
        return found


def run(
    *arguments: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
) -> CommandOutput:
    """The command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200", **(environment or {})},
        timeout=280,
        check=False,
    )
    return CommandOutput(done.returncode, done.stdout.decode(), done.stderr.decode())


def lines(*values: Any) -> str:
    """NDJSON."""
    return "".join(msgspec.json.encode(value).decode() + "\n" for value in values)

"""The way in: one click at every start, and the token in no address that is sent."""

import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.client.edge_processes import COMMAND, PATIENCE


@contextmanager
def start_edge(folder: Path) -> Generator[str]:
    """What `factwire edge` says at its start, while it runs."""
    options = ["--port", "0", "--data", "data", "--log-level", "error"]
    process = subprocess.Popen(
        [*COMMAND, "edge", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment(folder),
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            payload: list[str] = []
            while not payload or "Ctrl-C to stop" not in payload[-1]:
                payload.append(process.stdout.readline())
                assert payload[-1], payload
            yield "".join(payload)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FACTWIRE")}
    own = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "HOME": "home"}
    return clean | {name: str(folder / value) for name, value in own.items()} | {"NO_COLOR": "1"}


def run_open(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "open", "--data", "data", "--print"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.requirement("workbench.entrance")
def test_a_start_shows_the_link_with_a_new_token_and_a_file_ever_after(tmp_path: Path):
    never = run_open(tmp_path)
    assert (never.returncode, "edge_not_started" in never.stderr) == (2, True)
    with start_edge(tmp_path) as payload:
        token = (tmp_path / "data" / "edge-token").read_text().strip()
        assert re.search(rf"Workbench: http://127\.0\.0\.1:\d+/#token={token}\n", payload)
    with start_edge(tmp_path) as payload:
        assert token not in payload
        found = re.search(r"Workbench: (file:\S+)\n", payload)
        assert found
        file = Path(unquote(urlsplit(found[1]).path))
        assert file.stat().st_mode & 0o777 == 0o600
        link = run_open(tmp_path).stdout.strip()
        assert link.endswith(f"/#token={token}")
        assert f"url={link}" in file.read_text()
    gone = run_open(tmp_path)
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "edge_unreachable" in gone.stderr

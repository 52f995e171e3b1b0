"""The command under test."""

from pathlib import Path

import pytest

from tests.cli.cli_commands import Factwire
from tests.cli.cli_homes import Home


@pytest.fixture
def factwire(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Factwire:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return Factwire(capsys, monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that this process is at, too."""
    made = Home(tmp_path)
    for name, value in made.environment.items():
        if name not in ("NO_COLOR", "COLUMNS"):
            monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.folder)
    return made

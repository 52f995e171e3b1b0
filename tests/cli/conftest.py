"""The command under test."""

from pathlib import Path

import pytest

from tests.cli.commands import Factwire


@pytest.fixture
def factwire(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Factwire:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return Factwire(capsys, monkeypatch, tmp_path)

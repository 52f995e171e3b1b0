"""A fresh machine gets what the sandbox tests need, or is told what to do."""

import os
from pathlib import Path

import pytest

from tools import system_packages


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with all that is needed but bubblewrap."""
    for name in ("chromium", "git", "prlimit", "strace"):
        put(tmp_path, name, "")
    put(tmp_path, "env", 'shift; exec "$@"')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_what_is_there_is_left_alone(machine: Path):
    put(machine, "bwrap", "")
    put(machine, "apt-get", f"echo x > {machine}/called")
    assert system_packages.main() == 0
    assert not (machine / "called").exists()


def test_what_is_missing_is_installed_after_fetching_the_lists(
    machine: Path, capfd: pytest.CaptureFixture[str]
):
    script = (
        'for word in "$@"; do case $word in\n'
        f"update) : > {machine}/lists;;\n"
        f"install) test -e {machine}/lists || exit 100; : > {machine}/done;;\n"
        "esac; last=$word; done; echo last $last"
    )
    put(machine, "apt-get", script)
    assert system_packages.main() == 0
    assert (machine / "done").exists()
    assert "last bubblewrap\nInstalled bubblewrap.\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("apt", "user", "words"),
    [
        ("", 0, "install them by hand"),
        ("exit 100", 0, "could not install bubblewrap"),
        ("exit 0", 1000, "run `apt-get install bubblewrap` as root"),
    ],
)
def test_what_cannot_be_installed_is_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch, apt: str, user: int, words: str
):
    lines: list[str] = []
    monkeypatch.setattr("builtins.print", lines.append)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if apt:
        put(machine, "apt-get", apt)
    assert system_packages.main() == 1
    assert words in lines[0]

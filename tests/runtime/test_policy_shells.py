"""Shells agree with the reader: what a real one runs was found before it ran."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from factwire.runtime.policy.command_wrappers import read_command
from factwire.runtime.policy.policy_rules import matches, step

PIECES = [
    *("a", "b", "c", "a b", "'", '"', "\\", "$", "$(", "${", "`", ")", "(", "{", "}", "{}"),
    *("{a,b}", ";", "&&", "||", "|", "|&", "\n", " ", "  ", "\t", "#", "# ", ">", ">>", "<"),
    *("2>&1", "12>&1", ">f", "<f", "&>f", ">&f", "<<", "<<<", "!", "*", "?", "[", "]", "~", "="),
    *("X=1", "X=a", "$X", "${X}", "${X:-a}", "$((", "))", "$'", '$"', "env ", "timeout 1 "),
    *("nohup ", "bash -c ", "sh -c ", "xargs ", "command ", "if ", "then ", "fi", "for ", "do "),
    *("done", "f()", "eval ", "exec ", "-", "-n", "1", "\\\n", "time ", "nice ", "[[", "]]"),
    *("case ", "esac", "a=(b)", "X+=a ", "'a'", '"b"', '"$X"', "'$(b)'", '"$(b)"', '"`b`"'),
    *("a\\ b", "\\;", "'|'", "cd ", ". ", "alias a=b\n", "export "),
]
"""Pieces of shell text; none of them runs in the background or reaches another folder."""

PROGRAM = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > "$CALLS/$$"
"""
"""A program that only tells how it was called, in a file of its own."""


class Sandpit:
    """A folder with three such programs, and the wrappers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in "abc":
            (self.programs / name).write_text(PROGRAM)
            (self.programs / name).chmod(0o755)
        for name in ("env", "timeout", "nohup", "bash", "sh", "xargs", "nice"):
            (self.programs / name).symlink_to(shutil.which(name) or "/nonexistent")

    def run(self, shell: str, text: str, number: int) -> list[list[str]]:
        """The calls that a shell makes of a text."""
        work, calls = self.folder / f"work{number}", self.folder / f"calls{number}"
        work.mkdir()
        calls.mkdir()
        (work / "f").write_text("q\n")
        subprocess.run(
            [shutil.which(shell) or shell, "-c", text],
            cwd=work,
            env={"PATH": str(self.programs), "X": "a b", "CALLS": str(calls), "HOME": str(work)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=280,
            check=False,
        )
        outputs = (call.read_bytes().decode(errors="replace") for call in calls.iterdir())
        return [call.split("\0")[:-1] for call in outputs]


def is_expected(words: tuple[str | None, ...], call: list[str]) -> bool:
    """A word that only the shell knows may have become any number of words."""
    return matches(tuple(None if word is None else step([word]) for word in words), call)


@pytest.mark.fuzz
@pytest.mark.requirement("runtime.policy.commands")
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_real_shell_runs_nothing_that_was_not_found(shell: str, tmp_path: Path):
    chance = random.Random(shell)
    sandpit, checked, called = Sandpit(tmp_path), 0, 0
    while checked < 300:
        text = "a " + "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 9)))
        reading = read_command(text)
        if reading.unclear:
            continue
        checked += 1
        for call in sandpit.run(shell, text, checked):
            called += 1
            assert any(is_expected(found.words, call) for found in reading.commands), (text, call)
    assert called > 100

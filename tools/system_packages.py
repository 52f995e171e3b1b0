"""Install what the tests need of the system and what is missing: by apt, as root or by sudo.

Nothing is touched where all of it is there already, however it came to be there.
"""

import os
import shutil
import subprocess
import sys

PROGRAMS = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "git": "git",
    "prlimit": "util-linux",
    "strace": "strace",
}
"""Program → the Debian package that has it."""


def find_missing() -> list[str]:
    """Packages of programs that are not on PATH."""
    return [package for program, package in PROGRAMS.items() if shutil.which(program) is None]


def as_root() -> list[str] | None:
    """What to put before a command so that root runs it; None where that is not possible."""
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "--non-interactive"]
    if shutil.which("sudo") is None:
        return None
    return sudo if subprocess.run([*sudo, "true"], check=False).returncode == 0 else None


def install(packages: list[str], prefix: list[str]) -> bool:
    """Whether the packages are there now; lists are fetched only if they are needed."""
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet=2", "--yes"]
    wanted = [*command, "install", "--no-install-recommends", *packages]
    if subprocess.run(wanted, check=False).returncode == 0:
        return True
    if subprocess.run([*command, "update"], check=False).returncode != 0:
        return False
    return subprocess.run(wanted, check=False).returncode == 0


def main() -> int:
    packages = find_missing()
    if not packages:
        return 0
    names = " ".join(packages)
    if shutil.which("apt-get") is None:
        print(f"The tests need {names}, and there is no apt-get here: install them by hand.")
        return 1
    prefix = as_root()
    if prefix is None:
        print(f"The tests need {names}: run `apt-get install {names}` as root, once.")
        return 1
    if not install(packages, prefix):
        print(f"apt-get could not install {names}; what it said stands above.")
        return 1
    print(f"Installed {names}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

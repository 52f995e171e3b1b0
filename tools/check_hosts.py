"""No file of the repository may name a package registry's host or a folder of one machine.

Both creep in through lock files, logs and copied output, and break for everybody else.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HOSTS = (
    r"pypi\.org",
    r"pythonhosted\.org",
    r"registry\.npmjs\.org",
    r"registry\.yarnpkg\.com",
    r"(?:deb|security|archive)\.debian\.org",
    r"(?:archive|ports)\.ubuntu\.com",
)


def folders_of_this_machine() -> Iterator[str]:
    """The checkout and, unless it is everybody's, the folder around it."""
    yield str(ROOT)
    shared = {Path(ROOT.anchor), Path.home(), Path(tempfile.gettempdir()).resolve()}
    if ROOT.parent not in shared:
        yield f"{ROOT.parent}/"


def forbidden() -> re.Pattern[str]:
    folders = "|".join(re.escape(folder) for folder in folders_of_this_machine())
    return re.compile(rf"(?i:{'|'.join(HOSTS)})|(?<![\w.~-])(?:{folders})")


def files() -> Iterator[Path]:
    """What is tracked or about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return (path for name in listing.stdout.split("\0") if (path := ROOT / name).is_file())


def findings(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        for match in pattern.finditer(line):
            yield f"{path}:{number}: {match.group()}"


def main() -> int:
    pattern = forbidden()
    found = [finding for path in files() for finding in findings(path, pattern)]
    for finding in found:
        print(finding)
    print(f"{len(found)} hosts or machine folders named in the repository")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

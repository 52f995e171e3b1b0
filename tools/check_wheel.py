"""The wheel holds the package and nothing else, and works where only it was installed.

It is tried twice: with the newest dependencies, and with the oldest that pyproject.toml admits,
so that the lower bounds stay true.
"""

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).parent / "uv"
RESOLUTIONS = ("highest", "lowest-direct")
REQUIRED = ("factwire/py.typed", "factwire/workbench/index.html")


def sources() -> set[str]:
    package = ROOT / "src" / "factwire"
    files = (path for path in package.rglob("*") if path.is_file())
    return {
        path.relative_to(package.parent).as_posix()
        for path in files
        if "__pycache__" not in path.parts
    }


def faults(wheel: Path) -> Iterator[str]:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        version = wheel.name.split("-")[1]
        info = f"factwire-{version}.dist-info"
        packaged = {name for name in names if not name.startswith(f"{info}/")}
        for name in sorted(packaged ^ sources()):
            yield f"{'not a source' if name in packaged else 'missing'}: {name}"
        for name in (*REQUIRED, f"{info}/licenses/LICENSE"):
            if name not in names:
                yield f"missing: {name}"
        entries = f"{info}/entry_points.txt"
        scripts = archive.read(entries).decode() if entries in names else ""
        if "factwire = factwire.cli:main" not in scripts:
            yield f"no factwire command among the entry points: {scripts!r}"


def run(*command: str | Path, cwd: Path) -> str:
    # PYTHONPATH would let the checkout stand in for what the wheel lacks.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def try_out(wheel: Path, resolution: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", symlinks=True)
        python, command = home / "venv/bin/python", home / "venv/bin/factwire"
        run(UV, "pip", "install", "--python", python, "--resolution", resolution, wheel, cwd=home)
        version = run(command, "--version", cwd=home).strip()
        if wheel.name.split("-")[1] not in version:
            sys.exit(f"factwire --version says {version!r}, the wheel is {wheel.name}")
        run(command, "--help", cwd=home)
        print(f"{wheel.name} works with the {resolution} dependencies: {version}")


def main() -> None:
    wheels = sorted((ROOT / "dist").glob("factwire-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"expected one wheel in dist/, found {len(wheels)}; run `make build`")
    if found := list(faults(wheels[0])):
        sys.exit("\n".join(found))
    for resolution in RESOLUTIONS:
        try_out(wheels[0], resolution)


if __name__ == "__main__":
    main()

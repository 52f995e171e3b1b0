"""What is installed: Python, SQLite, extras, and whether a sandbox works here."""

import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import Final

import apsw

from factwire.cli.doctor.findings import Finding, fail, ok, warn
from factwire.journal.sqlite.schema import SQLITE_FLOOR
from factwire.runtime.configuration import SandboxSettings
from factwire.runtime.sandbox import Probe, probe

_EXTRA: Final = re.compile(r"^([A-Za-z0-9_.-]+).*;.*extra == ['\"]([\w-]+)['\"]")
_BUBBLEWRAP: Final = "install bubblewrap, for example: apt install bubblewrap"
_NAMESPACES: Final = "allow user namespaces, or run where they are allowed"


def python() -> Finding:
    return ok("python", f"{platform.python_implementation()} {platform.python_version()}")


def sqlite() -> Finding:
    """The journal's SQLite, which comes with apsw."""
    version = apsw.sqlite_lib_version()
    if _number(version) >= SQLITE_FLOOR:
        return ok("sqlite", f"{version}, apsw {apsw.apsw_version()}")
    message = f"{version} may damage a journal under load"
    return fail("sqlite", message, "install a newer apsw: pip install --upgrade apsw")


def _number(version: str) -> int:
    major, minor, patch = (*map(int, version.split(".")[:3]), 0, 0)[:3]
    return major * 1_000_000 + minor * 1_000 + patch


def extras() -> Finding:
    """Which extras are complete."""
    there: dict[str, bool] = {}
    for extra, package in _wanted():
        there[extra] = there.get(extra, True) and _is_installed(package)
    complete = ", ".join(name for name, holds in there.items() if holds) or "none"
    missing = ", ".join(name for name, holds in there.items() if not holds)
    more = f"; to be had: {missing} (pip install 'factwire[NAME]')" if missing else ""
    return ok("extras", f"{complete}{more}")


def _wanted() -> Iterator[tuple[str, str]]:
    try:
        wanted = requires("factwire") or []
    except PackageNotFoundError:
        return
    for requirement in wanted:
        found = _EXTRA.match(requirement)
        if found and found[1] != "factwire":
            yield found[2], found[1]


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


async def sandbox(wanted: SandboxSettings) -> Finding:
    """Whether a sandbox works, tried and not guessed."""
    if wanted.mode == "off":
        return ok("sandbox", "off by configuration: commands run unconfined")
    return sandbox_finding(await probe(), required=wanted.mode == "require")


def sandbox_finding(found: Probe, *, required: bool) -> Finding:
    """What a probe comes to; a sandbox that is only preferred may be missing."""
    if found.works:
        about = f"bubblewrap {found.version} works"
        if not found.missing:
            return ok("sandbox", about)
        lacking = ", ".join(name.replace("_", " ") for name in found.missing)
        return warn("sandbox", f"{about}, without {lacking}", "a newer bubblewrap or kernel")
    fix = _BUBBLEWRAP if found.reason_code == "bubblewrap_missing" else _NAMESPACES
    if found.reason_code == "not_linux":
        fix = "run on Linux, or set sandbox.mode to off"
    version = f"bubblewrap {found.version}: " if found.version else ""
    message = f"{found.reason_code}: {version}{found.reason}"
    if required:
        return fail("sandbox", f"{message}; commands are refused (sandbox.mode require)", fix)
    return warn("sandbox", f"{message}; commands run unconfined (sandbox.mode prefer)", fix)

"""Does a sandbox work here? Tried, not guessed.

Bubblewrap may be missing, may be forbidden to make namespaces, or may be too old for a part. A
trivial command is run in a sandbox, first with all parts and then with fewer; what the answer says
is what ran.
"""

import os
import platform
import shutil
import subprocess
import sys
from typing import Final, Literal

import msgspec

from factwire.journal.blobs.disk import on_disk
from factwire.runtime.sandbox import limits
from factwire.runtime.sandbox.bubblewrap import Features, Wanted, bubblewrap_argv
from factwire.runtime.sandbox.layout import private_folders
from factwire.runtime.sandbox.seccomp import system_call_filter

Reason = Literal["not_linux", "bubblewrap_missing", "namespaces_refused"]

_PROGRAM: Final = "bwrap"
_TRIVIAL: Final = ("/bin/sh", "-c", ":")

_ATTEMPTS: Final = (
    Features(),
    Features(no_nested_namespaces=False),
    Features(no_nested_namespaces=False, system_call_filter=False),
    Features(no_nested_namespaces=False, system_call_filter=False, cgroup_namespace=False),
)
"""What to try, best first."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a sandbox works on this machine, with which parts, or why not."""

    works: bool
    program: str = ""
    version: str = ""
    features: Features = Features()
    reason_code: Reason | None = None
    reason: str = ""
    missing: dict[str, str] = {}
    """Part that does not work → what the system said."""


async def probe(path: str | None = None) -> Probe:
    """Try it; `path` is where to look instead of PATH."""
    return await on_disk(_probe, path)


def _probe(path: str | None) -> Probe:
    if sys.platform != "linux":
        return Probe(works=False, reason_code="not_linux", reason="sandboxes are for Linux alone")
    program = shutil.which(_PROGRAM, path=path)
    if program is None:
        reason = "there is no bwrap on PATH; install the package bubblewrap"
        return Probe(works=False, reason_code="bubblewrap_missing", reason=reason)
    program = os.path.abspath(program)  # noqa: PTH100 - without following links
    refusals: list[str] = []
    for features in _ATTEMPTS:
        refusal = _try(program, features)
        if refusal is None:
            return _working(program, features, refusals)
        refusals.append(refusal)
    return Probe(
        works=False,
        program=program,
        version=_version(program),
        reason_code="namespaces_refused",
        reason=f"{refusals[-1]}; user namespaces may be off here",
    )


def _working(program: str, features: Features, refusals: list[str]) -> Probe:
    missing = {
        name: refusals[-1] if refusals else ""
        for name, is_there in msgspec.structs.asdict(features).items()
        if not is_there
    }
    if features.system_call_filter and system_call_filter(platform.machine()) is None:
        features = msgspec.structs.replace(features, system_call_filter=False)
        missing["system_call_filter"] = f"no filter is known for {platform.machine()}"
    version = _version(program)
    return Probe(works=True, program=program, version=version, features=features, missing=missing)


def _try(program: str, features: Features) -> str | None:
    """What the system said against it; None when it ran."""
    wanted = Wanted(
        program=program,
        network=False,
        features=features,
        mounts=private_folders(),
        scratch_bytes=limits.SCRATCH_BYTES,
        seccomp_file=filter_file() if features.system_call_filter else None,
    )
    files = () if wanted.seccomp_file is None else (wanted.seccomp_file,)
    try:
        return _refusal([*bubblewrap_argv(wanted), *_TRIVIAL], files)
    finally:
        for file in files:
            os.close(file)


def filter_file() -> int | None:
    """The filter of this machine as a file that is read once."""
    program = system_call_filter(platform.machine())
    if program is None:
        return None
    reader, writer = os.pipe()
    try:
        os.write(writer, program)
    finally:
        os.close(writer)
    return reader


def _refusal(argv: list[str], files: tuple[int, ...]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=limits.PROBE_SECONDS,
            pass_fds=files,
            check=False,
            env={},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return None if done.returncode == 0 else (said[-1] if said else f"exit {done.returncode}")


def _version(program: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, "--version"], capture_output=True, timeout=limits.PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip().removeprefix("bubblewrap ")

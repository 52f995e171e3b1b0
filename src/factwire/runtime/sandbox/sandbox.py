"""The sandbox of this machine: one policy in, a plan or a refusal out.

Whether it works here is tried, not guessed; a plan gives the exact account of what holds for
one program.
"""

import asyncio
import os
import platform
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.policy.policy_rules import PolicyRule
from factwire.runtime.program_lookup import find_own_program
from factwire.runtime.sandbox import limits
from factwire.runtime.sandbox.bubblewrap import (
    BubblewrapOptions,
    Features,
    Mount,
    build_bubblewrap_argv,
    namespaces,
    system_call_filter,
)
from factwire.runtime.sandbox.sandbox_policy import (
    Layout,
    SandboxLimits,
    SandboxPolicy,
    SandboxRefused,
    build_layout,
    private_folders,
)

Controller = Literal["pids", "memory"]

_MOUNT: Final = Path("/sys/fs/cgroup")
_FILES: Final[dict[Controller, tuple[str, str]]] = {
    "pids": ("pids.max", "pids.max"),
    "memory": ("memory.limit_in_bytes", "memory.max"),
}
"""Controller → the file with its bound in version 1 and in version 2."""


class Cgroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group that was made for one process, and the controllers that hold in it."""

    path: str
    controllers: tuple[Controller, ...]

    def join(self, pid: int) -> None:
        (Path(self.path) / "cgroup.procs").write_text(str(pid))


def make_cgroups(
    name: str, bounds: dict[Controller, int], *, mount: Path = _MOUNT
) -> tuple[list[Cgroup], dict[Controller, str]]:
    """The groups that could be made, and why a bound could not be."""
    made: list[Cgroup] = []
    missing: dict[Controller, str] = {}
    for controller, bound in bounds.items():
        reason = "control groups are not writable here"
        for folder, file in _places(mount, controller):
            try:
                made.append(_make(folder / name, file, controller, bound))
                break
            except OSError as error:
                reason = f"{folder}: {error.strerror}"
        else:
            missing[controller] = reason
    return made, missing


def remove_cgroup(path: str) -> bool:
    """Kill what is left in a group and remove it; False while something is still dying."""
    with suppress(OSError, ValueError):
        for pid in (Path(path) / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    try:
        os.rmdir(path)  # noqa: PTH106 - a group is removed although it shows files
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _make(path: Path, file: str, controller: Controller, bound: int) -> Cgroup:
    if not (path.parent / "cgroup.procs").exists():
        raise FileNotFoundError(2, "there is no such hierarchy")
    path.mkdir(exist_ok=True)
    try:
        # Opened without creating: a controller that is not on has no file.
        descriptor = os.open(path / file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, str(bound).encode())
        finally:
            os.close(descriptor)
    except OSError:
        remove_cgroup(str(path))
        raise
    return Cgroup(path=str(path), controllers=(controller,))


def _places(mount: Path, controller: Controller) -> list[tuple[Path, str]]:
    """Folders to try, innermost first, each with the name of its file."""
    old, new = _FILES[controller]
    own_old, own_new = _own_groups(controller)
    return [
        (mount / controller / own_old, old),
        (mount / own_new, new),
        (mount / Path(own_new).parent, new),
    ]


def _own_groups(controller: Controller) -> tuple[str, str]:
    """Where this process is in the hierarchies of version 1 and 2."""
    old = new = ""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, place = line.split(":", 2)
            if controller in names.split(","):
                old = place.lstrip("/")
            elif not names:
                new = place.lstrip("/")
    return old, new


Reason = Literal["not_linux", "bubblewrap_missing", "namespaces_refused"]

_PROGRAM: Final = "bwrap"
_TRIVIAL: Final = ("/bin/sh", "-c", ":")
_ANY_FOLDER: Final = "/usr"

_ATTEMPTS: Final = tuple(
    Features(bind_open_folder=bind_open_folder, **without)
    for without in (
        {},
        {"no_nested_namespaces": False},
        {"no_nested_namespaces": False, "system_call_filter": False},
        {"no_nested_namespaces": False, "system_call_filter": False, "cgroup_namespace": False},
    )
    for bind_open_folder in (True, False)
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


async def probe_sandbox(path: str | None = None) -> Probe:
    """Try it; `path` is where to look instead of PATH."""
    return await run_disk_work(_probe, path)


def _probe(path: str | None) -> Probe:
    if sys.platform != "linux":
        return Probe(
            works=False, reason_code="not_linux", reason="sandboxes are available on Linux only"
        )
    program = find_own_program(_PROGRAM, path)
    if program is None:
        reason = "bwrap not found on PATH; install the package bubblewrap"
        return Probe(works=False, reason_code="bubblewrap_missing", reason=reason)
    program = os.path.abspath(program)  # noqa: PTH100 - without following links
    refusals: list[str] = []
    for features in _ATTEMPTS:
        refusal = _try(program, features)
        if refusal is None:
            return _build_working_probe(program, features, refusals)
        refusals.append(refusal)
    return Probe(
        works=False,
        program=program,
        version=_version(program),
        reason_code="namespaces_refused",
        reason=f"{refusals[-1]}; user namespaces may be disabled here",
    )


def _build_working_probe(program: str, features: Features, refusals: list[str]) -> Probe:
    missing = {
        name: refusals[-1] if refusals else ""
        for name, is_there in msgspec.structs.asdict(features).items()
        if not is_there
    }
    if features.system_call_filter and system_call_filter(platform.machine()) is None:
        features = msgspec.structs.replace(features, system_call_filter=False)
        missing["system_call_filter"] = (
            f"no system call filter is available for {platform.machine()}"
        )
    version = _version(program)
    return Probe(works=True, program=program, version=version, features=features, missing=missing)


def _try(program: str, features: Features) -> str | None:
    """What the system said against it; None when it ran."""
    folder = os.open(_ANY_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    wanted = BubblewrapOptions(
        program=program,
        network=False,
        features=features,
        mounts=(*private_folders(), Mount("write", _ANY_FOLDER)),
        scratch_bytes=limits.SCRATCH_BYTES,
        seccomp_file=filter_file() if features.system_call_filter else None,
        open_folder=(_ANY_FOLDER, folder),
    )
    files = tuple(file for file in (wanted.seccomp_file, folder) if file is not None)
    try:
        return _refusal([*build_bubblewrap_argv(wanted), *_TRIVIAL], files)
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
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"exit {done.returncode}")


def _version(program: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, "--version"], capture_output=True, timeout=limits.PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip().removeprefix("bubblewrap ")


_STATUS_BYTES: Final = 4_096
_EXIT_MARK: Final = b'"exit-code"'
_DYING_SECONDS: Final = 0.005


class SandboxPlan:
    """`argv` goes before the program's own, `inherited` are files that bubblewrap needs open."""

    def __init__(
        self,
        policy: SandboxPolicy,
        found: Probe,
        layout: Layout,
        *,
        folder: Path,
        name: str,
        open_folder: tuple[str, int] | None = None,
    ) -> None:
        self._policy = policy
        self._found = found
        self._layout = layout
        self._missing = dict(found.missing)
        self._limits: dict[str, dict[str, Any]] = {}
        self._status, status = os.pipe()
        os.set_blocking(self._status, False)
        seccomp = filter_file() if found.features.system_call_filter else None
        if open_folder is not None:
            open_folder = open_folder[0], os.dup(open_folder[1])
        files = (status, seccomp, open_folder and open_folder[1])
        self.inherited = [file for file in files if file is not None]
        self._cgroups = self._make_cgroups(name)
        self._wanted = BubblewrapOptions(
            program=found.program,
            network=policy.network,
            features=found.features,
            mounts=layout.mounts,
            scratch_bytes=limits.SCRATCH_BYTES,
            folder=str(folder),
            status_file=status,
            seccomp_file=seccomp,
            open_folder=open_folder,
            process_limit=self._process_limit(),
        )
        self.argv = build_bubblewrap_argv(self._wanted)

    @property
    def cgroups(self) -> tuple[str, ...]:
        return tuple(group.path for group in self._cgroups)

    def shows(self, program: str) -> bool:
        """Whether a program is there inside."""
        return self._layout.shows(Path(program))

    def enter(self, pid: int) -> None:
        """Bound a process that waits at its gate; all it starts later is bound with it."""
        for group in list(self._cgroups):
            try:
                group.join(pid)
            except OSError as error:
                self._cgroups.remove(group)
                remove_cgroup(group.path)
                self._forget(group.controllers, error.strerror or str(error))
        for name, kind, bound in _resource_limits(self._policy.limits):
            self._set_limit(pid, name, kind, bound)

    def release_inherited(self) -> None:
        """Close our copies of what the program inherited."""
        while self.inherited:
            os.close(self.inherited.pop())

    def did_run(self) -> bool:
        """Whether the program was reached, as bubblewrap told us; to be asked after its end."""
        with suppress(OSError):
            return _EXIT_MARK in os.read(self._status, _STATUS_BYTES)
        return False

    async def leave(self, seconds: float) -> None:
        """Wait until nothing of the sandbox is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for group in self._cgroups:
                    # The kernel tells nobody when the last process of a group is gone.
                    while not remove_cgroup(group.path):  # noqa: ASYNC110 - so it is asked again
                        await asyncio.sleep(_DYING_SECONDS)

    def close(self) -> None:
        self.release_inherited()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1
        for group in self._cgroups:
            remove_cgroup(group.path)

    def account(self) -> dict[str, Any]:
        """What holds, as the payload of `sandbox.applied`."""
        features = self._found.features
        return {
            "mode": self._policy.mode,
            "decision": "applied",
            "tool": "bubblewrap",
            "toolVersion": self._found.version,
            "network": "shared" if self._policy.network else "none",
            "root": "read-only",
            "writable": list(self._layout.writable),
            "readable": list(self._layout.readable),
            "hidden": list(self._layout.hidden),
            "namespaces": namespaces(self._wanted),
            "capabilities": "none",
            "newSession": True,
            "diesWithParent": True,
            "nestedNamespaces": not features.no_nested_namespaces,
            "systemCallFilter": features.system_call_filter,
            "limits": {_camel(name): limit for name, limit in self._limits.items()},
            "notApplied": [
                {"what": _camel(what), "reason": reason} for what, reason in self._missing.items()
            ],
        }

    def _make_cgroups(self, name: str) -> list[Cgroup]:
        wanted = self._policy.limits
        bounds: dict[Controller, int] = {}
        if wanted.processes is not None:
            bounds["pids"] = wanted.processes
        if wanted.memory_bytes is not None:
            bounds["memory"] = wanted.memory_bytes
        made, missing = make_cgroups(f"factwire-{name}", bounds)
        for group in made:
            for controller in group.controllers:
                self._limits[_LIMIT_OF[controller]] = {"value": bounds[controller], "by": "cgroup"}
        for controller, reason in missing.items():
            self._missing[_LIMIT_OF[controller]] = reason
        return made

    def _process_limit(self) -> tuple[str, int] | None:
        """A limit by user, which the system does not hold root to."""
        count = self._policy.limits.processes
        tool = next((tool for tool in _PRLIMIT if os.access(tool, os.X_OK)), None)
        if count is None or tool is None or os.getuid() == 0:
            return None
        self._limits.setdefault("processes", {"value": count, "by": "rlimit"})
        self._missing.pop("processes", None)
        return tool, count

    def _set_limit(self, pid: int, name: str, kind: int, bound: int) -> None:
        try:
            _, hard = resource.prlimit(pid, kind)
            bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.prlimit(pid, kind, (bound, bound))
        except (OSError, ValueError) as error:
            self._missing[name] = str(error)
        else:
            self._limits.setdefault(name, {"value": bound, "by": "rlimit"})
            self._missing.pop(name, None)

    def _forget(self, controllers: Iterable[Controller], reason: str) -> None:
        for controller in controllers:
            name = _LIMIT_OF[controller]
            if self._limits.get(name, {}).get("by") == "cgroup":
                del self._limits[name]
                self._missing[name] = reason


_LIMIT_OF: Final[dict[Controller, str]] = {"pids": "processes", "memory": "memory"}

_PRLIMIT: Final = ("/usr/bin/prlimit", "/bin/prlimit")


def _resource_limits(wanted: SandboxLimits) -> list[tuple[str, int, int]]:
    bounds = [
        # Address space would count what is only reserved, and stop runtimes that reserve a lot.
        ("memory", resource.RLIMIT_DATA, wanted.memory_bytes),
        ("file_bytes", resource.RLIMIT_FSIZE, wanted.file_bytes),
        ("open_files", resource.RLIMIT_NOFILE, wanted.open_files),
        ("core_dumps", resource.RLIMIT_CORE, 0),
    ]
    return [(name, kind, bound) for name, kind, bound in bounds if bound is not None]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class Sandbox:
    """Probes once. `home` is hidden, and so is `data`, where Factwire keeps its own."""

    def __init__(self, *, home: Path, data: Iterable[Path], path: str | None = None) -> None:
        self._home = home
        self._data = tuple(data)
        self._path = path
        self._found: Probe | None = None
        self._turn = asyncio.Lock()

    async def probe(self) -> Probe:
        async with self._turn:
            if self._found is None:
                self._found = await probe_sandbox(self._path)
            return self._found

    async def plan(
        self,
        policy: SandboxPolicy,
        *,
        workspace: Path,
        folder: Path,
        name: str,
        workspace_file: int | None = None,
    ) -> SandboxPlan | None:
        """A plan; None where none was asked for or could be had; raises `SandboxRefused`. The open
        `workspace_file` is the folder to mount, whatever is at its path by then.
        """
        if policy.mode == "off":
            return None
        found = await self.probe()
        if found.works:
            layout = await run_disk_work(
                build_layout, policy, workspace=workspace, home=self._home, data=self._data
            )
            held = None if workspace_file is None else (str(workspace), workspace_file)
            return SandboxPlan(policy, found, layout, folder=folder, name=name, open_folder=held)
        if policy.mode == "require":
            raise SandboxRefused(found.reason_code or "unknown", found.reason)
        return None


def describe_unenforced_rules(rules: Iterable[PolicyRule]) -> str:
    """What a person should know about rules for paths where no sandbox enforces them."""
    return (
        f"no sandbox enforces {', '.join(map(str, rules))}: a command is checked only by the paths "
        "that it names, and what it runs can reach those files"
    )


def describe_missing_sandbox(policy: SandboxPolicy, found: Probe | None) -> dict[str, Any]:
    """The payload of `sandbox.applied` where there is none: it was preferred and did not work, or
    nobody asked for one.
    """
    reason = found.reason if found else "no sandbox is used"
    missing = [{"what": "sandbox", "reason": reason}]
    if policy.deny:
        missing.append({"what": "pathRules", "reason": describe_unenforced_rules(policy.deny)})
    return {
        "mode": policy.mode,
        "decision": "unavailable",
        "reasonCode": found.reason_code if found else "sandbox_off",
        "message": reason,
        "network": "shared",
        "root": "writable",
        "limits": {},
        "notApplied": missing,
    }

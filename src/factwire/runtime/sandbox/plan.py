"""A plan: how one program gets into its sandbox, and the exact account of what holds there.

Made before the program starts, entered while it waits at its gate, closed after it has ended. The
account is of what was done, part by part; what was asked for and could not be done is listed.
"""

import asyncio
import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from factwire.runtime.sandbox import limits
from factwire.runtime.sandbox.bubblewrap import Wanted, bubblewrap_argv, namespaces
from factwire.runtime.sandbox.cgroup import Cgroup, Controller, make_cgroups, remove_cgroup
from factwire.runtime.sandbox.layout import Layout
from factwire.runtime.sandbox.policy import SandboxLimits, SandboxPolicy
from factwire.runtime.sandbox.probe import Probe, filter_file

_STATUS_BYTES: Final = 4_096
_EXIT_MARK: Final = b'"exit-code"'
_DYING_SECONDS: Final = 0.005


class SandboxPlan:
    """`argv` goes before the program's own, `inherited` are files that bubblewrap needs open."""

    def __init__(
        self, policy: SandboxPolicy, found: Probe, layout: Layout, *, folder: Path, name: str
    ) -> None:
        self._policy = policy
        self._found = found
        self._layout = layout
        self._missing = dict(found.missing)
        self._limits: dict[str, dict[str, Any]] = {}
        self._status, status = os.pipe()
        os.set_blocking(self._status, False)
        seccomp = filter_file() if found.features.system_call_filter else None
        self.inherited = [file for file in (status, seccomp) if file is not None]
        self._cgroups = self._make_cgroups(name)
        self._wanted = Wanted(
            program=found.program,
            network=policy.network,
            features=found.features,
            mounts=layout.mounts,
            scratch_bytes=limits.SCRATCH_BYTES,
            folder=str(folder),
            status_file=status,
            seccomp_file=seccomp,
            process_limit=self._process_limit(),
        )
        self.argv = bubblewrap_argv(self._wanted)

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
    asked = [
        # Address space would count what is only reserved, and stop runtimes that reserve a lot.
        ("memory", resource.RLIMIT_DATA, wanted.memory_bytes),
        ("file_bytes", resource.RLIMIT_FSIZE, wanted.file_bytes),
        ("open_files", resource.RLIMIT_NOFILE, wanted.open_files),
        ("core_dumps", resource.RLIMIT_CORE, 0),
    ]
    return [(name, kind, bound) for name, kind, bound in asked if bound is not None]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)

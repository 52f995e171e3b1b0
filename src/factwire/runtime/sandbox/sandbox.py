"""The sandbox of this machine: one policy in, a plan or a refusal out."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from factwire.runtime.sandbox.errors import SandboxRefused
from factwire.runtime.sandbox.layout import layout_of
from factwire.runtime.sandbox.plan import SandboxPlan
from factwire.runtime.sandbox.policy import SandboxPolicy
from factwire.runtime.sandbox.probe import Probe, probe


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
                self._found = await probe(self._path)
            return self._found

    async def plan(
        self, policy: SandboxPolicy, *, workspace: Path, folder: Path, name: str
    ) -> SandboxPlan | None:
        """A plan; None where none was asked for or could be had; raises `SandboxRefused`."""
        if policy.mode == "off":
            return None
        found = await self.probe()
        if found.works:
            layout = layout_of(policy, workspace=workspace, home=self._home, data=self._data)
            return SandboxPlan(policy, found, layout, folder=folder, name=name)
        if policy.mode == "require":
            raise SandboxRefused(found.reason_code or "unknown", found.reason)
        return None


def account_of_none(policy: SandboxPolicy, found: Probe) -> dict[str, Any]:
    """The payload of `sandbox.applied` where a sandbox was preferred and there is none."""
    return {
        "mode": policy.mode,
        "decision": "unavailable",
        "reasonCode": found.reason_code,
        "message": found.reason,
        "network": "shared",
        "root": "writable",
        "limits": {},
        "notApplied": [{"what": "sandbox", "reason": found.reason}],
    }

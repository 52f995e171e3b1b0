"""Outside agents: which are installed, in which version and where; how to have the others.

A program is asked for nothing but its version, in a home that is thrown away, without any key, and
not for long. SDKs are looked up, not imported.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Final

from factwire.cli.doctor.findings import Finding, ok, warn
from factwire.runtime.agents import GROUP, WRAPPERS, AgentError, BrokenEntryPoint, NameTaken
from factwire.runtime.configuration import Agent, Configuration
from factwire.runtime.processes import child_environment
from factwire.sources.live import Program

_SECONDS: Final = 20.0
"""How long a program may take to say its version; the first start of some unpacks them."""

_CHARACTERS: Final = 100
"""Of what a program says about its version."""

_PACKAGES: Final = {"pydantic-ai": ("pydantic-ai", "pydantic-ai-slim")}
"""SDK → packages that bring it, where they are called otherwise."""


async def outside(given: Configuration, problems: Mapping[str, AgentError]) -> list[Finding]:
    """A line for each; what a configuration breaks is told with the agents that it names."""
    points = sorted(set(entry_points(group=GROUP)), key=lambda point: point.name)
    found = {point.name: program for point in points if (program := _program(point)) is not None}
    others = [
        ok(name, f"not set up: {error}")
        for name, error in problems.items()
        if name not in found and is_absent(name, error, given)
    ]
    programs = [_line(name, program, given.agents.get(name)) for name, program in found.items()]
    return [*await asyncio.gather(*programs), *others, *_sdks()]


def is_absent(name: str, error: AgentError, given: Configuration) -> bool:
    """Whether an agent cannot be had because nobody has installed it or set it up: no fault."""
    return name not in given.agents and not isinstance(error, BrokenEntryPoint | NameTaken)


def _program(point: EntryPoint) -> Program | None:
    """The program of an agent: `PROGRAM` of the module that makes it, if it has one."""
    try:
        found = getattr(import_module(point.module), "PROGRAM", None)
    except Exception:  # noqa: BLE001 - a module that cannot be loaded is told as a broken agent
        return None
    return found if isinstance(found, Program) else None


async def _line(name: str, program: Program, configured: Agent | None) -> Finding:
    where = _where(program, configured)
    if where is None:
        return ok(name, f"{program.title} is not installed; to have it: {program.install}")
    said = await _version(where)
    if said is None:
        return warn(name, f"{where} does not say its version", f"try {where} --version by hand")
    return ok(name, f"{said}, {where}")


def _where(program: Program, configured: Agent | None) -> str | None:
    """Where it is, good from any folder: PATH may be relative."""
    wanted = None if configured is None else configured.options.get("command")
    there = program.where(wanted if isinstance(wanted, str) else None)
    return None if there is None else str(Path(there).absolute())


async def _version(program: str) -> str | None:
    """What a program says, in one line; None if it does not."""
    with tempfile.TemporaryDirectory(prefix="factwire-doctor-") as home:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                "--version",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=child_environment(os.environ, {"HOME": home}),
                cwd=home,
                start_new_session=True,
            )
        except OSError:
            return None
        try:
            async with asyncio.timeout(_SECONDS):
                said, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return None
    line = said.decode("utf-8", "replace").strip().partition("\n")[0]
    return line[:_CHARACTERS] if process.returncode == 0 and line else None


def _sdks() -> Iterator[Finding]:
    for name in sorted({point.name for point in entry_points(group=WRAPPERS)}):
        there = next(filter(None, map(_installed, _PACKAGES.get(name, (name,)))), None)
        if there is None:
            yield ok(name, f"not installed; to have it: pip install 'factwire[{name}]'")
        else:
            yield ok(name, f"{there}; run an agent of it as module:name")


def _installed(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None

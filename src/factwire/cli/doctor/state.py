"""What is set up: configuration, data folder, journal, runtimes that run, agents."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from factwire.cli.doctor.agents import is_absent
from factwire.cli.doctor.findings import Finding, fail, ok, warn
from factwire.cli.terminal_text import counted
from factwire.journal import JournalError, open_journal
from factwire.runtime.agents import Registered
from factwire.runtime.configuration import Configuration, Resolved
from factwire.runtime.control import running

_OTHERS: Final = 0o077
_VERIFIED_BYTES: Final = 256 * 1024 * 1024
"""A journal up to this size is walked from end to end; that takes seconds."""


def configuration(resolved: Resolved) -> Finding:
    """Which files were read."""
    files = dict.fromkeys(
        where.rpartition(":")[0] if where.rpartition(":")[2].isdigit() else where
        for origin in resolved.origins.values()
        if origin.source in ("project", "user") and origin.where
        for where in origin.where.split(", ")
    )
    return ok("configuration", ", ".join(files) or "defaults; no file sets anything")


def workspace(given: Configuration, named: Path | None) -> Finding:
    """Whether a run could work in the folder that is named, or in the current one."""
    folder = (named or Path.cwd()).resolve()
    if not folder.is_dir():
        message = f"workspace_missing: there is no folder {folder}"
        return fail("workspace", message, "make it, or name another one with --workspace")
    allowed = [os.path.realpath(each) for each in given.workspaces]
    if named is None and allowed and not any(map(folder.is_relative_to, allowed)):
        message = f"{folder} is in none of the configured workspaces; a run here is refused"
        return warn("workspace", message, "go to one of them, or name this one with --workspace")
    return ok("workspace", str(folder))


def data_folder(given: Configuration) -> Finding:
    """Whether what is kept is private and can be kept."""
    folder = Path(given.data)
    try:
        about = folder.stat()
    except FileNotFoundError:
        return ok("data folder", f"{folder}, made at the first run")
    except OSError as error:
        fix = "set FACTWIRE_DATA to a folder that can be used"
        return fail("data folder", f"{folder} cannot be looked at: {error.strerror}", fix)
    if not stat.S_ISDIR(about.st_mode) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fix = "set FACTWIRE_DATA to a folder that can be written"
        return fail("data folder", f"{folder} is no folder that can be written", fix)
    if about.st_mode & _OTHERS:
        mode = stat.S_IMODE(about.st_mode)
        message = f"{folder} is open to other users (mode {mode:03o})"
        return warn("data folder", message, f"chmod 700 {folder}")
    return ok("data folder", f"{folder}, private")


async def journal(given: Configuration) -> Finding:
    """Whether the journal opens, and is whole."""
    scheme, _, rest = given.journal.partition(":")
    path = Path(rest.partition("?")[0])
    if scheme == "sqlite" and not await asyncio.to_thread(path.exists):
        return ok("journal", f"{path}, made at the first run")
    url = f"sqlite:{path}?mode=ro" if scheme == "sqlite" else given.journal
    try:
        return await _opened(url, scheme)
    except (JournalError, OSError) as error:
        code = error.code if isinstance(error, JournalError) else "journal_unavailable"
        fix = "check the URL, or restore the journal from an export (factwire journal import)"
        return fail("journal", f"{code}: {error}", fix)


async def _opened(url: str, scheme: str) -> Finding:
    async with open_journal(url) as opened:
        stats = await opened.stats()
        about = f"{scheme}, {counted(stats.facts, 'fact')}, {counted(stats.threads, 'thread')}"
        if stats.bytes > _VERIFIED_BYTES:
            return ok("journal", f"{about}, opens; factwire journal verify looks at every byte")
        report = await opened.verify()
    if report.damage is None:
        return ok("journal", f"{about}, intact")
    message = f"journal_corrupt: {report.damage.reason} at {report.damage.first}"
    return fail("journal", message, "restore it from an export (factwire journal import)")


async def runtimes(given: Configuration) -> Finding:
    """What runs now."""
    found = await running(given.data)
    if not found:
        return ok("running", "nothing")
    words = (f"process {each.pid} on {counted(len(each.threads), 'thread')}" for each in found)
    return ok("running", ", ".join(words))


def agents(given: Configuration, registered: Registered) -> Iterator[Finding]:
    """Which agents there are, and what is wrong with the others."""
    yield ok("agents", ", ".join(sorted(registered.agents)))
    for name, error in registered.problems.items():
        if is_absent(name, error, given):
            continue
        yield warn(f"agent {name}", f"{error.code}: {error}", "mend it, or take it out of the file")
    if given.agent is not None and given.agent not in registered.agents:
        message = f"the configured agent {given.agent} is not there"
        yield fail("agent", message, "set agent to one of those that there are")

"""`RunnerKeeper`: the processes of runners, started, watched and ended by one Hub process.

A runner is a process group of its own in a private folder below the Hub's data. Its record has its
pid and start time, so that a Hub that was killed finds and ends what it left behind, and starts its
runners again in their folders; what has joined stays the same device. A runner that has had no task
for a while is stopped. One whose command ends before it joined has failed; one that ends later is
started again, a few times. What it prints is kept up to a bound.
"""

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy.engine import RowMapping

from factwire.hub.frames.event_log import HubChange
from factwire.hub.frames.live_events import wait_or_timeout
from factwire.hub.limits import (
    RUNNER_JOIN_SECONDS,
    RUNNER_LOG_BYTES,
    RUNNER_LOOK_SECONDS,
    RUNNER_RESTARTS,
)
from factwire.hub.link import runner_records
from factwire.hub.link.runner_records import CloudRunner
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.people.passwords import normalize_name
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.journal.atomic_files import create_file
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.configuration import HubSettings
from factwire.runtime.processes import ProcessError, Processes, ProcessSpec, RunningProcess
from factwire.runtime.processes.process_reaper import RecordFolder, reap
from factwire.serving.logs import hide_secret, logger

FOLDER: Final = "runners"
KEEPER_FILE: Final = "keeper-id"
LOG_FILE: Final = "runner.log"
OLD_LOG_FILE: Final = "runner.log.1"
SECRET_VARIABLE: Final = "FACTWIRE_RUNNER_SECRET"  # noqa: S105 - the name, not a secret

LOCAL_COMMAND: Final = (
    *(sys.executable, "-c", "from factwire.cli import main; main()"),
    *("edge", "--port", "0"),
)
"""A runner on the Hub's own machine, by the same installation, wherever its commands are."""

_MILLISECONDS: Final = 1_000
_PRIVATE: Final = 0o700

_log: Final = logger("factwire.hub.runners")


class RunnerKeeper:
    """Keeps the runners whose folders are in a data folder; open it with `run`."""

    def __init__(
        self,
        hub: HubServices,
        settings: HubSettings,
        data: Path,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._hub = hub
        self._settings = settings
        self._folder = data / FOLDER
        self._keeper_id = ""
        # Settings of the Hub are not those of an Edge.
        clean = {name: text for name, text in environment.items() if name[:9] != "FACTWIRE_"}
        self._processes = Processes(
            self._folder / "kept", workspaces=[self._folder], environment=clean
        )
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, RunningProcess] = {}
        self._wake = asyncio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Keep runners for as long as the block lasts; those that are left are started again by the
        next Hub of this data folder.
        """
        if not self._settings.runners and not self._folder.is_dir():
            yield
            return
        self._keeper_id = await run_disk_work(_read_keeper_id, self._folder)
        await self._processes.reap()
        async with self._hub.database.read() as connection:
            kept = await runner_records.list_kept(connection, self._keeper_id)
        for row in kept:
            self._keep(row["runner_id"])
        looking = asyncio.create_task(self._poll(), name="factwire-runners")
        try:
            yield
        finally:
            tasks = [looking, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def allocate(
        self, caller: HubCaller, name: str, origin: ActionOrigin, runner_id: str | None = None
    ) -> CloudRunner:
        """Start a runner for the caller; raises `Problem`."""
        async with self._hub.events.change() as change:
            allocated = await self._allocate(change, caller, name, origin, runner_id)
        self._wake.set()
        return allocated

    async def acquire(
        self, change: HubChange, caller: HubCaller, name: str, origin: ActionOrigin
    ) -> CloudRunner:
        """A runner for a task of the caller: one that they have, or a new one, which is started
        after this transaction. Raises `Problem`.
        """
        runner = await runner_records.find_usable(change, caller.person_id)
        if runner is None:
            runner = await self._allocate(change, caller, name, origin)
        return runner

    def wake(self) -> None:
        """Start what was acquired."""
        self._wake.set()

    async def _allocate(
        self,
        change: HubChange,
        caller: HubCaller,
        name: str,
        origin: ActionOrigin,
        runner_id: str | None = None,
    ) -> CloudRunner:
        return await runner_records.allocate(
            self._hub,
            change,
            self._settings,
            caller,
            origin,
            keeper_id=self._keeper_id,
            name=normalize_name(name),
            runner_id=runner_id,
        )

    async def release(self, caller: HubCaller, runner_id: str, origin: ActionOrigin) -> None:
        """Stop a runner of the caller; raises `Problem`."""
        await runner_records.begin_release(
            self._hub, runner_id, "requested", origin, owner=caller.person_id
        )
        await self._stop(runner_id)

    async def tick(self) -> None:
        """Stop what is idle, revoked, late or released elsewhere, once."""
        hub, now = self._hub, self._hub.now()
        for row in await runner_records.note_activity(hub, self._keeper_id):
            runner_id, reason = row["runner_id"], await self._find_reason(row, now)
            is_ending = row["state"] == "stopping"
            if reason is not None:
                idle_since = row["active_at"] if reason == "idle" else None
                is_ending = await runner_records.begin_release(
                    hub, runner_id, reason, idle_since=idle_since
                )
            if is_ending:
                await self._stop(runner_id)
            elif runner_id not in self._tasks:
                self._keep(runner_id)

    async def _find_reason(self, row: RowMapping, now: int) -> str | None:
        """Why a runner has to end, if it has."""
        if row["state"] == "starting":
            is_late = now - row["started_at"] >= RUNNER_JOIN_SECONDS * _MILLISECONDS
            return "join_timeout" if is_late else None
        if row["state"] != "online":
            return None
        if await runner_records.is_revoked(self._hub, row["device_id"]):
            return "device_revoked"
        idle = now - row["active_at"] >= self._settings.runner_idle_seconds * _MILLISECONDS
        return "idle" if idle else None

    async def _poll(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.tick()
            except RecordsUnavailable as error:
                _log.warning("runners_unseen", detail=str(error))
            await wait_or_timeout(self._wake, RUNNER_LOOK_SECONDS)

    def _keep(self, runner_id: str) -> None:
        if runner_id not in self._tasks:
            task = asyncio.create_task(self._keep_running(runner_id), name=f"runner-{runner_id}")
            self._tasks[runner_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(runner_id, None))

    async def _stop(self, runner_id: str) -> None:
        """End the process of a runner, if it is kept here."""
        process = self._running.get(runner_id)
        if process is not None:
            await process.stop("released")
        elif runner_id not in self._tasks:
            self._keep(runner_id)

    async def _keep_running(self, runner_id: str) -> None:
        """Run the command of a runner until it is to end; then clean up after it."""
        state, reason = "failed", "command_failed"
        for attempt in range(RUNNER_RESTARTS + 1):
            async with self._hub.database.read() as connection:
                row = await runner_records.find_runner(connection, runner_id)
            if row is None or row["state"] not in ("starting", "online"):
                break
            if attempt and row["state"] == "starting":
                break
            try:
                await self._run_once(row)
            except (ProcessError, OSError) as error:
                _log.warning("runner_not_started", runner_id=runner_id, detail=str(error))
                break
            reason = "command_failed" if row["state"] == "starting" else "command_ended"
        await self._clean_up(runner_id)
        await runner_records.end_runner(self._hub, runner_id, state, reason)

    async def _run_once(self, row: RowMapping) -> None:
        """Start the command, and return at its end."""
        runner_id = row["runner_id"]
        place = self._folder / runner_id
        await run_disk_work(_make_folders, place)
        variables = {
            "FACTWIRE_HUB_URL": self._hub.url,
            "FACTWIRE_RUNNER_ID": runner_id,
            "FACTWIRE_DATA": str(place / "data"),
            "FACTWIRE_WORKSPACES": str(place / "work"),
        }
        secret = ""
        if row["state"] == "starting":
            secret = await runner_records.renew_secret(self._hub, runner_id)
            variables[SECRET_VARIABLE] = secret
        spec = ProcessSpec(
            argv=self._settings.runner_command or LOCAL_COMMAND,
            cwd=str(place / "work"),
            env=variables,
            own_env_names=frozenset({SECRET_VARIABLE, *self._settings.runner_env}),
            output="protocol",
            time_limit=None,
        )
        unhide = hide_secret(secret) if secret else None
        try:
            async with self._processes.start(spec, process_id=runner_id) as process:
                self._running[runner_id] = process
                _log.info("runner_started", runner_id=runner_id, pid=process.pid)
                await _keep_log(process, place / LOG_FILE, secret)
                ending = await process.wait()
                _log.info(
                    "runner_ended", runner_id=runner_id, exit=ending.exit_code, signal=ending.signal
                )
        finally:
            self._running.pop(runner_id, None)
            if unhide is not None:
                unhide()

    async def _clean_up(self, runner_id: str) -> None:
        """Remove what a runner leaves: agents that outlived it, and its folder."""
        place = self._folder / runner_id
        await run_disk_work(reap, RecordFolder(place / "data" / "processes"))
        await run_disk_work(_remove_folder, place)


def _read_keeper_id(folder: Path) -> str:
    """The id of this data folder, made once."""
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    path = folder / KEEPER_FILE
    with suppress(FileExistsError):
        create_file(path, secrets.token_hex(8).encode())
    return path.read_text("ascii")


def _make_folders(place: Path) -> None:
    for folder in (place, place / "data", place / "work"):
        folder.mkdir(mode=_PRIVATE, exist_ok=True)


def _remove_folder(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)


async def _keep_log(process: RunningProcess, path: Path, secret: str) -> None:
    """Write what a runner prints, the newest of it up to twice a bound, without its secret."""
    size = 0
    async for piece in process.output():
        text = piece.text.replace(secret, "[secret]") if secret else piece.text
        data = text.encode("utf-8", "replace")
        if size + len(data) > RUNNER_LOG_BYTES:
            await run_disk_work(_rotate, path)
            size = 0
        await run_disk_work(_append, path, data[-RUNNER_LOG_BYTES:])
        size += len(data)


def _rotate(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.replace(path.with_name(OLD_LOG_FILE))


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as log:
        log.write(data)

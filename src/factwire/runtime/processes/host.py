"""Processes of one data folder: where programs may work, what they get, who ends them."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path

from factwire.journal.blobs import BlobStore
from factwire.journal.blobs.disk import on_disk
from factwire.runtime.minting import new_id
from factwire.runtime.processes import limits
from factwire.runtime.processes.batches import Stream
from factwire.runtime.processes.environment import MARKER, child_environment
from factwire.runtime.processes.errors import InvalidSpec, NotStarted, ProgramNotFound
from factwire.runtime.processes.feed import Feed
from factwire.runtime.processes.launch import OPEN_GATE, Launched, launch
from factwire.runtime.processes.log import PROCESS_ID, LogFolder
from factwire.runtime.processes.output import Event, Output
from factwire.runtime.processes.pipes import ReadPipe, WritePipe
from factwire.runtime.processes.process import Interrupt, Process
from factwire.runtime.processes.programs import find_program
from factwire.runtime.processes.reaper import Reaped, reap
from factwire.runtime.processes.records import RecordFolder, record_of
from factwire.runtime.processes.spec import Ladder, ProcessSpec
from factwire.runtime.processes.workspace import OpenFolder, folder_inside
from factwire.runtime.sandbox.plan import SandboxPlan
from factwire.runtime.sandbox.sandbox import Sandbox


class Processes:
    """Starts programs. `data` holds records and logs; an empty list of workspaces allows none."""

    def __init__(
        self,
        data: str | Path,
        *,
        workspaces: Iterable[str | Path],
        blobs: BlobStore | None = None,
        environment: Mapping[str, str] | None = None,
        home: str | Path | None = None,
        hidden: Iterable[str | Path] = (),
        sandbox: Sandbox | None = None,
        ladder: Ladder | None = None,
        batch_seconds: float = limits.BATCH_SECONDS,
        batch_bytes: int = limits.BATCH_BYTES,
    ) -> None:
        folder = Path(data)
        self.workspaces = tuple(Path(workspace) for workspace in workspaces)
        self.records = RecordFolder(folder / "processes")
        self.logs = LogFolder(folder / "logs", blobs)
        private = (folder, *map(Path, hidden))
        self.sandbox = sandbox or Sandbox(home=Path(home or Path.home()), data=private)
        self.ladder = ladder or Ladder()
        self._environment = os.environ if environment is None else environment
        self._batch_seconds = batch_seconds
        self._batch_bytes = batch_bytes

    async def reap(self) -> list[Reaped]:
        """End what an earlier Factwire left behind; to be called at the start."""
        return await on_disk(reap, self.records)

    def start(
        self,
        spec: ProcessSpec,
        *,
        process_id: str | None = None,
        interrupt: Interrupt | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        """Run a program for as long as the context lasts; left early, it is stopped, and killed at
        once where the caller fails or is cancelled.

        Raises `ProcessError` or `SandboxError` when it cannot be started; nothing is left then.
        """
        process_id = process_id or new_id("proc")
        if not PROCESS_ID.fullmatch(process_id):
            raise InvalidSpec(f"expected an id of letters, digits, - and _, got {process_id!r}")
        return self._running(spec, process_id, interrupt)

    @asynccontextmanager
    async def _running(
        self, spec: ProcessSpec, process_id: str, interrupt: Interrupt | None
    ) -> AsyncGenerator[Process]:
        with ExitStack() as stack:
            process = await self._start(spec, process_id, interrupt, stack)
            gently = False
            try:
                yield process
                gently = True
            finally:
                await process.close(gently=gently)
                # A process that is stuck keeps its record, for the reaper.
                if process.is_over:
                    self.records.remove(process_id)

    async def _start(
        self, spec: ProcessSpec, process_id: str, interrupt: Interrupt | None, stack: ExitStack
    ) -> Process:
        with folder_inside(spec.cwd, self.workspaces) as folder:
            plan = await self._plan(spec, folder, process_id)
            if plan is not None:
                stack.callback(plan.close)
            launched = self._launch(spec, process_id, folder, plan)
            cwd = str(folder.path)
        try:
            if plan is not None:
                plan.release_inherited()
                plan.enter(launched.pid)
            cgroups = plan.cgroups if plan else ()
            await on_disk(self.records.write, record_of(process_id, launched.pid, cgroups))
            process = self._process(
                spec, process_id, cwd=cwd, launched=launched, plan=plan, interrupt=interrupt
            )
        except BaseException as error:
            launched.discard()
            self.records.remove(process_id)
            if isinstance(error, OSError):
                raise NotStarted(f"{self.records.path.parent}: {error.strerror}") from error
            raise
        return process

    async def _plan(
        self, spec: ProcessSpec, folder: OpenFolder, process_id: str
    ) -> SandboxPlan | None:
        return await self.sandbox.plan(
            spec.sandbox, workspace=folder.workspace, folder=folder.path, name=process_id
        )

    def _launch(
        self, spec: ProcessSpec, process_id: str, folder: OpenFolder, plan: SandboxPlan | None
    ) -> Launched:
        environment = child_environment(self._environment, spec.env, spec.own_env_names)
        if plan is not None:
            environment["TMPDIR"] = "/tmp"  # noqa: S108 - private to the sandbox
        program = find_program(spec.argv[0], folder.path, environment)
        if plan is not None and not plan.shows(program):
            raise ProgramNotFound(f"the sandbox hides {program}; name its folder under `readable`")
        return launch(
            [*(plan.argv if plan else ()), program, *spec.argv[1:]],
            environment={**environment, MARKER: process_id},
            folder=folder,
            takes_input=spec.stdin != "none",
            inherited=plan.inherited if plan else (),
        )

    def _process(
        self,
        spec: ProcessSpec,
        process_id: str,
        *,
        cwd: str,
        launched: Launched,
        plan: SandboxPlan | None,
        interrupt: Interrupt | None,
    ) -> Process:
        """The process, let through its gate."""
        is_log = spec.output == "log"
        feed = Feed[Event](None if is_log else limits.PROTOCOL_BYTES)
        log = self.logs.create(process_id) if is_log else None
        try:
            os.write(launched.stdin, OPEN_GATE)
        except OSError:
            if log is not None:
                log.close()
            raise
        output = Output(
            feed,
            log=log,
            cap=spec.max_output,
            batch_seconds=self._batch_seconds,
            batch_bytes=self._batch_bytes,
        )
        process = Process(
            process_id,
            spec,
            cwd=cwd,
            popen=launched.popen,
            stdin=WritePipe(launched.stdin),
            feed=feed,
            output=output,
            log=log,
            logs=self.logs,
            plan=plan,
            ladder=self.ladder,
            interrupt=interrupt,
        )
        pipes: dict[Stream, ReadPipe] = {
            "stdout": ReadPipe(launched.stdout),
            "stderr": ReadPipe(launched.stderr),
        }
        process.begin(pipes)
        return process

"""Processes of one data folder: where programs may work, what they get, who ends them; and a
process as facts, in order.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.journal.blobs import BlobStore
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.mint import FactScope, Mint, new_id
from factwire.runtime.processes import limits
from factwire.runtime.processes.process_launch import (
    MARKER,
    OPEN_GATE,
    Launched,
    OpenFolder,
    child_environment,
    find_program,
    folder_inside,
    launch,
)
from factwire.runtime.processes.process_output import (
    PROCESS_ID,
    LogFolder,
    ProcessEvent,
    ProcessFeed,
    ProcessOutput,
    ReadPipe,
    WritePipe,
)
from factwire.runtime.processes.process_reaper import Reaped, RecordFolder, build_record, reap
from factwire.runtime.processes.process_spec import (
    Exit,
    InputPiece,
    InvalidSpec,
    NotStarted,
    OutputPiece,
    PlaceChanged,
    ProcessError,
    ProcessSpec,
    ProgramNotFound,
    StopEscalation,
    Stream,
)
from factwire.runtime.processes.running_process import Interrupt, RunningProcess
from factwire.runtime.program_lookup import list_own_path, note_agent_folders
from factwire.runtime.sandbox.sandbox import Sandbox, SandboxPlan, describe_missing_sandbox
from factwire.runtime.sandbox.sandbox_policy import InvalidPolicy, SandboxRefused


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
        ladder: StopEscalation | None = None,
        batch_seconds: float = limits.BATCH_SECONDS,
        batch_bytes: int = limits.BATCH_BYTES,
    ) -> None:
        folder = Path(data)
        self.workspaces = tuple(Path(workspace) for workspace in workspaces)
        note_agent_folders(self.workspaces)
        self.records = RecordFolder(folder / "processes")
        self.logs = LogFolder(folder / "logs", blobs)
        private = (folder, *map(Path, hidden))
        self.sandbox = sandbox or Sandbox(home=Path(home or Path.home()), data=private)
        self.ladder = ladder or StopEscalation()
        self._environment = os.environ if environment is None else environment
        self._batch_seconds = batch_seconds
        self._batch_bytes = batch_bytes

    async def reap(self) -> list[Reaped]:
        """End what an earlier Factwire left behind; to be called at the start."""
        return await run_disk_work(reap, self.records)

    def start(
        self,
        spec: ProcessSpec,
        *,
        process_id: str | None = None,
        interrupt: Interrupt | None = None,
    ) -> AbstractAsyncContextManager[RunningProcess]:
        """Run a program for as long as the context lasts; left early, it is stopped, and killed at
        once where the caller fails or is cancelled.

        Raises `ProcessError` or `SandboxError` when it cannot be started; nothing is left then.
        """
        process_id = process_id or new_id("proc")
        if not PROCESS_ID.fullmatch(process_id):
            raise InvalidSpec(f"expected an id of letters, digits, - and _, got {process_id!r}")
        return self._run(spec, process_id, interrupt)

    @asynccontextmanager
    async def _run(
        self, spec: ProcessSpec, process_id: str, interrupt: Interrupt | None
    ) -> AsyncGenerator[RunningProcess]:
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
    ) -> RunningProcess:
        with folder_inside(spec.cwd, self.workspaces) as folder:
            _ensure_same_folder(spec, folder)
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
            await run_disk_work(self.records.write, build_record(process_id, launched.pid, cgroups))
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
            spec.sandbox,
            workspace=folder.workspace,
            folder=folder.path,
            name=process_id,
            workspace_file=folder.workspace_file,
        )

    def _launch(
        self, spec: ProcessSpec, process_id: str, folder: OpenFolder, plan: SandboxPlan | None
    ) -> Launched:
        environment = child_environment(self._environment, spec.env, spec.own_env_names)
        if spec.own_path:
            environment["PATH"] = os.pathsep.join(list_own_path(environment.get("PATH")))
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
    ) -> RunningProcess:
        """The process, let through its gate."""
        is_log = spec.output == "log"
        feed = ProcessFeed[ProcessEvent](None if is_log else limits.PROTOCOL_BYTES)
        log = self.logs.create(process_id) if is_log else None
        try:
            os.write(launched.stdin, OPEN_GATE)
        except OSError:
            if log is not None:
                log.close()
            raise
        output = ProcessOutput(
            feed,
            log=log,
            cap=spec.max_output,
            batch_seconds=self._batch_seconds,
            batch_bytes=self._batch_bytes,
        )
        process = RunningProcess(
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


def _ensure_same_folder(spec: ProcessSpec, folder: OpenFolder) -> None:
    """The folder that is held open is the one that was shown; raises `PlaceChanged`."""
    found = os.fstat(folder.file)
    if spec.folder_id not in (None, f"{found.st_dev}:{found.st_ino}"):
        raise PlaceChanged(f"{spec.cwd} is another folder than when this was shown")


_STOP_CATEGORIES: Final = {"time_limit": "timeout"}


async def stream_process_facts(
    processes: Processes,
    spec: ProcessSpec,
    *,
    mint: Mint,
    scope: FactScope,
    process_id: str | None = None,
    tool_call_id: str | None = None,
    interrupt: Interrupt | None = None,
    on_start: Callable[[RunningProcess], None] | None = None,
) -> AsyncIterator[Fact]:
    """Run a program and tell it; `on_start` gets the handle to write to it and to stop it.

    A caller that stops iterating closes the iterator (`aclose`), which ends the program.
    """
    writer = _FactWriter(mint, scope, process_id or new_id("proc"), tool_call_id)
    try:
        async with processes.start(
            spec, process_id=writer.process_id, interrupt=interrupt
        ) as process:
            if on_start is not None:
                on_start(process)
            if (account := await _sandbox_account(processes, process)) is not None:
                yield writer.fact("sandbox.applied", account)
            yield writer.start_fact(process)
            async for event in process.events():
                yield writer.event_fact(event, spec)
            yield writer.end_fact(await process.wait())
    except SandboxRefused as error:
        yield writer.blocked_fact(error.reason_code, error, spec)
    except InvalidPolicy as error:
        yield writer.blocked_fact(error.code, error, spec)
    except ProcessError as error:
        failure = {"failureCategory": error.code, "message": str(error), "status": "not_started"}
        yield writer.fact("process.failed", failure)


async def _sandbox_account(processes: Processes, process: RunningProcess) -> dict[str, Any] | None:
    if process.plan is not None:
        return process.plan.account()
    wanted = process.spec.sandbox
    if wanted.mode == "off":
        return describe_missing_sandbox(wanted, None) if wanted.deny else None
    return describe_missing_sandbox(wanted, await processes.sandbox.probe())


class _FactWriter:
    def __init__(
        self, mint: Mint, scope: FactScope, process_id: str, tool_call_id: str | None
    ) -> None:
        self._mint = mint
        self._scope = scope
        self._ids = {"process_id": process_id}
        if tool_call_id is not None:
            self._ids["tool_call_id"] = tool_call_id
        self.process_id = process_id

    def fact(self, event_class: str, payload: dict[str, Any], **fields: Any) -> Fact:
        details = {key: value for key, value in payload.items() if value is not None}
        return self._mint.fact(self._scope, event_class, details, **self._ids, **fields)

    def start_fact(self, process: RunningProcess) -> Fact:
        payload = {
            "command": list(process.spec.argv),
            "cwd": process.cwd,
            "maxBytes": process.spec.max_output if process.spec.output == "log" else None,
        }
        return self.fact("process.started", payload)

    def event_fact(self, event: ProcessEvent, spec: ProcessSpec) -> Fact:
        if isinstance(event, InputPiece):
            return self._input_fact(event)
        return self._output_fact(event, spec)

    def end_fact(self, ending: Exit) -> Fact:
        event_class, category = _kind_of(ending)
        payload = {
            "exitCode": ending.exit_code,
            "signal": ending.signal,
            "status": ending.stopped or ("exited" if ending.signal is None else "signaled"),
            "stoppedBy": ending.rung,
            "failureCategory": category,
            "logError": ending.log_error,
        }
        return self.fact(event_class, payload)

    def blocked_fact(self, reason_code: str, error: Exception, spec: ProcessSpec) -> Fact:
        payload = {"mode": spec.sandbox.mode, "reasonCode": reason_code, "message": str(error)}
        return self.fact("sandbox.blocked", payload)

    def _output_fact(self, piece: OutputPiece, spec: ProcessSpec) -> Fact:
        payload = {
            "stream": piece.stream,
            "offset": piece.offset,
            "text": piece.text,
            "truncated": True if piece.truncated else None,
            "maxBytes": spec.max_output if piece.truncated else None,
            "bytesWritten": piece.bytes_written,
            "outputRef": msgspec.to_builtins(piece.ref) if piece.ref else None,
        }
        refs = (piece.ref.ref,) if piece.ref else ()
        return self.fact("process.output", payload, ref_ids=refs)

    def _input_fact(self, piece: InputPiece) -> Fact:
        payload = {
            "stream": "stdin",
            "offset": piece.offset,
            "bytesWritten": piece.bytes,
            "text": piece.text,
        }
        return self.fact("process.input", payload)


def _kind_of(ending: Exit) -> tuple[str, str | None]:
    """The class of the last fact, and what went wrong."""
    if ending.stopped is not None:
        return "process.terminated", _STOP_CATEGORIES.get(ending.stopped)
    if ending.sandbox_failed:
        return "process.failed", "sandbox_failed"
    if ending.exit_code == 0:
        return "process.completed", None
    return "process.failed", "signal" if ending.signal else "nonzero_exit"

"""`run`: a program in the workspace, in the sandbox, told from its start to its end."""

import asyncio
from contextlib import aclosing
from typing import Any, Final

import msgspec

from factwire.facts import Fact, Ref
from factwire.journal.blobs.disk import on_disk
from factwire.runtime.policy import Request
from factwire.runtime.processes import InvalidSpec, Process, Processes, ProcessSpec, process_facts
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.command_lines import parse_command
from factwire.runtime.toolbox.limits import CHANGED_FILES
from factwire.runtime.toolbox.outcomes import TOOL_FAILURES, Done, ToolRefused
from factwire.runtime.toolbox.run_changes import changes, look, tell_changes
from factwire.runtime.toolbox.works import Bench, Work, check_names, count_argument, text_argument

_SECONDS: Final = 30 * 60
"""How long a program may run if the call does not say."""

_CATEGORIES: Final = {"folder_refused": "outside_workspace", "invalid_spec": "invalid_arguments"}
"""How a process fails → how the call does, where the word is another."""

_ENDS: Final = frozenset(
    {"process.completed", "process.failed", "process.terminated", "sandbox.blocked"}
)


async def run(bench: Bench, args: dict[str, Any]) -> Work:
    """`command` as a line or as a list of arguments, and maybe the folder `cwd` and `seconds`."""
    check_names(args, "command", "cwd", "seconds")
    argv, command = parse_command(args.get("command"))
    folder = await on_disk(bench.files.locate, text_argument(args, "cwd", "."))
    cwd = str(bench.files.root / folder)
    processes = bench.means.processes
    if processes is None:
        raise ToolRefused("programs_unavailable", "this runtime was given no way to run programs")
    try:
        spec = ProcessSpec(
            argv=argv,
            cwd=cwd,
            max_output=bench.means.output_bytes,
            time_limit=count_argument(args, "seconds", _SECONDS),
            sandbox=bench.means.sandbox,
        )
    except InvalidSpec as error:
        raise ToolRefused("invalid_arguments", str(error)) from error

    async def perform(call: Call) -> Done:
        return await _Run(bench, processes, spec, call).to_its_end()

    request = Request(tool="run", workspace=bench.workspace, cwd=cwd, command=command)
    return Work(request=request, prompt="Run this command?", perform=perform)


class _Run:
    """One program, its output gathered and its end understood."""

    def __init__(self, bench: Bench, processes: Processes, spec: ProcessSpec, call: Call) -> None:
        self._bench = bench
        self._processes = processes
        self._spec = spec
        self._call = call
        self._process: Process | None = None
        self._pieces: list[str] = []
        self._ref: Ref | None = None

    async def to_its_end(self) -> Done:
        own = self._bench.means.unwatched
        before = await on_disk(look, self._bench.files, own, keep=True)
        done = await self._run()
        after = None
        if before is not None:
            after = await on_disk(look, self._bench.files, own, keep=False)
        if before is None or after is None:
            return msgspec.structs.replace(done, data={**done.data, "filesWatched": False})
        found = await on_disk(changes, self._bench.files, before, after)
        await tell_changes(self._call, found, self._bench.means.policy, self._bench.workspace)
        paths = [changed.path for changed in found[:CHANGED_FILES]]
        told = {"changedFiles": len(found), "paths": paths} if found else {}
        return msgspec.structs.replace(done, data={**done.data, **told})

    async def _run(self) -> Done:
        # Before the program runs: if we are killed now, nobody takes the approval for unused.
        await self._call.acted()
        running: Any = process_facts(
            self._processes,
            self._spec,
            mint=self._call.host.mint,
            scope=self._call.scope,
            tool_call_id=self._call.call_id,
            on_start=self._begin,
        )
        ended: Fact | None = None
        try:
            async with aclosing(running) as facts:
                async for fact in facts:
                    self._call.host.emit(fact)
                    await self._hear(fact)
                    ended = fact if fact.event_class in _ENDS else ended
        except asyncio.CancelledError:
            self._tell_killed()
            raise
        finally:
            if self._process is not None:
                self._bench.running.discard(self._process)
        return self._done(ended)

    def _tell_killed(self) -> None:
        """Say that a program is gone that was not let run to its end."""
        if self._process is not None:
            killed = {"status": "cancelled", "stoppedBy": "kill"}
            self._call.put("process.terminated", killed, process_id=self._process.process_id)

    def _begin(self, process: Process) -> None:
        self._process = process
        self._bench.running.add(process)

    async def _hear(self, fact: Fact) -> None:
        if fact.event_class == "process.output":
            self._pieces.append(str(fact.payload.get("text", "")))
            if "outputRef" in fact.payload:
                self._ref = msgspec.convert(fact.payload["outputRef"], Ref)
        elif fact.event_class == "process.started" and self._bench.stopping.is_set():
            # It was started while it was told to stop.
            await self._stop()

    async def _stop(self) -> None:
        if self._process is not None:
            await self._process.stop("cancelled")

    def _done(self, ended: Fact | None) -> Done:
        said = ended.payload if ended is not None else {}
        code = said.get("exitCode")
        category = _category(ended)
        return Done(
            text="".join(self._pieces),
            summary=_summary(said, category),
            data={"exitCode": code, "truncated": self._ref is not None},
            category=category,
            exit_code=code,
            ref=self._ref,
        )


def _category(ended: Fact | None) -> str | None:
    if ended is None or ended.event_class == "process.terminated":
        said = None if ended is None else ended.payload.get("failureCategory")
        return said or "cancelled"
    if ended.event_class == "sandbox.blocked":
        return "sandbox_unavailable"
    said = ended.payload.get("failureCategory")
    return _CATEGORIES.get(said, said) if isinstance(said, str) else None


def _summary(said: dict[str, Any], category: str | None) -> str:
    if category == "nonzero_exit":
        return f"exit code {said.get('exitCode')}"
    if category == "signal":
        return f"ended by {said.get('signal')}"
    return str(said.get("message") or (TOOL_FAILURES.get(category, category) if category else "ok"))

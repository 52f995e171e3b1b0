"""Telling: a process as facts, in order, from its sandbox to its end.

What goes wrong before a program runs is told as well, as `process.failed` or `sandbox.blocked`;
then no `process.started` is among the facts. Every fact carries the id of the process, so that
redaction across pieces knows which text they belong to.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.runtime.minting import Mint, Scope, new_id
from factwire.runtime.processes.errors import ProcessError
from factwire.runtime.processes.host import Processes
from factwire.runtime.processes.output import Event
from factwire.runtime.processes.process import Interrupt, Process
from factwire.runtime.processes.spec import Exit, InputPiece, OutputPiece, ProcessSpec
from factwire.runtime.sandbox.errors import InvalidPolicy, SandboxRefused
from factwire.runtime.sandbox.sandbox import account_of_none

_STOP_CATEGORIES: Final = {"time_limit": "timeout"}


async def process_facts(
    processes: Processes,
    spec: ProcessSpec,
    *,
    mint: Mint,
    scope: Scope,
    process_id: str | None = None,
    tool_call_id: str | None = None,
    interrupt: Interrupt | None = None,
    on_start: Callable[[Process], None] | None = None,
) -> AsyncIterator[Fact]:
    """Run a program and tell it; `on_start` gets the handle to write to it and to stop it.

    A caller that stops iterating closes the iterator (`aclose`), which ends the program.
    """
    teller = _Teller(mint, scope, process_id or new_id("proc"), tool_call_id)
    try:
        async with processes.start(
            spec, process_id=teller.process_id, interrupt=interrupt
        ) as process:
            if on_start is not None:
                on_start(process)
            if (account := await _sandbox_account(processes, process)) is not None:
                yield teller.fact("sandbox.applied", account)
            yield teller.started(process)
            async for event in process.events():
                yield teller.event(event, spec)
            yield teller.ended(await process.wait())
    except SandboxRefused as error:
        yield teller.blocked(error.reason_code, error, spec)
    except InvalidPolicy as error:
        yield teller.blocked(error.code, error, spec)
    except ProcessError as error:
        failure = {"failureCategory": error.code, "message": str(error), "status": "not_started"}
        yield teller.fact("process.failed", failure)


async def _sandbox_account(processes: Processes, process: Process) -> dict[str, Any] | None:
    if process.plan is not None:
        return process.plan.account()
    if process.spec.sandbox.mode == "off":
        return None
    return account_of_none(process.spec.sandbox, await processes.sandbox.probe())


class _Teller:
    def __init__(self, mint: Mint, scope: Scope, process_id: str, tool_call_id: str | None) -> None:
        self._mint = mint
        self._scope = scope
        self._ids = {"process_id": process_id}
        if tool_call_id is not None:
            self._ids["tool_call_id"] = tool_call_id
        self.process_id = process_id

    def fact(self, event_class: str, payload: dict[str, Any], **fields: Any) -> Fact:
        told = {key: value for key, value in payload.items() if value is not None}
        return self._mint.fact(self._scope, event_class, told, **self._ids, **fields)

    def started(self, process: Process) -> Fact:
        payload = {
            "command": list(process.spec.argv),
            "cwd": process.cwd,
            "maxBytes": process.spec.max_output if process.spec.output == "log" else None,
        }
        return self.fact("process.started", payload)

    def event(self, event: Event, spec: ProcessSpec) -> Fact:
        if isinstance(event, InputPiece):
            return self._input(event)
        return self._output(event, spec)

    def ended(self, ending: Exit) -> Fact:
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

    def blocked(self, reason_code: str, error: Exception, spec: ProcessSpec) -> Fact:
        payload = {"mode": spec.sandbox.mode, "reasonCode": reason_code, "message": str(error)}
        return self.fact("sandbox.blocked", payload)

    def _output(self, piece: OutputPiece, spec: ProcessSpec) -> Fact:
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

    def _input(self, piece: InputPiece) -> Fact:
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

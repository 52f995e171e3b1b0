"""Processes and hooks: programs that run for a thread, and what hooks said.

Output is shown as far as there is room, with the byte offset that a log is read from for the rest.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.limits import SEQUENCE_MAX
from factwire.facts.payloads import Hook as HookPayload
from factwire.facts.payloads import Process as ProcessPayload
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.limits import OUTPUT_CHARACTERS
from factwire.projection.pointers import escaped
from factwire.projection.reading import (
    number,
    other_id,
    read,
    ref_text,
    subagent_of,
    tool_of,
    turn_of,
    word,
)
from factwire.projection.text import Text
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/processes"
HOOKS: Final = "/hooks"

_STATES: Final = {
    "process.started": "running",
    "process.completed": "completed",
    "process.failed": "failed",
    "process.terminated": "terminated",
    "command.started": "running",
    "command.exited": "exited",
}
_HOOK_STATES: Final = {
    "hook.started": "running",
    "hook.progress": "running",
    "hook.completed": "completed",
    "hook.failed": "failed",
}


class Process(View):
    """One program: a process of the runtime, or a command that a tool ran."""

    process_id: str
    kind: str
    status: str
    output: Text
    output_bytes: int
    command: Any = None
    cwd: str | None = None
    exit_code: int | None = None
    signal: str | int | None = None
    truncated: bool | None = None
    output_ref: str | None = None
    failure_category: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    subagent_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class Hook(View):
    """One run of a hook."""

    hook_id: str
    status: str
    hook_name: str | None = None
    hook_event: str | None = None
    outcome: str | None = None
    exit_code: int | None = None
    message: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


def changed(canvas: "Canvas", fact: Fact) -> None:
    """process.* and command.*."""
    key = process_of(fact)
    if key is None:
        return
    process, path = _process(canvas, fact, key)
    said, name = read(fact, ProcessPayload), fact.event_class or ""
    state, snake = _STATES.get(name), fact.payload.get("exit_code")
    code = snake if said.exit_code is None and type(snake) is int else said.exit_code
    if state == "running":
        for field in ("exit_code", "signal", "failure_category", "completed_at"):
            canvas.put(process, path, field, None)
    canvas.fill(
        process,
        path,
        status=_exit_status(said, code) if name == "command.exited" else state,
        command=said.command,
        cwd=said.cwd,
        exit_code=code,
        signal=said.signal,
        truncated=said.truncated,
        output_ref=ref_text(said.output_ref),
        failure_category=said.failure_category,
        completed_at=fact.created_at if state not in (None, "running") else None,
    )


def output(canvas: "Canvas", fact: Fact) -> None:
    """A piece of output; `offset` and `bytesWritten` tell where in the log it is."""
    key = process_of(fact)
    if key is None:
        return
    process, path = _process(canvas, fact, key)
    piece = word(fact.payload, "text", "delta") or ""
    offset = number(fact.payload, "offset")
    start = process.output_bytes
    if offset is not None and 0 <= offset <= SEQUENCE_MAX:
        start = int(offset)
    end = start + len(piece.encode("utf-8", "surrogatepass"))
    canvas.put(process, path, "output_bytes", max(process.output_bytes, end))
    room = OUTPUT_CHARACTERS - process.output.length
    if piece and room > 0:
        canvas.grow(process.output, f"{path}/output", piece[:room])
    if len(piece) > room or fact.payload.get("truncated") is True:
        canvas.put(process, path, "truncated", value=True)
    canvas.fill(process, path, output_ref=word(fact.payload, "outputRef") or _first(fact.ref_ids))


def process_of(fact: Fact) -> str | None:
    """Which program a fact is about."""
    name = fact.event_class or ""
    if name.startswith("command."):
        return word(fact.payload, "commandId", "command_id") or tool_of(fact)
    return fact.process_id or other_id(fact, "processId", "process_id") or tool_of(fact)


def hooked(canvas: "Canvas", fact: Fact) -> None:
    said, name = read(fact, HookPayload), fact.event_class or ""
    key = said.hook_id or fact.id
    hooks, path = canvas.state.hooks, f"{HOOKS}/{escaped(key)}"
    if key not in hooks:
        hook = Hook(
            hook_id=key,
            status=UNKNOWN,
            tool_call_id=tool_of(fact),
            turn_id=turn_of(fact),
            started_at=fact.created_at,
        )
        canvas.create(hooks, HOOKS, key, hook)
    state = _HOOK_STATES[name]
    canvas.put(hooks[key], path, "status", state)
    if name == "hook.started":
        for field in ("outcome", "exit_code", "message", "completed_at"):
            canvas.put(hooks[key], path, field, None)
    canvas.fill(
        hooks[key],
        path,
        hook_name=said.hook_name,
        hook_event=said.hook_event,
        outcome=said.outcome,
        exit_code=said.exit_code,
        message=said.message,
        completed_at=None if state == "running" else fact.created_at,
    )


def _process(canvas: "Canvas", fact: Fact, key: str) -> tuple[Process, str]:
    path = f"{PATH}/{escaped(key)}"
    known = canvas.state.processes.get(key)
    if known is not None:
        return known, path
    process = Process(
        process_id=key,
        kind=(fact.event_class or "").partition(".")[0],
        status=UNKNOWN,
        output=Text(),
        output_bytes=0,
        tool_call_id=tool_of(fact),
        turn_id=turn_of(fact),
        subagent_id=subagent_of(fact),
        started_at=fact.created_at,
    )
    return canvas.create(canvas.state.processes, PATH, key, process), path


def _exit_status(said: ProcessPayload, code: int | None) -> str:
    if code is None:
        return said.status or "exited"
    return "completed" if code == 0 else "failed"


def _first(refs: tuple[str, ...]) -> str | None:
    return refs[0] if refs else None

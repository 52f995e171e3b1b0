"""A call of a tool: started once, ended once, with an outcome whose category never changes.

A call that a turn waits with is found in the history after a restart, so that it can go on.
"""

from datetime import datetime
from typing import Any, Final, cast

import msgspec

from factwire.facts import Fact, FactError, Ref, RefKind, redact_text
from factwire.facts.limits import PREVIEW_CHARACTERS
from factwire.journal.blobs import BlobError, BlobStore
from factwire.projection.actions import Action
from factwire.projection.tools import Tool
from factwire.runtime.mint import FactScope
from factwire.runtime.provider import Decision, Host, StartTurn
from factwire.runtime.toolbox.limits import INLINE_CHARACTERS

TOOL_FAILURES: Final = {
    "unknown_tool": "there is no tool of this name",
    "invalid_arguments": "the arguments do not have the expected form",
    "permission_denied": "the policy or a person denied it, or nobody answered in time",
    "approval_changed": "what was approved differs from what would be done now",
    "place_changed": "the workspace or the folder is another one than when it was shown",
    "outside_workspace": "the path is outside the workspace",
    "not_found": "there is no such file or folder",
    "not_a_file": "the path is a folder, a device or something else that contains no text",
    "not_text": "the file is not text in UTF-8",
    "too_big": "the file is too large for a tool",
    "conflict": "the file changed between reading and writing it",
    "patch_mismatch": "the text to replace does not occur exactly once",
    "io_error": "the system refused to read or write",
    "programs_unavailable": "this runtime cannot run programs",
    "program_not_found": "there is no such program",
    "not_started": "the system refused to start the program",
    "sandbox_unavailable": "a sandbox is required but not available",
    "sandbox_failed": "the program cannot be reached inside the sandbox",
    "nonzero_exit": "the program ended with an exit code other than 0",
    "signal": "the program was ended by a signal",
    "timeout": "the program or the server exceeded its time limit",
    "tool_error": "the tool of a server reported a failure",
    "server_unavailable": "the tool's server could not be started or reached",
    "server_died": "the server of the tool ended or disconnected during the call",
    "protocol_error": "the server of the tool rejected the call or violated the protocol",
    "missing_extra": "a library that the tool needs is not installed",
    "interrupted": "the runtime stopped before the call ended; it is not known what was done",
    "cancelled": "the call was cancelled",
}
"""Category → when."""


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent hears. `category` is there when it is not `ok`; `text` is for a model."""

    ok: bool
    text: str
    call_id: str
    category: str | None = None
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool has done, before it is told. `ref` is where a long output is kept already; `told`
    stands in the fact beside the output, and `refs` are what it refers to.
    """

    text: str = ""
    summary: str | None = None
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    category: str | None = None
    exit_code: int | None = None
    ref: Ref | None = None
    hint: str | None = None
    fields: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    refs: tuple[str, ...] = ()


class ToolRefused(Exception):
    """Raised inside a tool to end its call; the category is stable, `hint` says what helps."""

    def __init__(self, category: str, message: str, *, hint: str | None = None) -> None:
        self.category = category
        self.hint = hint
        super().__init__(message)


class ActiveCall:
    """One call; `decision` is what a person said to it, if one was asked."""

    def __init__(self, host: Host, scope: FactScope, call_id: str, name: str) -> None:
        self.host = host
        self.scope = scope
        self.call_id = call_id
        self.name = name
        self.decision: Decision | None = None
        self._began = host.mint.clock()
        self._acted = False

    def start(self, args: dict[str, Any]) -> None:
        self.put("tool.started", {"toolName": self.name})
        self.put("tool.args", {"args": args})

    def fact(self, event_class: str, payload: dict[str, Any], **fields: Any) -> Fact:
        known = {name: value for name, value in payload.items() if value is not None}
        return self.host.mint.fact(
            self.scope, event_class, known, tool_call_id=self.call_id, **fields
        )

    def put(self, event_class: str, payload: dict[str, Any], **fields: Any) -> None:
        self.host.emit(self.fact(event_class, payload, **fields))

    async def mark_applied(self) -> None:
        """Say that the decision has been acted upon, once: before what could be done twice, after
        what could not.
        """
        if self.decision is not None and not self._acted:
            self._acted = True
            await self.host.mark_applied(self.decision)

    async def keep(self, text: str, kind: RefKind) -> Ref:
        """Keep a text without its secrets; the ref has a preview."""
        clean, _ = redact_text(text)
        ref = await self.host.resources.blobs.put(clean.encode("utf-8", "replace"), kind=kind)
        return msgspec.structs.replace(
            ref, media_type="text/plain", preview=clean[:PREVIEW_CHARACTERS]
        )

    async def end(self, done: CallResult) -> ToolOutcome:
        """Tell what was done."""
        failure = done.category
        payload: dict[str, Any] = {
            **done.fields,
            "toolName": self.name,
            "summary": done.summary,
            "exitCode": done.exit_code,
            "failureCategory": failure,
            "message": done.summary if failure else None,
            "recoveryHint": done.hint,
            "durationMs": self.elapsed_ms(),
        }
        ref = done.ref
        if ref is None and len(done.text) > INLINE_CHARACTERS:
            ref = await self.keep(done.text, "output")
        if ref is not None:
            payload["outputRef"] = msgspec.to_builtins(ref)
        elif done.text:
            payload["output"] = done.text
        refs = done.refs if ref is None else (*done.refs, ref.ref)
        self.put("tool.failed" if failure else "tool.result", payload, ref_ids=refs)
        data = done.data if ref is None else {**done.data, "outputRef": ref.ref}
        return ToolOutcome(
            ok=failure is None,
            text=done.text or done.summary or "",
            call_id=self.call_id,
            category=failure,
            data=data,
        )

    def elapsed_ms(self) -> float:
        began = datetime.fromisoformat(self._began)
        now = datetime.fromisoformat(self.host.mint.clock())
        return max((now - began).total_seconds() * 1_000, 0.0)


_ARGS_BYTES: Final = 8 * 1024 * 1024
"""Bytes of arguments that are read back; no tool takes more."""


class Pending(msgspec.Struct, frozen=True):
    """An open request, and the call that it is about."""

    action: Action
    tool: Tool

    async def args(self, blobs: BlobStore) -> dict[str, Any]:
        """The arguments as they were kept."""
        return await read_args(self.tool, blobs)


async def read_args(tool: Tool, blobs: BlobStore) -> dict[str, Any]:
    """The arguments of a call, in the fact or behind its ref; else none."""
    args = tool.args
    if isinstance(args, dict):
        return cast("dict[str, Any]", args)
    for ref in tool.ref_ids or ():
        found = await _object(blobs, ref)
        if found is not None:
            return found
    return {}


def find_pending_call(turn: StartTurn) -> Pending | None:
    """What a resumed turn waits for; None for a turn that begins.

    It may have been answered since: a turn waits for room before it runs.
    """
    return next(iter(reversed(find_pending_calls(turn))), None)


def find_pending_calls(turn: StartTurn) -> list[Pending]:
    """All that a resumed turn waits for, in the order in which it was asked."""
    if not turn.resumed or turn.history is None:
        return []
    found: list[Pending] = []
    for action in turn.history.actions.values():
        tool = turn.history.tools.get(action.tool_call_id or "")
        if action.turn_id == turn.turn_id and tool is not None and _is_open(action, tool):
            found.append(Pending(action, tool))
    return found


def _is_open(action: Action, tool: Tool) -> bool:
    return tool.completed_at is None and not action.applied


async def _object(blobs: BlobStore, ref: str) -> dict[str, Any] | None:
    try:
        data = b"".join([piece async for piece in blobs.get(ref, end=_ARGS_BYTES)])
        return msgspec.json.decode(data, type=dict[str, Any])
    except (BlobError, FactError, msgspec.DecodeError):
        return None

"""What comes of a call of a tool: it worked, or it failed with a category that never changes."""

from typing import Any, Final

import msgspec

from factwire.facts import Ref

TOOL_FAILURES: Final = {
    "unknown_tool": "there is no tool of this name",
    "invalid_arguments": "the arguments are not of the form",
    "permission_denied": "the policy or a person said no, or nobody answered in time",
    "approval_changed": "what was approved is not what would be done now",
    "outside_workspace": "the path leads out of the workspace",
    "not_found": "there is no such file or folder",
    "not_a_file": "the path is a folder, a device or something else that holds no text",
    "not_text": "the file is not text in UTF-8",
    "too_big": "the file is bigger than a tool takes",
    "conflict": "the file changed between the look at it and the write",
    "patch_mismatch": "the text to be replaced is not there exactly once",
    "io_error": "the system refused to read or write",
    "programs_unavailable": "this runtime runs no programs",
    "program_not_found": "there is no such program",
    "not_started": "the system refused to start the program",
    "sandbox_unavailable": "a sandbox is required and cannot be had",
    "sandbox_failed": "the sandbox could not reach the program",
    "nonzero_exit": "the program ended with another code than 0",
    "signal": "the program was ended by a signal",
    "timeout": "the program or the server took longer than it may",
    "tool_error": "a server's tool says itself that it failed",
    "server_unavailable": "the tool's server could not be started or reached",
    "server_died": "the tool's server ended or broke off while the call ran",
    "protocol_error": "the tool's server refused the call, or answered what no server may",
    "missing_extra": "a library that the tool needs is not installed",
    "interrupted": "the runtime stopped before the call had ended; nobody knows what was done",
    "cancelled": "the call was told to stop",
}
"""Category → when."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent hears. `category` is there when it is not `ok`; `text` is for a model."""

    ok: bool
    text: str
    call_id: str
    category: str | None = None
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Done(msgspec.Struct, frozen=True, kw_only=True):
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
    told: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    refs: tuple[str, ...] = ()


class ToolRefused(Exception):
    """Raised inside a tool to end its call; the category is stable, `hint` says what helps."""

    def __init__(self, category: str, message: str, *, hint: str | None = None) -> None:
        self.category = category
        self.hint = hint
        super().__init__(message)

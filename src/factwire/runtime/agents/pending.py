"""The call that a turn waits with: found in the history after a restart, so that it can go on.

Nothing here is trusted: whoever goes on with the call makes its work ready anew, and the answer is
bound to the hash of what was shown.
"""

from typing import Any, Final, cast

import msgspec

from factwire.facts import FactError
from factwire.journal.blobs import BlobError, BlobStore
from factwire.projection.actions import Action
from factwire.projection.tools import Tool
from factwire.runtime.provider import StartTurn

_ARGS_BYTES: Final = 8 * 1024 * 1024
"""Bytes of arguments that are read back; no tool takes more."""


class Pending(msgspec.Struct, frozen=True):
    """An open request, and the call that it is about."""

    action: Action
    tool: Tool

    async def args(self, blobs: BlobStore) -> dict[str, Any]:
        """The arguments as they were kept."""
        return await kept_args(self.tool, blobs)


async def kept_args(tool: Tool, blobs: BlobStore) -> dict[str, Any]:
    """The arguments of a call, in the fact or behind its ref; else none."""
    args = tool.args
    if isinstance(args, dict):
        return cast("dict[str, Any]", args)
    for ref in tool.ref_ids or ():
        found = await _object(blobs, ref)
        if found is not None:
            return found
    return {}


def pending_call(turn: StartTurn) -> Pending | None:
    """What a resumed turn waits for; None for a turn that begins.

    It may have been answered since: a turn waits for room before it runs.
    """
    return next(iter(reversed(pending_calls(turn))), None)


def pending_calls(turn: StartTurn) -> list[Pending]:
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

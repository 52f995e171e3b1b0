"""Closing: what is open in a turn is closed before its terminal, and says why."""

from factwire.runtime.approvals import Approvals
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.thread_log import ThreadLog


async def close_open(
    log: ThreadLog, approvals: Approvals, mint: Mint, scope: Scope, *, category: str, message: str
) -> None:
    """Cancel the open requests of a turn and fail its open tools."""
    await log.flush()
    await approvals.cancel(scope.turn_id)
    failure = {"failureCategory": category, "message": message}
    for call, turn in list(log.gates.open_tools.items()):
        if turn == scope.turn_id:
            tool = log.projection.state.tools.get(call)
            name = {"toolName": tool.tool_name} if tool and tool.tool_name else {}
            log.put(mint.fact(scope, "tool.failed", {**name, **failure}, tool_call_id=call))

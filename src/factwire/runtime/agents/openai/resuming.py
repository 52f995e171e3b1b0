"""The calls that a turn had open when its runtime stopped, brought to their end.

One that a person was asked about waits on for the answer, and is done only if it still is what was
shown. Any other was not begun, or nobody knows: it is not done again, and the model hears so.
"""

from typing import Final

from factwire.projection.tools import Tool
from factwire.runtime.agents.openai.answers import heard
from factwire.runtime.agents.pending import pending_calls
from factwire.runtime.provider import StartTurn
from factwire.runtime.toolbox import Toolbox

_UNKNOWN: Final = "the runtime stopped before this call had ended; it was not made again"


async def ended_calls(turn: StartTurn, toolbox: Toolbox) -> dict[str, str]:
    """Id of a call → what the model hears of it."""
    asked = {pending.tool.tool_call_id: pending for pending in pending_calls(turn)}
    results: dict[str, str] = {}
    for tool in _open_tools(turn):
        pending = asked.get(tool.tool_call_id)
        if pending is None:
            results[tool.tool_call_id] = _given_up(turn, tool)
        else:
            args = await pending.args(turn.host.means.blobs)
            results[tool.tool_call_id] = heard(await toolbox.resume(pending.action, args))
    return results


def _open_tools(turn: StartTurn) -> list[Tool]:
    tools = turn.history.tools.values() if turn.history is not None else ()
    return [each for each in tools if each.turn_id == turn.turn_id and each.completed_at is None]


def _given_up(turn: StartTurn, tool: Tool) -> str:
    host = turn.host
    failure = {"failureCategory": "interrupted", "message": _UNKNOWN}
    host.emit(host.mint.fact(host.scope, "tool.failed", failure, tool_call_id=tool.tool_call_id))
    return f"Failed (interrupted): {_UNKNOWN}"

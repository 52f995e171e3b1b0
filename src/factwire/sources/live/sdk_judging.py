"""The owner's policy, before a person is asked about a call of an SDK's tool.

The author of an agent wants to be asked about a tool; only a rule of the owner's that names it, or
a mode in which nobody is asked, may answer instead. That a tool sounds as if it only read is no
reason to let it run.
"""

from typing import Any

from factwire.projection.reading import table
from factwire.runtime.policy import Evaluation, Request, evaluate, evaluation_fact
from factwire.sources.live.turn import LiveTurn


def judged(live: LiveTurn, call_id: str, tool: str, args: Any) -> Evaluation | None:
    """What the policy decides, which is told; None where a person has to."""
    host = live.host
    request = Request(tool=tool, workspace=str(host.workspace), args=table(args) or {})
    said = evaluate(host.means.policy, request)
    if said.decision == "ask" or (said.decision == "allow" and said.reason_code != "rule_allow"):
        return None
    told = evaluation_fact(host.mint, host.scope, request, said).payload
    live.tell.tool(call_id, tool, args)
    live.tell.fact("permission.evaluated", told, tool_call_id=call_id)
    if said.decision == "deny":
        live.tell.fact("permission.denied", told, tool_call_id=call_id)
    live.pass_on()
    return said

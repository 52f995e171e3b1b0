"""Events of Pydantic AI as the lines that a recorder writes of them."""

from typing import Any

from factwire.projection.reading import table
from factwire.sources.live.sdk_values import plain


def event_line(event: object) -> dict[str, Any]:
    """One event of a run. Events are dataclasses that hold nothing but what they say."""
    return table(plain(event)) or {}


def closing_line(result: Any) -> dict[str, Any]:
    """How a run ended: with an output, or with calls that somebody else has to see to."""
    output, used = result.output, result.usage
    usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    if type(output).__name__ != "DeferredToolRequests":
        return {"type": "run.completed", "final_output": plain(output), "usage": usage}
    asked = [
        call_line(kind, call)
        for kind, calls in (("approval", output.approvals), ("external", output.calls))
        for call in calls
    ]
    return {"type": "run.interrupted", "interruptions": asked, "usage": usage}


def call_line(kind: str, call: Any) -> dict[str, Any]:
    """A call that waits for a person (`approval`), or for whoever carries it out (`external`)."""
    return {
        "kind": kind,
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "args": plain(call.args),
    }

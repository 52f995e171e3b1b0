"""Approvals as a stream tells of them: a tool that needs a yes gives nothing before it, and a tool
that got a no gives nothing at all.
"""

from collections.abc import Iterator
from typing import Final

from factwire.conformance.case import Finding, broken
from factwire.conformance.streams.stream import Read
from factwire.facts import Fact, id_of
from factwire.facts.vocabulary import ACTION_CLOSERS

_OUTPUT: Final = frozenset({"tool.output.delta", "tool.result"})
_DENIALS: Final = frozenset({"deny", "denied", "reject", "rejected"})


def approvals(read: Read) -> Iterator[Finding]:
    """Output of calls that wait for a decision or were denied."""
    waiting: dict[str, str] = {}
    denied: set[str] = set()
    for fact in read.facts:
        call, action = id_of(fact, "toolCallId"), id_of(fact, "actionId") or ""
        if fact.event_class == "action.required" and call is not None:
            waiting[action] = call
        elif fact.event_class in ACTION_CLOSERS:
            asked = waiting.pop(action, None)
            denied |= {asked} if asked is not None and not _allows(fact) else set()
        elif fact.event_class == "tool.started" and call is not None:
            denied.discard(call)
        elif fact.event_class in _OUTPUT and call is not None:
            reason = _reason(call, waiting, denied)
            if reason:
                message = f"{read.stream.prefix}{fact.event_class} of {call}, which {reason}"
                yield broken("stream.approval", message, level="facts", fact=fact)


def _reason(call: str, waiting: dict[str, str], denied: set[str]) -> str | None:
    if call in waiting.values():
        return "waits for a decision"
    return "was not allowed" if call in denied else None


def _allows(fact: Fact) -> bool:
    return fact.event_class == "action.resolved" and fact.payload.get("decision") not in _DENIALS

"""Sessions and threads: what the thread is called and which session it belongs to."""

from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.projection.reading import word

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

AGENTS: Final = 32
"""Agents whose name for a thread is kept: more than ever take turns on one."""


def changed(canvas: "Canvas", fact: Fact) -> None:
    """The title of the thread; those of a subagent's threads are not its own."""
    if fact.thread_id in (None, canvas.state.thread_id):
        canvas.fill(canvas.state, "", title=word(fact.payload, "title", "name"))
        _called(canvas, fact)


def _called(canvas: "Canvas", fact: Fact) -> None:
    """The name that an agent of the thread has for it, so that its next turn goes on with it."""
    name, agent = word(fact.payload, "agentSessionId"), fact.agent_id
    known = canvas.state.agent_sessions or {}
    if name is not None and agent is not None and (agent in known or len(known) < AGENTS):
        canvas.put(canvas.state, "", "agent_sessions", {**known, agent: name})


def recognise(canvas: "Canvas", fact: Fact) -> None:
    """The first fact of a thread tells whose state this is."""
    state = canvas.state
    if state.session_id is None and fact.session_id is not None:
        canvas.put(state, "", "session_id", fact.session_id)
    if state.thread_id is None and fact.thread_id is not None:
        canvas.put(state, "", "thread_id", fact.thread_id)
    if state.runtime_id is None:
        canvas.put(state, "", "runtime_id", fact.runtime_id)

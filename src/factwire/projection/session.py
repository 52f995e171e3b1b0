"""Sessions and threads: what the thread is called and which session it belongs to."""

from typing import TYPE_CHECKING

from factwire.facts.fact import Fact
from factwire.projection.reading import word

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas


def changed(canvas: "Canvas", fact: Fact) -> None:
    """The title of the thread; those of a subagent's threads are not its own."""
    if fact.thread_id in (None, canvas.state.thread_id):
        canvas.fill(canvas.state, "", title=word(fact.payload, "title", "name"))


def recognise(canvas: "Canvas", fact: Fact) -> None:
    """The first fact of a thread tells whose state this is."""
    state = canvas.state
    if state.session_id is None and fact.session_id is not None:
        canvas.put(state, "", "session_id", fact.session_id)
    if state.thread_id is None and fact.thread_id is not None:
        canvas.put(state, "", "thread_id", fact.thread_id)
    if state.runtime_id is None:
        canvas.put(state, "", "runtime_id", fact.runtime_id)

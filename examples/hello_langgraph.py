"""A graph of LangGraph that asks a person, without any model."""

from typing import Any

from langgraph.graph import (  # pyright: ignore[reportMissingTypeStubs]
    START,
    MessagesState,
    StateGraph,
)
from langgraph.types import interrupt


def ask(state: MessagesState) -> dict[str, Any]:
    """A node that waits for a person."""
    said = state["messages"][-1].text
    if interrupt({"question": "Send it?", "text": said}):
        return {"messages": [("ai", f"Sent: {said}")]}
    return {"messages": [("ai", "Not sent.")]}


builder: Any = StateGraph(MessagesState)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
graph = builder.compile()

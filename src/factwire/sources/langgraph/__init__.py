"""Graphs of LangGraph: recorded, live and observed."""

__all__: list[str] = []

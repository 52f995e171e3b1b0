"""Agents that speak the AI SDK's UI message stream, recorded and live."""

__all__: list[str] = []

"""Agents that speak the Agent Client Protocol, recorded and live."""

__all__: list[str] = []

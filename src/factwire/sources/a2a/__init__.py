"""Agents that speak A2A, recorded and live."""

__all__: list[str] = []

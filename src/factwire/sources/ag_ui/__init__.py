"""Agents that speak AG-UI, recorded and live."""

__all__: list[str] = []

"""Agents of Pydantic AI: recorded, live and observed."""

__all__: list[str] = []

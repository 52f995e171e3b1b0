"""Agents of the OpenAI Agents SDK: recorded, live and observed."""

__all__: list[str] = []

"""Codex: its app server and `codex exec`, recorded and live."""

__all__: list[str] = []

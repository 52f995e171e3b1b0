"""OpenCode, recorded and live."""

__all__: list[str] = []

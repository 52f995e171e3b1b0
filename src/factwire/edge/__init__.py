"""The Edge: one machine's server; it translates what the packages beneath it decide."""

__all__: list[str] = []

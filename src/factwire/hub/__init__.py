"""The server for many people and machines: who they are, how they sign in, and what was done."""

__all__: list[str] = []

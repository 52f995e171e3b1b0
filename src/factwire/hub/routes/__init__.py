"""The REST interface of a Hub."""

__all__: list[str] = []

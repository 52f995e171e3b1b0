"""Event classes: the row, the payload and the required fields of each."""

__all__: list[str] = []
